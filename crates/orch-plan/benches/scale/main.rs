//! How long it takes from the text of a manifest to a plan, for 100 to 100,000 nodes.
//!
//! `cargo bench -p orch-plan` prints the table of docs/benchmarks.md. Each row is a process of its own, so that its
//! peak memory is its own. Without `--bench`, as in `cargo test --benches`, one small row shows that it still works.

#![expect(clippy::print_stdout, reason = "the table is what this program is for")]

use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};
use std::{env, fs};

use orch_model::{Fleet, HostName, Request, Scope, Sources, parse, resolve};
use orch_plan::{
    Action, Applied, Goal, HostView, Machine, MachineSpec, MachineState, Marks, NodePlan, Observed, Plan,
    Verb, plan,
};
use site::{FILES, manifest};
use uuid::Uuid;

mod site;

const ROWS: [u32; 4] = [100, 1_000, 10_000, 100_000];

fn main() {
    let arguments: Vec<String> = env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["--row", count] => println!("{}", Row::measure(count.parse().expect("a number of nodes"))),
        words if words.contains(&"--bench") => print_table(),
        _ => println!("{}", Row::measure(ROWS[0])),
    }
}

/// One line of the table, each time the best of several.
struct Row {
    parse: Duration,
    resolve: Duration,
    /// Nothing is there yet.
    plan: Duration,
    /// Everything is there as wanted.
    plan_again: Duration,
    bytes: usize,
    peak_kib: u64,
}

impl Row {
    fn measure(count: u32) -> Self {
        let manifest = manifest(count);
        let mut best = Self::once(&manifest, count);
        best.peak_kib = peak_kib();
        for _ in 0..(200_000 / count).clamp(4, 50) {
            let next = Self::once(&manifest, count);
            best.parse = best.parse.min(next.parse);
            best.resolve = best.resolve.min(next.resolve);
            best.plan = best.plan.min(next.plan);
            best.plan_again = best.plan_again.min(next.plan_again);
        }
        best
    }

    fn once(manifest: &str, count: u32) -> Self {
        let sources = sources(manifest);
        let (name, host) = ("m".parse().expect("m names a manifest"), host());
        let scope = Scope::Manifest { name: &name, host: Some(&host) };
        let (catalog, parse_time) = timed(|| parse(&sources, scope).expect("the manifest is fine"));
        let (fleet, resolve_time) =
            timed(|| resolve(&catalog, &request()).expect("the manifest has a meaning"));
        let (first, plan_time) = timed(|| create(&fleet, &empty()));
        assert_eq!(first.counts().create, count as usize, "everything is made");
        let made = made(&fleet, &first);
        let (again, again_time) = timed(|| create(&fleet, &made));
        assert_eq!(again.counts().unchanged, count as usize, "everything is there");
        Self {
            parse: parse_time,
            resolve: resolve_time,
            plan: plan_time,
            plan_again: again_time,
            bytes: manifest.len(),
            peak_kib: 0,
        }
    }

    fn total(&self) -> Duration {
        self.parse + self.resolve + self.plan
    }

    /// Reads what the process of a row printed.
    fn read(line: &str) -> Self {
        let words: Vec<u64> = line.split_whitespace().map(|word| word.parse().expect("a number")).collect();
        let [parse, resolve, plan, plan_again, bytes, peak_kib] = words[..] else {
            unreachable!("a row is six numbers: {line}")
        };
        let time = Duration::from_nanos;
        Self {
            parse: time(parse),
            resolve: time(resolve),
            plan: time(plan),
            plan_again: time(plan_again),
            bytes: usize::try_from(bytes).expect("a length"),
            peak_kib,
        }
    }
}

impl std::fmt::Display for Row {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let times = [self.parse, self.resolve, self.plan, self.plan_again].map(|time| time.as_nanos());
        let [parse, resolve, plan, again] = times;
        write!(f, "{parse} {resolve} {plan} {again} {} {}", self.bytes, self.peak_kib)
    }
}

