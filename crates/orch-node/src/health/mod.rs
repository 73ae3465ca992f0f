//! Whether the node is healthy: ports that answer, addresses, units, and programs that end well. Each check has its time
//! limit.

mod http;

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use orch_model::{Config, Health, HealthReport};

use crate::node::Node;
use crate::resource::SHARES_PROGRAMS;
use crate::ssh_server;
use crate::systemd::Systemd;
use crate::tool::Tool;

/// How long one check may take.
const ONE_CHECK: Duration = Duration::from_secs(10);
/// How long to wait before what failed is tried again.
const PAUSE: Duration = Duration::from_millis(250);
/// The port of an SSH server that nobody has said another of.
const USUAL_SSH_PORT: u16 = 22;
/// The addresses by which a node reaches itself.
const ITSELF: [IpAddr; 2] = [IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)];

/// Does every check once, all at the same time.
pub(crate) fn check(node: &Node, config: &Config) -> Vec<HealthReport> {
    Checks::of(node, config).all(ONE_CHECK)
}

/// Repeats the checks that fail until all pass or the limit is over.
pub(crate) fn wait_until_healthy(node: &Node, config: &Config, limit: Duration) -> Vec<HealthReport> {
    Checks::of(node, config).repeated(limit)
}

/// The same for checks that come without a configuration. Without a limit each is done once.
pub(crate) fn wait_for(node: &Node, list: &[Health], limit: Duration) -> Vec<HealthReport> {
    let checks = Checks::new(node, list, USUAL_SSH_PORT);
    if limit.is_zero() { checks.all(ONE_CHECK) } else { checks.repeated(limit) }
}

/// The checks of a configuration, on a node.
struct Checks<'a> {
    node: &'a Node,
    list: &'a [Health],
    /// The port of an SSH server that this node does not have.
    missing_ssh: Option<u16>,
    /// Whether there is no systemd on a node that cannot have one: its services are skipped, and so are checks of them.
    lacks_systemd: bool,
}

impl<'a> Checks<'a> {
    fn of(node: &'a Node, config: &'a Config) -> Self {
        Self::new(node, &config.role.health, config.role.ssh.port)
    }

    fn new(node: &'a Node, list: &'a [Health], ssh_port: u16) -> Self {
        // A node that shares its machine's programs has no SSH server where the machine has none.
        let shares = node.has(SHARES_PROGRAMS);
        let is_missing = shares && !node.has(ssh_server::WANTED);
        Self {
            node,
            list,
            missing_ssh: is_missing.then_some(ssh_port),
            lacks_systemd: shares && Systemd::of(node).is_none(),
        }
    }

    /// Repeats those that fail until all pass or the limit is over.
    fn repeated(&self, limit: Duration) -> Vec<HealthReport> {
        let deadline = Instant::now() + limit;
        let left = || deadline.saturating_duration_since(Instant::now());
        let mut reports = self.all(ONE_CHECK.min(limit));
        while !left().is_zero() && reports.iter().any(|report| !report.healthy) {
            std::thread::sleep(PAUSE.min(left()));
            self.again(&mut reports, left().max(PAUSE).min(ONE_CHECK));
        }
        reports
    }

    /// Does every check, all at the same time.
    fn all(&self, limit: Duration) -> Vec<HealthReport> {
        std::thread::scope(|scope| {
            let running: Vec<_> =
                self.list.iter().map(|check| scope.spawn(move || self.one(check, limit))).collect();
            running.into_iter().map(|check| check.join().expect("a check does not panic")).collect()
        })
    }

    /// Does those that failed once more, all at the same time.
    fn again(&self, reports: &mut [HealthReport], limit: Duration) {
        std::thread::scope(|scope| {
            let failed = self.list.iter().zip(reports).filter(|(_, report)| !report.healthy);
            for (check, report) in failed {
                scope.spawn(move || *report = self.one(check, limit));
            }
        });
    }

    fn one(&self, check: &Health, limit: Duration) -> HealthReport {
        let (words, outcome) = match check {
            Health::Tcp(port) if self.missing_ssh == Some(*port) => {
                let why = Some("not checked: there is no SSH server here".into());
                return HealthReport { check: format!("tcp {port}"), healthy: true, why };
            }
            Health::Tcp(port) => (format!("tcp {port}"), tcp(*port, limit)),
            Health::Unit(unit) if self.lacks_systemd => {
                let why = Some("not checked: there is no systemd here".into());
                return HealthReport { check: format!("unit {unit}"), healthy: true, why };
            }
            Health::Http(address) => (format!("http {address}"), http::get(self.node, address, limit)),
            Health::Unit(unit) => (format!("unit {unit}"), unit_runs(self.node, unit.as_str())),
            Health::Command(argv) => (format!("command {}", argv.join(" ")), ends_well(argv, limit)),
        };
        HealthReport { check: words, healthy: outcome.is_ok(), why: outcome.err() }
    }
}

fn tcp(port: u16, limit: Duration) -> Result<(), String> {
    connect(&ITSELF.map(|address| SocketAddr::new(address, port)), limit)
        .map(drop)
        .map_err(|why| why.to_string())
}

/// Connects to the first of these addresses that answers, within one limit for all of them.
fn connect(addresses: &[SocketAddr], limit: Duration) -> io::Result<TcpStream> {
    let deadline = Instant::now() + limit;
    let mut first = None;
    for address in addresses {
        // A limit of nothing would be refused as a mistake.
        let left = deadline.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
        match TcpStream::connect_timeout(address, left) {
            Ok(stream) => return Ok(stream),
            Err(error) => first = first.or(Some(error)),
        }
    }
    Err(first.unwrap_or_else(|| io::ErrorKind::AddrNotAvailable.into()))
}

fn unit_runs(node: &Node, unit: &str) -> Result<(), String> {
    let systemd = Systemd::of(node).ok_or("no systemd here")?;
    let state = systemd.state(unit).map_err(|error| error.in_full())?;
    match (state.is_known(), state.runs()) {
        (true, true) => Ok(()),
        (true, false) => Err(state.words()),
        (false, _) => Err("systemd knows no such unit".into()),
    }
}

fn ends_well(argv: &[String], limit: Duration) -> Result<(), String> {
    let (program, rest) = argv.split_first().ok_or("it names no program")?;
    let rest: Vec<&str> = rest.iter().map(String::as_str).collect();
    let tool = Tool::at(program);
    let ended = tool.run(&rest, &[], limit).map_err(|error| format!("it cannot be run: {error}"))?;
    match ended.status {
        Some(status) if status.success() => Ok(()),
        Some(status) => Err([format!("it ended with {status}"), ended.last_words()].join(": ")),
        None => Err(format!("it did not end within {} s", limit.as_secs())),
    }
}
