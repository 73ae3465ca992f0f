//! Health checks: what is healthy is told from what is not, within a time limit, and what failed is tried again.

#![allow(clippy::unwrap_used, reason = "a test that cannot set its scene has failed")]

mod common;

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use common::{Tree, bytes, role};
use orch_model::{Health, HealthReport};

fn check(tree: &Tree, check: Health) -> HealthReport {
    let mut role = role();
    role.health = vec![check];
    tree.inspect(&role).health.remove(0)
}

/// A server that gives one answer to everybody, until the test ends. Its port.
fn serve(answer: &'static str) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || listener.incoming().flatten().for_each(|stream| reply(stream, answer)));
    port
}

fn reply(mut stream: TcpStream, answer: &str) {
    let mut request = [0; 1024];
    let _ = stream.read(&mut request);
    let _ = stream.write_all(answer.as_bytes());
}

fn closed_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

fn command(argv: &[&str]) -> Health {
    Health::Command(argv.iter().map(|word| String::from(*word)).collect())
}

#[test]
fn a_port_is_healthy_where_something_listens() {
    let (tree, port) = (Tree::new(), serve(""));
    let good = check(&tree, Health::Tcp(port));
    assert_eq!((good.check, good.healthy, good.why), (format!("tcp {port}"), true, None));
    let bad = check(&tree, Health::Tcp(closed_port()));
    assert!(!bad.healthy && bad.why.unwrap().contains("refused"));
}

#[test]
fn an_address_is_healthy_where_it_answers_with_success() {
    let tree = Tree::new();
    for (answer, is_healthy) in [
        ("HTTP/1.1 200 OK\r\n\r\n", true),
        ("HTTP/1.1 301 Moved\r\nLocation: /\r\n\r\n", true),
        ("HTTP/1.1 503 Service Unavailable\r\n\r\n", false),
        ("SSH-2.0-nothing\r\n", false),
        ("", false),
    ] {
        let port = serve(answer);
        for host in ["localhost", "127.0.0.1"] {
            let report = check(&tree, Health::Http(format!("http://{host}:{port}/healthz")));
            assert_eq!(report.healthy, is_healthy, "{answer:?} {report:?}");
        }
    }
    tree.write("/etc/hosts", "127.0.0.1 web web.example # itself\n");
    let port = serve("HTTP/1.1 200 OK\r\n\r\n");
    assert!(check(&tree, Health::Http(format!("http://web.example:{port}"))).healthy);
    for address in
        [format!("https://localhost:{port}/"), "http://elsewhere.example/".into(), "http://a b/".into()]
    {
        assert!(!check(&tree, Health::Http(address)).healthy);
    }
}

#[test]
fn a_program_is_healthy_where_it_ends_well_and_no_shell_reads_its_words() {
    let tree = Tree::new();
    assert!(check(&tree, command(&["true"])).healthy);
    assert!(check(&tree, command(&["test", "$(id)", "=", "$(id)"])).healthy);
    let failed = check(&tree, command(&["sh", "-c", "echo no good >&2; exit 3"]));
    assert_eq!(failed.why.as_deref(), Some("it ended with exit status: 3: no good"));
    assert!(check(&tree, command(&["no-such-program"])).why.unwrap().contains("cannot be run"));
    assert!(check(&tree, command(&["true; true"])).why.unwrap().contains("cannot be run"));
}

#[test]
fn a_unit_is_unhealthy_where_there_is_no_systemd() {
    let report = check(&Tree::new(), Health::Unit("nginx.service".parse().unwrap()));
    assert_eq!((report.healthy, report.why.as_deref()), (false, Some("no systemd here")));
}

#[test]
fn a_unit_that_the_node_cannot_have_is_not_held_against_it() {
    let tree = Tree::new();
    tree.write("/run/orch/shares-programs", "");
    let report = check(&tree, Health::Unit("nginx.service".parse().unwrap()));
    assert_eq!(
        (report.healthy, report.why.as_deref()),
        (true, Some("not checked: there is no systemd here"))
    );
}

#[test]
fn a_check_that_never_ends_is_ended() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut role = role();
    role.health = vec![
        Health::Http(format!("http://127.0.0.1:{}/", silent.local_addr().unwrap().port())),
        command(&["sleep", "1000"]),
    ];
    let begin = Instant::now();
    let output = Tree::new().run(&["health", "--limit", "1"], &bytes(&role));
    assert!(begin.elapsed() < Duration::from_secs(8), "{:?}", begin.elapsed());
    assert_eq!(output.status.code(), Some(1));
    let reports: Vec<HealthReport> = serde_json::from_slice(&output.stdout).unwrap();
    assert!(reports.iter().all(|report| !report.healthy && report.why.is_some()), "{reports:?}");
}

#[test]
fn what_fails_is_tried_again_until_it_passes() {
    let tree = Tree::new();
    let mut role = role();
    let [flag, tries] = ["/flag", "/tries"].map(|path| tree.at(path).display().to_string());
    role.health = vec![command(&["sh", "-c", "echo tried >> \"$1\"; test -e \"$0\"", &flag, &tries])];
    let waiting = tree.start(&["health", "--limit", "20"], &bytes(&role));
    let begin = Instant::now();
    // The first try is over when the second has begun; before that, nothing could make it pass.
    while std::fs::read_to_string(&tries).unwrap_or_default().lines().count() < 2 {
        assert!(begin.elapsed() < Duration::from_secs(10), "it is not tried again");
        thread::sleep(Duration::from_millis(10));
    }
    tree.write("/flag", "");
    let output = waiting.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert!(tree.read("/tries").lines().count() >= 2);
    assert!(begin.elapsed() < Duration::from_secs(10), "it does not wait for its limit");
}

#[test]
fn the_port_of_an_ssh_server_that_the_node_cannot_have_is_not_held_against_it() {
    let tree = Tree::new();
    tree.write("/run/orch/shares-programs", "");
    let mut role = role();
    role.ssh.port = closed_port();
    role.health = vec![Health::Tcp(role.ssh.port), Health::Tcp(closed_port())];
    let health = tree.inspect(&role).health;
    let why = health[0].why.as_deref();
    assert_eq!((health[0].healthy, why), (true, Some("not checked: there is no SSH server here")));
    assert!(!health[1].healthy);
    tree.write("/run/orch/sshd-wanted", "");
    assert!(!tree.inspect(&role).health[0].healthy);
}