fn print_table() {
    println!(
        "| nodes | manifest | parse | resolve | plan | total | per node | ratio | plan, all unchanged | peak RSS |"
    );
    println!("|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|");
    let mut before: Option<f64> = None;
    for count in ROWS {
        let row = Row::read(&run_self(&["--row", &count.to_string()]).0);
        let per_node = row.total().as_secs_f64() * 1e6 / f64::from(count);
        let ratio = before.map_or("–".to_owned(), |before| format!("{:.2}", per_node / before));
        println!(
            "| {count} | {:.1} MiB | {} | {} | {} | {} | {per_node:.1} µs | {ratio} | {} | {} MiB |",
            f64::from(u32::try_from(row.bytes).expect("a manifest is small")) / 1_048_576.0,
            millis(row.parse),
            millis(row.resolve),
            millis(row.plan),
            millis(row.total()),
            millis(row.plan_again),
            row.peak_kib / 1024,
        );
        before = Some(per_node);
    }
}

/// Runs this program once more; gives what it printed and how long it took.
fn run_self(arguments: &[&str]) -> (String, Duration) {
    let program = env::current_exe().expect("this program knows itself");
    let (output, time) = timed(|| Command::new(program).args(arguments).output().expect("it starts again"));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    (String::from_utf8_lossy(&output.stdout).into_owned(), time)
}

fn create(fleet: &Fleet, observed: &Observed) -> Plan {
    plan(fleet, observed, &Goal::of(Verb::Create)).expect("everything is picked")
}

fn sources(manifest: &str) -> Sources {
    Sources::from_texts(FILES.into_iter().chain([("manifests/m.yaml", manifest)]))
}

fn host() -> HostName {
    "pve".parse().expect("pve names a host")
}

fn request() -> Request {
    Request { manifest: "m".parse().expect("m names a manifest"), host: Some(host()), mode: None }
}

fn empty() -> Observed {
    Observed { hosts: [(host(), HostView::empty())].into() }
}

/// The world after a plan was carried out.
fn made(fleet: &Fleet, plan: &Plan) -> Observed {
    let machines = plan.nodes.iter().enumerate().filter_map(|(place, node)| {
        let mut machine = made_machine(fleet, node, place, node.up.iter().find_map(spec)?);
        if let Some(Action::Configure { config, .. }) = node.up.last() {
            machine.applied = Applied::Digest(config.digest());
        }
        Some(machine)
    });
    let view = HostView::Seen { machines: machines.collect(), abilities: orch_plan::Abilities::COMMON };
    Observed { hosts: [(host(), view)].into() }
}

fn spec(action: &Action) -> Option<&MachineSpec> {
    match action {
        Action::Create { machine } => Some(machine),
        _ => None,
    }
}

fn made_machine(fleet: &Fleet, node: &NodePlan, place: usize, spec: &MachineSpec) -> Machine {
    Machine {
        id: place.to_string(),
        name: spec.name.clone(),
        marks: Some(Marks {
            site: fleet.site.clone(),
            manifest: fleet.manifest.clone(),
            node: node.name().clone(),
            host: node.identity.host.clone(),
            uuid: Uuid::from_u128(place as u128),
        }),
        inside: None,
        state: MachineState::Running,
        size: spec.size,
        kind: Some(spec.kind),
        image: Some(spec.image.clone()),
        vmid: spec.vmid,
        applied: Applied::Never,
        keys: orch_plan::Keys::Unknown,
    }
}

fn timed<T>(work: impl FnOnce() -> T) -> (T, Duration) {
    let start = Instant::now();
    let result = work();
    (result, start.elapsed())
}

fn millis(time: Duration) -> String {
    format!("{:.1} ms", time.as_secs_f64() * 1e3)
}

/// The most memory that this process ever had, as Linux counts it.
fn peak_kib() -> u64 {
    let status = fs::read_to_string(PathBuf::from("/proc/self/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok()).unwrap_or_default()
}
