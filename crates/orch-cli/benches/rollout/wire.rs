//! A long wire, for kernels that cannot delay packets by themselves (`netem`): an `ssh` whose connections go through this program,
//! which hands on what it reads after half of the latency, in both directions.
//!
//! Not a network: nothing is lost or reordered, and the opening of a connection is charged with one round trip, as TCP takes it.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

/// Puts an `ssh` into a folder, for the front of `PATH`, that this program stands behind. `ways` is the configuration of the nodes; what
/// it says of the way to each is kept in a file of the node's address, one word in each line.
pub(crate) fn put_ssh_into(folder: &Path, latency: Duration, ways: &str) {
    fs::create_dir_all(folder).unwrap();
    let mut address = "";
    for line in ways.lines().map(str::trim) {
        if let Some(name) = line.strip_prefix("HostName ") {
            address = name;
        } else if let Some(way) = line.strip_prefix("ProxyCommand ") {
            fs::write(folder.join(address), way.split(' ').collect::<Vec<_>>().join("\n")).unwrap();
        }
    }
    let script = format!(
        "#!/bin/sh\nexec /usr/bin/ssh -o ProxyCommand='{} --wire {}/%h {}' \"$@\"\n",
        std::env::current_exe().unwrap().display(),
        folder.display(),
        latency.as_millis()
    );
    let path = folder.join("ssh");
    fs::write(&path, script).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// Is the wire, where the arguments say so: `--wire WAY MILLISECONDS`.
pub(crate) fn is_wire(arguments: &[String]) -> bool {
    let [_, word, way, latency] = arguments else { return false };
    if word != "--wire" {
        return false;
    }
    let latency = Duration::from_millis(latency.parse().unwrap());
    thread::sleep(latency);
    let way = fs::read_to_string(way).unwrap();
    let mut words = way.lines();
    let mut command = Command::new(words.next().unwrap());
    let mut end = command.args(words).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let (into, from) = (end.stdin.take().unwrap(), end.stdout.take().unwrap());
    thread::spawn(move || carry(std::io::stdin(), into, latency / 2));
    // The end of what the node says is the end of the connection.
    carry(from, std::io::stdout(), latency / 2);
    let _ = end.kill();
    let _ = end.wait();
    true
}

/// Hands on everything, each piece so much later than it came.
fn carry(mut from: impl Read + Send, mut into: impl Write, delay: Duration) {
    let (give, take) = mpsc::channel::<(Instant, Vec<u8>)>();
    thread::scope(|scope| {
        scope.spawn(move || {
            let mut piece = vec![0; 64 << 10];
            while let Ok(length @ 1..) = from.read(&mut piece) {
                if give.send((Instant::now() + delay, piece[..length].to_vec())).is_err() {
                    return;
                }
            }
        });
        for (due, piece) in take {
            thread::sleep(due.saturating_duration_since(Instant::now()));
            if into.write_all(&piece).and_then(|()| into.flush()).is_err() {
                return;
            }
        }
    });
}
