//! A configuration on its way: through a cut connection, given up half-way, with a program that is not there yet.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use orch_model::{ApplyReport, ApplyStatus, Mode, ResourceReport};
use orch_providers::push::{Binary, Program};
use orch_providers::remote::{Remote, RunAs};
use orch_run::{Configured, Door, Transport, TransportError};

use crate::scene::{Scene, argv, config};
use crate::sshd::{self, Plan, until};

const SOON: Duration = Duration::from_secs(20);

/// A program in the place of the real one, that does with its words and its input what these tests need: it hangs the
/// first time that it is asked to push where it is told to, and answers after that.
struct StandIn {
    folder: PathBuf,
}

impl StandIn {
    fn new(scene: &Scene) -> Self {
        let folder = scene.base.path().join("stand in");
        fs::create_dir(&folder).unwrap();
        let config = config();
        let resource = ResourceReport {
            kind: "file".into(),
            name: "/etc/orch-test".into(),
            changed: true,
            skipped: None,
            detail: None,
        };
        let answer = ApplyReport {
            health: Vec::new(),
            phase: "config".into(),
            status: ApplyStatus::Complete,
            node: config.node.clone(),
            spec: config.spec.clone(),
            spec_digest: config.digest(),
            mode: Mode::Push,
            started_at: "2026-01-01T00:00:00Z".into(),
            finished_at: "2026-01-01T00:00:01Z".into(),
            attempts: 1,
            resources: vec![resource],
            error: None,
        };
        fs::write(folder.join("answer"), serde_json::to_string(&answer).unwrap()).unwrap();
        fs::write(folder.join("program"), Self::text(&folder)).unwrap();
        fs::set_permissions(folder.join("program"), fs::Permissions::from_mode(0o755)).unwrap();
        Self { folder }
    }

    fn text(folder: &std::path::Path) -> String {
        format!(
            "#!/bin/sh\ncd '{}' || exit 9\necho \"$@\" >> said\ncase $1 in\n  push)\n    cat > given\n    if [ -e hang ]; then \
             rm hang; echo hanging >&2; sleep 100; fi\n    cat answer; echo ;;\n  cancel) touch cancelled ;;\nesac\n",
            folder.display()
        )
    }

