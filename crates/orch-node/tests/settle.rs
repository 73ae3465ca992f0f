//! A real SSH server that is told to show the node's own key, in namespaces of its own: nothing of this machine is touched.

#![allow(clippy::unwrap_used, reason = "a test that cannot set its scene has failed")]
#![allow(clippy::panic, reason = "a test that cannot read an answer has failed")]
#![allow(clippy::print_stdout, reason = "a test that is skipped says so")]

mod common;

use std::path::Path;
use std::process::Command;

use common::is_root;
use orch_model::NodeKeys;

/// Says which key the server shows before, after the keys are made, and after it is told to show its own. What it is told
/// takes it a moment.
const SCENE: &str = r#"
mount -t tmpfs none /run && mount -t tmpfs none /var/lib && mount -t tmpfs none /etc/ssh || exit 9
chmod 0755 /run /var/lib /etc/ssh && mkdir -p /run/sshd && ip link set lo up || exit 9
ssh-keygen -q -t ed25519 -N '' -f /etc/ssh/ssh_host_ed25519_key || exit 9
printf 'HostKey /etc/ssh/ssh_host_ed25519_key\nListenAddress 127.0.0.1\nPort 2222\n' > /etc/ssh/sshd_config
/usr/sbin/sshd -f /etc/ssh/sshd_config || exit 9
shown() {
    for try in 1 2 3 4 5 6 7 8 9; do
        key=$(ssh-keyscan -t ed25519 -p 2222 127.0.0.1 2>/dev/null | cut -d' ' -f2-)
        test -n "$key" && test "$key" != "$1" && break
        sleep 0.2
    done
    echo "$key"
}
given=$(shown)
echo "$given"
"$1" keys || exit 1
shown
"$1" settle || exit 1
shown "$given"
cat /etc/ssh/ssh_host_ed25519_key.pub
"#;

#[test]
fn a_real_server_shows_the_own_key_from_the_moment_it_is_told_to() {
    let programs = ["/usr/sbin/sshd", "/usr/bin/ssh-keyscan", "/usr/bin/ssh-keygen", "/usr/bin/unshare"];
    if !is_root() || !programs.iter().all(|path| Path::new(path).exists()) {
        println!("skipped: needs root, and an SSH server with its programs");
        return;
    }
    let output = Command::new("unshare")
        .args(["--mount", "--pid", "--net", "--fork", "--mount-proc", "--kill-child=KILL"])
        .args(["sh", "-c", SCENE, "sh", env!("CARGO_BIN_EXE_orch-node")])
        .output()
        .unwrap();
    if output.status.code() == Some(9) {
        println!("skipped: the scene cannot be set here: {output:?}");
        return;
    }
    let said = String::from_utf8(output.stdout.clone()).unwrap();
    let [given, made, before, settled, after, public] = said.lines().collect::<Vec<_>>()[..] else {
        panic!("{output:?}")
    };
    let [made, settled]: [NodeKeys; 2] = [made, settled].map(|line| serde_json::from_str(line).unwrap());
    let own = made.host_key.as_ref().unwrap().as_str();
    assert!(!made.settled);
    assert_eq!(settled, NodeKeys { settled: true, ..made.clone() });
    assert_eq!(before, given, "it shows what it was given until it is told otherwise");
    assert_eq!((after, public), (own, own));
    assert_ne!(given, own);
}
