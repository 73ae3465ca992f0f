//! What configures a node: told by a signal where there is no systemd, and the same by each of its faces.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;

use crate::common::{Lab, Need, ORCH, Outcome, Session, TIMEOUTS, lacks, node, spec, wait_until};

#[test]
fn another_port_for_ssh_cuts_no_connection_where_the_server_is_told_by_a_signal() {
    if lacks(&[Need::Root, Need::Ssh]) {
        return;
    }
    let lab = Lab::with_nodes(TIMEOUTS, &[&node("web")]);
    lab.orch("create -M lab -H father").ends_with(0);
    let is_open = |port| lab.listens("lab-web", port);
    // A server that was told to read its settings again lets go of its port for a moment.
    wait_until("it answers on its first port alone", || is_open(22) && !is_open(2222));
    let mut session = Session::open(&mut lab.command("ssh -M lab -H father web -- cat"));
    session.assert_answers("before");
    lab.write("postures/dev.yaml", "ssh: { port: 2222 }\nsudo: { nopasswd: true }\n");
    lab.write("specs/plain.yaml", &format!("{}health: [{{ tcp: 2222 }}]\n", spec("as wanted")));
    lab.orch("config -M lab -H father --json").ends_with(0).every_node_is("changed");
    session.assert_answers("after");
    session.close();
    wait_until("it answers on the other port alone", || !is_open(22) && is_open(2222));
    lab.orch("exec -M lab -H father -- true").ends_with(0);
    lab.orch("status -M lab -H father --json").ends_with(0).every_node_is("as-wanted");
    lab.orch("destroy -M lab -H father --yes").ends_with(0);
}

#[test]
fn every_face_of_what_configures_a_node_leaves_the_same_state() {
    if lacks(&[Need::Root]) {
        return;
    }
    let lab = Lab::with_nodes(TIMEOUTS, &[&node("web")]);
    lab.orch("create -M lab -H father").ends_with(0);
    let config = fs::read(lab.root("lab-web").join("var/lib/orch/spec.json")).unwrap();
    let file = lab.site.join("config.json");
    fs::write(&file, &config).unwrap();
    let delivery = lab.site.join("delivery.json");
    fs::write(&delivery, [b"{\"config\":", &config[..], b"}"].concat()).unwrap();
    let named = lab.site.join("orch-node");
    symlink(ORCH, &named).unwrap();
    let faces: [(&Path, &str); 4] = [
        (ORCH.as_ref(), "exec \"$0\" node --root \"$1\" push < \"$3\""),
        (ORCH.as_ref(), "exec \"$0\" node --root \"$1\" apply - < \"$2\""),
        (&named, "exec \"$0\" --root \"$1\" push < \"$3\""),
        (&named, "exec \"$0\" --root \"$1\" apply \"$2\""),
    ];
    let states = faces.map(|(program, script)| {
        let tree = tempfile::tempdir().unwrap();
        let mut command = Command::new("sh");
        command.args(["-c", script]).arg(program).arg(tree.path()).arg(&file).arg(&delivery);
        Outcome::of(&mut command, script).ends_with(0).says("\"complete\"");
        let mut state = BTreeMap::new();
        collect(tree.path(), tree.path(), &mut state);
        state
    });
    assert!(states[0].contains_key("etc/motd") && states[0].contains_key("home/ops"), "{:#?}", states[0]);
    for (state, (_, script)) in states.iter().zip(faces) {
        assert_eq!(state, &states[0], "{script}");
    }
    lab.orch("destroy -M lab -H father --yes").ends_with(0);
}

/// What tells of one apply alone, such as when it was, and the keys that every tree makes for itself.
const OF_ONE_APPLY: [&str; 6] = [
    "var/lib/orch/complete.json",
    "var/lib/orch/apply.lock",
    "var/lib/orch/apply.log",
    "var/lib/orch/age.key",
    "var/lib/orch/keys.json",
    "var/lib/orch/keys.lock",
];

/// Every file below a folder with its mode and content.
fn collect(root: &Path, folder: &Path, state: &mut BTreeMap<String, (u32, Vec<u8>)>) {
    for entry in fs::read_dir(folder).unwrap().flatten() {
        let (path, found) = (entry.path(), entry.metadata().unwrap());
        let name = path.strip_prefix(root).unwrap().display().to_string();
        if OF_ONE_APPLY.contains(&name.as_str()) {
            continue;
        }
        let content = if found.is_file() { fs::read(&path).unwrap() } else { Vec::new() };
        state.insert(name, (found.permissions().mode(), content));
        if found.is_dir() {
            collect(root, &path, state);
        }
    }
}
