//! What a first boot makes of a tree of files.

#![allow(clippy::unwrap_used, reason = "a test that cannot set its scene has failed")]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use tempfile::TempDir;

use super::*;

const KEY: &str = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGVzdGV0ZXN0ZXN0ZXN0ZXN0ZXN0ZXN0ZXN0ZXN0ZXN0 a@b";

struct Tree(TempDir);

impl Tree {
    fn new() -> Self {
        let tree = tempfile::tempdir().unwrap();
        for folder in ["etc/sudoers.d", "root", "home", "bin", "var/log"] {
            fs::create_dir_all(tree.path().join(folder)).unwrap();
        }
        fs::write(tree.path().join("etc/passwd"), "root:x:0:0:root:/root:/bin/sh\n").unwrap();
        fs::write(tree.path().join("bin/fish"), "").unwrap();
        Self(tree)
    }

    fn boot(&self, instance: &str, user: Option<&str>, user_data: &str) {
        let node = Node::at(self.0.path()).unwrap();
        let given = Given {
            vendor_data: String::new(),
            instance: instance.into(),
            hostname: "web01".into(),
            user: user.map(String::from),
            keys: vec![KEY.into()],
            user_data: user_data.into(),
        };
        first_boot(&node, &given).unwrap();
    }

    fn read(&self, path: &str) -> String {
        fs::read_to_string(self.0.path().join(path)).unwrap_or_default()
    }

    fn mode(&self, path: &str) -> u32 {
        fs::metadata(self.0.path().join(path)).unwrap().permissions().mode() & 0o7777
    }

    fn has(&self, path: &str) -> bool {
        Path::new(&self.0.path().join(path)).exists()
    }
}

#[test]
fn a_machine_without_user_data_has_its_name_and_its_keys() {
    let tree = Tree::new();
    tree.boot("i-1", None, "");
    assert_eq!(tree.read("etc/hostname"), "web01\n");
    assert!(tree.read("etc/hosts").contains("127.0.1.1 web01\n"));
    assert_eq!(tree.read("root/.ssh/authorized_keys"), format!("{KEY}\n"));
    assert_eq!(tree.mode("root/.ssh/authorized_keys"), 0o600);
    assert!(tree.read("var/lib/cloud/data/result.json").contains("\"errors\": []"));
    let tree = Tree::new();
    tree.boot("i-1", Some("ops"), "");
    assert_eq!(tree.read("home/ops/.ssh/authorized_keys"), format!("{KEY}\n"));
    assert_eq!(tree.read("etc/sudoers.d/90-cloud-init-users"), "ops ALL=(ALL) NOPASSWD:ALL\n");
    assert!(!tree.has("root/.ssh"));
}

