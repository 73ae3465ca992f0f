//! One connection for each node, whoever uses it, and nothing left of it afterwards.

use std::fs;
use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _};
use std::path::Path;
use std::time::Duration;

use orch_run::Door;
use tokio::task::JoinSet;

use crate::scene::{Scene, argv};
use crate::sshd::{self, until};

const SOON: Duration = Duration::from_secs(20);

#[tokio::test(flavor = "multi_thread")]
async fn many_programs_at_once_share_one_connection() {
    if !sshd::is_there() {
        return;
    }
    let scene = std::sync::Arc::new(Scene::new());
    let server = scene.server();
    let node = scene.node(vec![server.plan.hop("web")]);
    let mut programs = JoinSet::new();
    // Far more than a server lets one connection have at once.
    for number in 0..30 {
        let (scene, node) = (std::sync::Arc::clone(&scene), node.clone());
        programs.spawn(async move {
            let ended = scene.ssh.exec(&node, &argv(&["echo", &number.to_string()]), SOON).await.unwrap();
            assert_eq!(ended.stdout, format!("{number}\n").into_bytes());
        });
    }
    programs.join_all().await;
    assert_eq!(server.accepted(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_that_died_is_made_again_when_it_is_next_needed() {
    if !sshd::is_there() {
        return;
    }
    let scene = Scene::new();
    let server = scene.server();
    let node = scene.node(vec![server.plan.hop("web")]);
    let ours = || sshd::processes_with(&scene.folder.display().to_string());
    // The server's end dies; then ours does, and leaves its socket behind.
    let deaths: [&dyn Fn(); 2] = [&|| server.cut(), &|| ours().into_iter().for_each(sshd::kill)];
    for (count, die) in deaths.into_iter().enumerate() {
        let connection = scene.ssh.reach(&node).await.unwrap();
        die();
        while connection.is_alive().await {
            tokio::task::yield_now().await;
        }
        let ended = scene.ssh.exec(&node, &argv(&["true"]), SOON).await.unwrap();
        assert_eq!((ended.code, server.accepted()), (Some(0), count + 2));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_folder_with_spaces_serves_as_well_as_any() {
    if !sshd::is_there() {
        return;
    }
    let long = "it's 100% \"long\" ".repeat(8);
    let scene = Scene::with(&format!("{long}/{long}"), |_| {});
    let (outer, inner) = (scene.server(), scene.server());
    let node = scene.node(vec![outer.plan.hop("outer"), inner.plan.hop("inner")]);
    let ended = scene.ssh.exec(&node, &argv(&["echo", "here"]), SOON).await.unwrap();
    assert_eq!((&*ended.stdout, outer.accepted(), inner.accepted()), (&b"here\n"[..], 1, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn files_are_for_their_user_alone() {
    if !sshd::is_there() {
        return;
    }
    let scene = Scene::new();
    let server = scene.server();
    let _connection = scene.ssh.reach(&scene.node(vec![server.plan.hop("web")])).await.unwrap();
    let check = |path: &Path| {
        let meta = fs::symlink_metadata(path).unwrap();
        let allowed = if meta.is_dir() { 0o700 } else { 0o600 };
        let is_wide = meta.permissions().mode() & 0o777 & !allowed != 0;
        assert!(!is_wide, "{}", path.display());
        u32::from(meta.file_type().is_socket())
    };
    check(&scene.folder);
    let runs = fs::read_dir(&scene.folder).unwrap().flatten().map(|entry| entry.path()).collect::<Vec<_>>();
    assert_eq!(runs.len(), 1);
    check(&runs[0]);
    let sockets: u32 = fs::read_dir(&runs[0]).unwrap().flatten().map(|entry| check(&entry.path())).sum();
    assert_eq!(sockets, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_left_when_it_is_closed_or_dropped_though_a_program_still_runs() {
    if !sshd::is_there() {
        return;
    }
    for by_dropping in [false, true] {
        let scene = Scene::new();
        let server = scene.server();
        let node = scene.node(vec![server.plan.hop("web")]);
        let mark = format!("876{}", std::process::id());
        let running = scene.ssh.reach(&node).await.unwrap();
        let words = argv(&["sleep", &mark]);
        let program = tokio::spawn(async move {
            use orch_providers::remote::{Remote, RunAs};
            running.run(&words, RunAs::Itself, &[], SOON).await
        });
        while sshd::processes_with(&mark).is_empty() {
            tokio::task::yield_now().await;
        }
        let name = scene.folder.display().to_string();
        assert!(!sshd::processes_with(&name).is_empty(), "the control: a connection is seen");
        if by_dropping {
            program.abort();
            let _ = program.await;
            drop(scene.ssh);
            assert!(!Path::new(&name).exists() || fs::read_dir(&name).unwrap().count() == 0);
        } else {
            scene.ssh.close().await;
            assert!(program.await.unwrap().is_err(), "whoever used it is told");
            until("the folder is empty", || scene.files().is_empty());
        }
        until("no ssh is left", || sshd::processes_with(&name).is_empty());
    }
}