    fn program(&self) -> Program {
        Program::There(self.file("program").to_str().unwrap().to_owned())
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    fn hang_once(&self) {
        fs::write(self.file("hang"), "").unwrap();
    }

    /// Waits until a push hangs.
    async fn hangs(&self) {
        while self.file("hang").exists() {
            tokio::task::yield_now().await;
        }
    }

    /// The first words of everything that it was asked.
    fn said(&self) -> Vec<String> {
        let said = fs::read_to_string(self.file("said")).unwrap_or_default();
        said.lines().map(|line| line.split(' ').next().unwrap().to_owned()).collect()
    }
}

fn changed() -> Configured {
    Configured { changed: true, notes: vec![], keys: None }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_push_is_one_run_of_the_program_with_the_whole_configuration() {
    if !sshd::is_there() {
        return;
    }
    let scene = Scene::new();
    let (server, node) = (scene.server(), StandIn::new(&scene));
    let target = scene.node_with(vec![server.plan.hop("web")], node.program());
    let done = scene.ssh.configure(&target, &config(), &scene.permit()).await.unwrap();
    assert_eq!((done, node.said()), (changed(), vec!["push".to_owned()]));
    let given: orch_model::Delivery = serde_json::from_slice(&fs::read(node.file("given")).unwrap()).unwrap();
    assert_eq!(given, orch_model::Delivery { config: config(), parcel: None });
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_that_is_cut_while_the_node_works_is_made_again_and_the_node_asked_again() {
    if !sshd::is_there() {
        return;
    }
    let scene = Scene::new();
    let (server, node) = (scene.server(), StandIn::new(&scene));
    node.hang_once();
    let target = scene.node_with(vec![server.plan.hop("web")], node.program());
    let (config, permit) = (config(), scene.permit());
    let cut = async {
        node.hangs().await;
        server.cut();
    };
    let (done, ()) = tokio::join!(scene.ssh.configure(&target, &config, &permit), cut);
    assert_eq!(done.unwrap(), changed());
    assert_eq!((node.said(), server.accepted()), (vec!["push".to_owned(), "push".to_owned()], 2));
    assert!(!node.file("cancelled").exists(), "nobody gave up");
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_gives_up_waiting_ends_the_work_on_the_node() {
    if !sshd::is_there() {
        return;
    }
    let scene = Scene::new();
    let (server, node) = (scene.server(), StandIn::new(&scene));
    node.hang_once();
    let target = scene.node_with(vec![server.plan.hop("web")], node.program());
    let (config, permit) = (config(), scene.permit());
    tokio::select! {
        ended = scene.ssh.configure(&target, &config, &permit) => panic!("it hangs: {ended:?}"),
        () = node.hangs() => {}
    }
    scene.ssh.close().await;
    assert!(node.file("cancelled").exists(), "it was told before the connection was closed");
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_pushed_to_a_host_whose_lock_is_not_held() {
    let scene = Scene::new();
    let mut target = scene.node(vec![]);
    target.identity = "m.web@mother".parse().unwrap();
    let error = scene.ssh.configure(&target, &config(), &scene.permit()).await.unwrap_err();
    assert!(error.to_string().ends_with("the lock of its host is not held"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_that_is_not_on_the_node_is_brought_there_once() {
    if !sshd::is_there() || !sshd::is_root() {
        return;
    }
    let scene = Scene::new();
    let (server, node) = (Plan::new(&scene.key).start_apart(), StandIn::new(&scene));
    let program = Program::Upload(Arc::new(Binary::read(&node.file("program")).unwrap()));
    let target = scene.node_with(vec![server.plan.hop("web")], program.clone());
    for _ in 0..2 {
        let done = scene.ssh.configure(&target, &config(), &scene.permit()).await.unwrap();
        assert_eq!(done, changed());
    }
    let there = scene.ssh.reach(&target).await.unwrap();
    let shown = there.run(&argv(&["ls", "/var/lib/orch/bin"]), RunAs::Root, &[], SOON).await.unwrap();
    let shown = String::from_utf8(shown.stdout).unwrap();
    assert_eq!(format!("/var/lib/orch/bin/{}", shown.trim()), program.path(), "it alone, and no draft");
    let modes = argv(&["stat", "-c", "%a", "/var/lib/orch", program.path()]);
    let shown = there.run(&modes, RunAs::Root, &[], SOON).await.unwrap();
    assert_eq!(shown.stdout, b"700\n755\n");
    assert_eq!(node.said(), ["push", "push"]);
    assert!(!PathBuf::from(program.path()).exists(), "this machine has nothing of it");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cut_while_the_program_is_brought_leaves_nothing_that_counts_and_is_healed() {
    if !sshd::is_there() || !sshd::is_root() {
        return;
    }
    let scene = Scene::new();
    let (server, node) = (Plan::new(&scene.key).start_apart(), StandIn::new(&scene));
    // Enough that it is still on its way when the connection is cut.
    let mut bytes = fs::read(node.file("program")).unwrap();
    bytes.extend(b"exit\n".iter().chain(std::iter::repeat_n(&b'\n', 64 << 20)));
    let program = Program::Upload(Arc::new(Binary::new(bytes)));
    let target = scene.node_with(vec![server.plan.hop("web")], program.clone());
    let (config, permit) = (config(), scene.permit());
    let cut = async {
        while sshd::processes_with(&format!("of={}", program.path())).is_empty() {
            tokio::task::yield_now().await;
        }
        server.cut();
    };
    let (done, ()) = tokio::join!(scene.ssh.configure(&target, &config, &permit), cut);
    assert_eq!(done.unwrap(), changed());
    assert_eq!(server.accepted(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_without_the_program_is_looked_at_without_being_given_it() {
    if !sshd::is_there() || !sshd::is_root() {
        return;
    }
    let scene = Scene::new();
    let (server, node) = (Plan::new(&scene.key).start_apart(), StandIn::new(&scene));
    let program = Program::Upload(Arc::new(Binary::read(&node.file("program")).unwrap()));
    let target = scene.node_with(vec![server.plan.hop("web")], program);
    let error = scene.ssh.inspect(&target, &config()).await.unwrap_err();
    assert!(matches!(error, TransportError::Failed { .. }), "{error}");
    assert!(error.to_string().ends_with("the program that configures it is not there yet"), "{error}");
    let there = scene.ssh.exec(&target, &argv(&["ls", "/var/lib/orch"]), SOON).await.unwrap();
    assert_eq!(there.code, Some(2), "nothing was made");
    until("nothing was asked", || node.said().is_empty());
}
