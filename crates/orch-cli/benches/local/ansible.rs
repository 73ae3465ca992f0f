//! Ansible doing the same over the same SSH servers: pipelining on, as many forks as nodes, no facts, connections kept as
//! it keeps them by default.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::site::Site;

pub(crate) struct Ansible;

/// The nodes of a site, as Ansible knows them.
pub(crate) struct Inventory {
    folder: PathBuf,
    forks: usize,
}

impl Ansible {
    /// Whether it is on this computer.
    pub(crate) fn is_here() -> bool {
        let found =
            Command::new("ansible").arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
        found.is_ok_and(|status| status.success())
    }

    pub(crate) fn inventory(site: &Site) -> Inventory {
        let folder = site.path("ansible");
        fs::create_dir_all(&folder).unwrap();
        let config = site.command("ssh-config").stdout(Stdio::piped()).output().unwrap();
        assert!(config.status.success());
        fs::write(folder.join("ssh_config"), config.stdout).unwrap();
        let hosts: String =
            (1..=site.nodes).fold(String::new(), |hosts, number| hosts + &format!("node-{number}\n"));
        let common = format!("-F {}/ssh_config", folder.display());
        fs::write(folder.join("hosts"), format!("{hosts}\n[all:vars]\nansible_user=root\nansible_ssh_common_args={common}\nansible_python_interpreter=/usr/bin/python3\n")).unwrap();
        // A path for its sockets that is short enough.
        let settings = "[defaults]\nhost_key_checking=False\n[ssh_connection]\npipelining=True\ncontrol_path_dir=/tmp/.orch-bench-ansible\n";
        fs::write(folder.join("ansible.cfg"), settings).unwrap();
        Inventory { folder, forks: site.nodes }
    }
}

impl Inventory {
    /// Puts a text into the file on every node.
    pub(crate) fn copy(&self, text: &str) {
        let content = serde_json::to_string(text).unwrap();
        let play = format!(
            "[{{ \"hosts\": \"all\", \"gather_facts\": false, \"tasks\": [{{ \"copy\": {{ \"content\": {content}, \
             \"dest\": \"/etc/motd\", \"mode\": \"0644\" }} }}] }}]\n"
        );
        fs::write(self.folder.join("play.yml"), play).unwrap();
        self.run(Command::new("ansible-playbook").arg("play.yml"));
    }

    /// Runs one program on every node.
    pub(crate) fn raw(&self, program: &str) {
        self.run(Command::new("ansible").args(["all", "-m", "raw", "-a", program]));
    }

    fn run(&self, command: &mut Command) {
        command.args(["-i", "hosts", "-f", &self.forks.to_string()]).current_dir(&self.folder);
        command
            .env("ANSIBLE_CONFIG", self.folder.join("ansible.cfg"))
            .env("ANSIBLE_LOCAL_TEMP", self.folder.join("tmp"));
        let output = command.stdin(Stdio::null()).output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "ansible failed: {said}{}", String::from_utf8_lossy(&output.stderr));
    }
}
