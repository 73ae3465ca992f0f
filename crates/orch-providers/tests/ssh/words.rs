//! What is said to a program on a node, and what it answers.

use std::fs;
use std::time::Duration;

use orch_providers::push::Program;
use orch_providers::remote::{Remote, RunAs};
use orch_providers::ssh::Way;
use orch_run::{Door, TransportError};

use crate::scene::{Scene, argv};
use crate::sshd::{self, until};

const SOON: Duration = Duration::from_secs(20);

#[tokio::test(flavor = "multi_thread")]
async fn every_argument_reaches_the_program_unchanged() {
    if !sshd::is_there() {
        return;
    }
    let hostile = [
        "",
        " ",
        "a b",
        "'",
        "it's",
        "\"",
        "\\",
        "\n",
        "a\nb",
        "$HOME",
        "$(id)",
        "`id`",
        ";",
        "; exit 7",
        "&&",
        "|",
        ">x",
        "*",
        "~",
        "#x",
        "!x",
        "--",
        "-n",
        "A=b",
        "ü",
        "\u{1f980}",
        "\t",
    ];
    let scene = Scene::new();
    let server = scene.server();
    let node = scene.node(vec![server.plan.hop("web")]);
    let words = [&["printf", "%s\\0"][..], &hostile].concat();
    let ended = scene.ssh.exec(&node, &argv(&words), SOON).await.unwrap();
    let shown = String::from_utf8(ended.stdout).unwrap();
    let shown: Vec<&str> = shown.strip_suffix('\0').unwrap().split('\0').collect();
    assert_eq!(shown, hostile);
}

#[tokio::test(flavor = "multi_thread")]
async fn how_a_program_ended_is_told_as_it_was() {
    if !sshd::is_there() {
        return;
    }
    let scene = Scene::new();
    let server = scene.server();
    let node = scene.ssh.reach(&scene.node(vec![server.plan.hop("web")])).await.unwrap();
    for code in [0, 1, 3, 4, 124, 126, 127, 255] {
        let words = argv(&["sh", "-c", &format!("echo out; echo err >&2; exit {code}")]);
        let ended = node.run(&words, RunAs::Itself, &[], SOON).await.unwrap();
        assert_eq!((ended.code, &*ended.stdout, &*ended.stderr), (Some(code), &b"out\n"[..], &b"err\n"[..]));
    }
    let ended = node.run(&argv(&["sh", "-c", "kill -9 $$"]), RunAs::Itself, &[], SOON).await.unwrap();
    assert_eq!(ended.code, None, "a signal ended it");
    assert!(node.is_alive().await);
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_that_a_program_says_last_is_lost() {
    if !sshd::is_there() {
        return;
    }
    let scene = Scene::new();
    let server = scene.server();
    let node = scene.ssh.reach(&scene.node(vec![server.plan.hop("web")])).await.unwrap();
    let words = argv(&["sh", "-c", "head -c 300000 /dev/zero >&2; echo last >&2; echo last"]);
    for _ in 0..20 {
        let ended = node.run(&words, RunAs::Itself, &[], SOON).await.unwrap();
        assert_eq!((ended.stdout.len(), ended.stderr.len()), (5, 300_005));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_that_is_not_there_ends_with_127_also_behind_sudo() {
    if !sshd::is_there() || !sshd::is_root() {
        return;
    }
    let scene = Scene::new();
    let server = scene.server();
    for sudo in [false, true] {
        let program = Program::There("/nowhere".into());
        let target = scene.node_by(Way { hops: vec![server.plan.hop("web")], program, sudo });
        let node = scene.ssh.reach(&target).await.unwrap();
        let ended = node.run(&argv(&["/no such/program"]), RunAs::Root, &[], SOON).await.unwrap();
        assert_eq!(ended.code, Some(127), "sudo: {sudo}");
        let ended = node.run(&argv(&["printenv", "SUDO_UID"]), RunAs::Root, &[], SOON).await.unwrap();
        assert_eq!(ended.code == Some(0), sudo, "sudo is used where it is needed, and only there");
        let ended = node.run(&argv(&["printenv", "SUDO_UID"]), RunAs::Itself, &[], SOON).await.unwrap();
        assert_eq!(ended.code, Some(1), "and never for what is run as the account itself");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_large_input_comes_back_whole_and_an_unwanted_one_is_no_error() {
    if !sshd::is_there() {
        return;
    }
    let scene = Scene::new();
    let server = scene.server();
    let node = scene.ssh.reach(&scene.node(vec![server.plan.hop("web")])).await.unwrap();
    let input: Vec<u8> = (0_u32..2_000_000).flat_map(u32::to_le_bytes).collect();
    let ended = node.run(&argv(&["cat"]), RunAs::Itself, &input, SOON).await.unwrap();
    assert!(ended.stdout == input, "8 MB went there and back");
    let ended = node.run(&argv(&["true"]), RunAs::Itself, &input, SOON).await.unwrap();
    assert_eq!(ended.code, Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn of_a_program_that_floods_us_the_end_is_kept_and_that_is_said() {
    if !sshd::is_there() {
        return;
    }
    let scene = Scene::new();
    let server = scene.server();
    let node = scene.ssh.reach(&scene.node(vec![server.plan.hop("web")])).await.unwrap();
    let flood = "head -c 40000000 /dev/zero; echo the end; printf 'a word' >&2";
    let ended = node.run(&argv(&["sh", "-c", flood]), RunAs::Itself, &[], SOON).await.unwrap();
    assert_eq!((ended.code, ended.stdout.len()), (Some(0), 8 << 20));
    assert!(ended.stdout.ends_with(b"\0the end\n"));
    let said = String::from_utf8(ended.stderr).unwrap();
    let wanted = "a word\norch: the first 31611400 bytes of standard output were left out";
    assert!(said.starts_with(wanted), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_past_its_limit_is_ended_on_the_node() {
    if !sshd::is_there() {
        return;
    }
    let scene = Scene::new();
    let server = scene.server();
    let node = scene.node(vec![server.plan.hop("web")]);
    let file = scene.base.path().join("pid");
    let line = format!("echo $$ > '{}'; echo begun; exec sleep 100", file.display());
    let error = scene.ssh.exec(&node, &argv(&["sh", "-c", &line]), Duration::from_secs(1)).await.unwrap_err();
    assert!(error.to_string().ends_with("`sh` did not end within 1s and was ended"), "{error}");
    assert_eq!(error.evidence(), ["begun"]);
    let pid = fs::read_to_string(&file).unwrap();
    until("the program is gone", || !fs::exists(format!("/proc/{}", pid.trim())).unwrap());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_a_program_is_refused_before_anything_is_said() {
    if !sshd::is_there() {
        return;
    }
    let scene = Scene::new();
    let server = scene.server();
    let node = scene.node(vec![server.plan.hop("web")]);
    for words in [&[][..], &[""], &["-c"], &["A=b"]] {
        let error = scene.ssh.exec(&node, &argv(words), SOON).await.unwrap_err();
        assert!(matches!(error, TransportError::Unasked { .. }), "{words:?}: {error}");
    }
    assert_eq!(server.accepted(), 0);
}
