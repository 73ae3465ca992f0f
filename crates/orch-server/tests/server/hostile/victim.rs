//! A server in a process of its own: this test program once more, with a word in its environment.

use std::env;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use orch_server::Limits;

use crate::scene::{NOW, Scene, serve};

/// Names the folder that the server's site and state are in.
const BASE: &str = "ORCH_TEST_VICTIM";
/// How many connections it takes.
const ROOM: &str = "ORCH_TEST_VICTIM_ROOM";
const LISTENING: &str = "listening on ";

/// How long it waits for what is sent to it, and for somebody to read.
pub(crate) const PATIENCE: Duration = Duration::from_secs(2);

/// A server that is attacked. Killed when this goes.
pub(crate) struct Victim {
    pub(crate) scene: Scene,
    process: Child,
}

impl Victim {
    pub(crate) fn new() -> Self {
        Self::of(Scene::without_server(), Limits::default().connections)
    }

    pub(crate) fn of(mut scene: Scene, connections: usize) -> Self {
        let mut process = Command::new(env::current_exe().unwrap())
            .args(["--exact", "hostile::victim::a_server_in_a_process_of_its_own", "--nocapture"])
            .env(BASE, scene.base.path())
            .env(ROOM, connections.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let said = BufReader::new(process.stdout.take().unwrap()).lines().map(Result::unwrap);
        let address = { said }.find_map(|line| Some(line.strip_prefix(LISTENING)?.parse().unwrap()));
        scene.is_served_at(address.unwrap());
        Self { scene, process }
    }

    /// What it has in memory, in KiB.
    pub(crate) fn memory(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.process.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        line.trim().trim_end_matches(" kB").parse().unwrap()
    }

    /// How many files it has open.
    pub(crate) fn files(&self) -> usize {
        std::fs::read_dir(format!("/proc/{}/fd", self.process.id())).unwrap().count()
    }
}

impl Drop for Victim {
    fn drop(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}

/// The other side of [`Victim`]. It is a test so that the test program has a way to be the server; by itself it is nothing.
#[test]
fn a_server_in_a_process_of_its_own() {
    let Some(base) = env::var_os(BASE) else { return };
    let connections = env::var(ROOM).unwrap().parse().unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let _inside = runtime.enter();
    let wait = Duration::from_secs(20);
    let limits = Limits { connections, wait, ..crate::scene::patience_of(PATIENCE) };
    let clock: orch_server::Clock = Arc::new(|| NOW);
    let (_server, address) = serve(Path::new(&base), &limits, &clock);
    println!("\n{LISTENING}{address}");
    // Whoever started it is gone then.
    let _ = std::io::stdin().read(&mut [0]);
}
