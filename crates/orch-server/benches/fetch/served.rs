//! The server in a process of its own: this program once more, with a word in its environment.

use std::env;
use std::io::{BufRead, BufReader, Read};
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::process::{Command, Stdio};

use orch_secrets::Identities;
use orch_server::{InOffice, Limits, SitePlace, nobody, system_clock};

use crate::process::Process;
use crate::site::{Site, root, server_folder};

/// Names the folder that the server's site and state are in.
const BASE: &str = "ORCH_BENCH_SERVER";
const LISTENING: &str = "listening on ";

/// A server that is at work.
pub(crate) struct Served {
    pub(crate) process: Process,
    pub(crate) address: SocketAddr,
}

impl Served {
    pub(crate) fn start(site: &Site) -> Self {
        let mut command = Command::new(env::current_exe().unwrap());
        command.env(BASE, site.path()).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.trim().strip_prefix(LISTENING).unwrap().parse().unwrap();
        Self { process: Process(child), address }
    }
}

pub(crate) fn is_asked_for() -> bool {
    env::var_os(BASE).is_some()
}

/// Serves until whoever started this is gone. Nothing is logged, and neither does nginx.
pub(crate) fn serve(workers: usize) {
    let base = env::var_os(BASE).unwrap();
    let base = Path::new(&base);
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = runtime.worker_threads(workers).enable_all().build().unwrap();
    let _inside = runtime.enter();
    let place = SitePlace { root: root(base), manifest: None, identities: Identities::default() };
    let folder = server_folder(base);
    let server = InOffice::enter(&folder, place, Limits::default(), system_clock(), nobody());
    let server = server.unwrap().unwrap();
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    println!("{LISTENING}{}", listener.local_addr().unwrap());
    server.listen(listener).unwrap();
    let _ = std::io::stdin().read(&mut [0]);
}