#[test]
fn what_the_document_says_is_so_and_what_is_not_understood_is_noted() {
    let tree = Tree::new();
    let text = format!(
        "#cloud-config\nhostname: other\nssh_deletekeys: true\nssh_keys:\n  ed25519_private: |\n    PRIVATE\n    KEY\n  \
         ed25519_public: {KEY}\nusers:\n  - name: ann\n    sudo: ALL=(ALL) ALL\n    shell: /bin/fish\n    \
         lock_passwd: true\n    ssh_authorized_keys: ['{KEY}']\nwrite_files:\n  - path: /srv/deep/a\n    content: abc\n    \
         permissions: '0400'\n  - {{path: /srv/deep/b, content: aGVsbG8=, encoding: b64}}\n  \
         - {{path: /srv/deep/b, content: ' you', append: true}}\npower_state: {{mode: reboot}}\n"
    );
    fs::create_dir_all(tree.0.path().join("etc/ssh")).unwrap();
    fs::write(tree.0.path().join("etc/ssh/ssh_host_rsa_key"), "old").unwrap();
    tree.boot("i-1", Some("ops"), &text);
    assert_eq!(tree.read("etc/hostname"), "other\n");
    assert_eq!(tree.read("etc/ssh/ssh_host_ed25519_key"), "PRIVATE\nKEY\n");
    assert_eq!(tree.mode("etc/ssh/ssh_host_ed25519_key"), 0o600);
    assert_eq!(tree.read("etc/ssh/ssh_host_ed25519_key.pub"), format!("{KEY}\n"));
    assert!(!tree.has("etc/ssh/ssh_host_rsa_key"));
    assert!(tree.read("etc/passwd").contains(":/home/ann:/bin/fish\n"), "{}", tree.read("etc/passwd"));
    assert!(!tree.read("etc/passwd").contains("ops"), "a list without `default` is all there is");
    assert_eq!(tree.read("home/ann/.ssh/authorized_keys"), format!("{KEY}\n"));
    assert_eq!(tree.read("etc/sudoers.d/90-cloud-init-users"), "ann ALL=(ALL) ALL\n");
    assert_eq!((tree.read("srv/deep/a").as_str(), tree.mode("srv/deep/a")), ("abc", 0o400));
    assert_eq!((tree.read("srv/deep/b").as_str(), tree.mode("srv/deep/b")), ("hello you", 0o644));
    let log = tree.read("var/log/cloud-init.log");
    assert!(log.contains("`power_state`") && !log.contains("PRIVATE"), "{log}");
    assert!(tree.read("var/lib/cloud/data/result.json").contains("\"errors\": []"));
}

#[test]
fn a_life_begins_once_and_another_life_begins_again() {
    let tree = Tree::new();
    let append = "#cloud-config\nwrite_files: [{path: /srv/a, content: x, append: true}]\n";
    tree.boot("i-1", None, append);
    tree.boot("i-1", None, append);
    assert_eq!(tree.read("srv/a"), "x");
    tree.boot("i-2", None, append);
    assert_eq!(tree.read("srv/a"), "xx");
}

#[test]
fn user_data_that_makes_no_sense_is_written_down_and_the_machine_comes_up() {
    for text in ["hello", "#cloud-config\n- a\n", "#cloud-config\na: 'secret\n"] {
        let tree = Tree::new();
        tree.boot("i-1", None, text);
        assert_eq!(tree.read("etc/hostname"), "web01\n");
        let result = tree.read("var/lib/cloud/data/result.json");
        assert!(result.contains("the user data is") && !result.contains("secret"), "{result}");
    }
}

#[test]
fn files_that_cannot_be_written_do_not_keep_others_from_it() {
    let tree = Tree::new();
    let text = "#cloud-config\nwrite_files:\n  - {path: rel, content: x}\n  - {path: /a, encoding: gz+b64}\n  \
                - {path: /b, owner: 'nobody-here'}\n  - {path: /c, permissions: 'abc'}\n  - {path: /d, content: y}\n";
    tree.boot("i-1", None, text);
    assert_eq!(tree.read("d"), "y");
    assert!(!tree.has("a") && !tree.has("b") && !tree.has("c"));
    assert_eq!(tree.read("var/lib/cloud/data/result.json").matches("write `").count(), 4);
}

#[test]
fn the_user_data_of_a_node_that_pulls_leaves_what_it_pulls_with() {
    let tree = Tree::new();
    let document = json!({
        "ssh_deletekeys": true,
        "ssh_keys": { "ed25519_private": "P", "ed25519_public": KEY },
        "write_files": [{ "path": crate::pull::ENROLMENT, "owner": "root:root", "permissions": "0400", "content": "{}" }],
        "runcmd": [["systemctl", "enable", "--now", crate::pull::UNIT_NAME]],
    });
    tree.boot("i-1", None, &format!("#cloud-config\n{document:#}\n"));
    assert_eq!(tree.read("var/lib/orch/enrolment.json"), "{}");
    assert_eq!(tree.mode("var/lib/orch/enrolment.json"), 0o400);
}
