//! How long it takes from the text of a manifest to a plan, for 100 to 100,000 nodes, beside `terraform plan`.
//!
//! `cargo bench -p orch-plan` prints the table of docs/benchmarks.md. Each row is a process of its own, so that its
//! peak memory is its own. Without `--bench`, as in `cargo test --benches`, one small row shows that it still works.

#![expect(clippy::print_stdout, reason = "the table is what this program is for")]

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use std::{env, fs};

use orch_model::{Fleet, HostName, Request, Scope, Sources, parse, resolve};
use orch_plan::{
    Action, Applied, Goal, HostView, Machine, MachineSpec, MachineState, Marks, NodePlan, Observed, Plan,
    Verb, plan,
};
use uuid::Uuid;

const ROWS: [u32; 4] = [100, 1_000, 10_000, 100_000];

/// What stands beside the manifest.
const FILES: [(&str, &str); 8] = [
    ("site.yaml", "{ name: bench, domain: bench.example, timezone: Europe/Berlin, packages: [curl] }"),
    (
        "hosts/pve.yaml",
        "{ provider: proxmox, api_endpoint: 'https://pve:8006', api_token: 'secret:pve', datastore: zfs, \
         vmid_range: [100000, 999999], images: { '*': 'local:import/debian-13.qcow2' } }",
    ),
    ("presets/small.yaml", "{ cores: 1, memory: 1024, disk: 10 }"),
    ("presets/large.yaml", "{ cores: 8, memory: 32768, disk: 256 }"),
    ("postures/dev.yaml", "{ ssh: { permit_root_login: prohibit-password }, packages: [net-tools] }"),
    ("specs/pve.yaml", "{ schema_version: 1, platform: { hypervisor: proxmox }, health: [{ tcp: 22 }] }"),
    (
        "specs/db.yaml",
        "{ schema_version: 1, access: { users: [{ name: ops, sudo: true }] }, platform: { packages: [postgresql] }, \
         secrets: [{ name: db-password, path: /run/secrets/db }], health: [{ tcp: 5432 }] }",
    ),
    (
        "specs/web.yaml",
        "{ schema_version: 1, access: { users: [{ name: ops, sudo: true }] }, \
         platform: { packages: [nginx, htop], services: { enable: [nginx] } }, \
         files: [{ path: /etc/motd, content: 'Made by orch.' }], health: [{ unit: nginx.service }] }",
    ),
];

fn main() {
    let arguments: Vec<String> = env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["--row", count] => println!("{}", Row::measure(count.parse().expect("a number of nodes"))),
        // In one piece: the standard output of a program writes out every line by itself.
        ["--plan", file] => std::io::stdout()
            .write_all(plan_file(Path::new(file)).to_string().as_bytes())
            .expect("the plan can be printed"),
        words if words.contains(&"--bench") => {
            let folder = env::temp_dir().join(format!("orch-scale-{}", std::process::id()));
            fs::create_dir_all(&folder).expect("a temporary folder can be made");
            print_table();
            print_comparison(&folder);
            fs::remove_dir_all(&folder).expect("the temporary folder can be removed");
        }
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

/// Whole processes against each other: from start until the plan of everything to be created is printed.
fn print_comparison(folder: &Path) {
    let terraform = env::var_os("PATH").and_then(|path| {
        env::split_paths(&path).map(|folder| folder.join("terraform")).find(|program| program.is_file())
    });
    let Some(terraform) = terraform else {
        println!("\nterraform is not in PATH: the comparison is skipped.");
        return;
    };
    let file = folder.join("m.yaml");
    fs::write(&file, manifest(10_000)).expect("the manifest can be written");
    let file = file.to_str().expect("the path is text").to_owned();
    let orch = (0..3).map(|_| run_self(&["--plan", &file]).1).min().expect("three runs");
    let theirs = terraform_plan(&terraform, folder);
    println!("\n| whole process, best of 3 | time |\n|---|---:|");
    println!("| orch, 10,000 nodes: read, parse, resolve, plan, print | {} |", millis(orch));
    println!("| terraform plan, 100 terraform_data resources | {} |", millis(theirs));
    println!(
        "\norch 10,000 nodes / terraform 100 resources: {:.2}",
        orch.as_secs_f64() / theirs.as_secs_f64()
    );
}

fn terraform_plan(program: &Path, folder: &Path) -> Duration {
    let mut text = String::new();
    for number in 0..100 {
        let resource =
            format!("resource \"terraform_data\" \"n{number}\" {{\n  input = \"node {number}\"\n}}\n");
        text.push_str(&resource);
    }
    fs::write(folder.join("main.tf"), text).expect("main.tf can be written");
    let run = |arguments: &[&str]| {
        let mut command = Command::new(program);
        command.args(arguments).current_dir(folder).stdout(Stdio::null()).stderr(Stdio::null());
        command.env("CHECKPOINT_DISABLE", "1").env("TF_CLI_CONFIG_FILE", "/dev/null");
        let (status, time) = timed(|| command.status().expect("terraform starts"));
        assert!(status.success(), "terraform {arguments:?} succeeds");
        time
    };
    run(&["init", "-no-color"]);
    (0..3).map(|_| run(&["plan", "-no-color", "-input=false"])).min().expect("three runs")
}

/// Runs this program once more; gives what it printed and how long it took.
fn run_self(arguments: &[&str]) -> (String, Duration) {
    let program = env::current_exe().expect("this program knows itself");
    let (output, time) = timed(|| Command::new(program).args(arguments).output().expect("it starts again"));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    (String::from_utf8_lossy(&output.stdout).into_owned(), time)
}

fn plan_file(file: &Path) -> Plan {
    let text = fs::read_to_string(file).expect("the manifest can be read");
    let sources = sources(&text);
    let (name, host) = ("m".parse().expect("m names a manifest"), host());
    let scope = Scope::Manifest { name: &name, host: Some(&host) };
    let catalog = parse(&sources, scope).expect("the manifest is fine");
    let fleet = resolve(&catalog, &request()).expect("the manifest has a meaning");
    create(&fleet, &empty())
}

fn create(fleet: &Fleet, observed: &Observed) -> Plan {
    plan(fleet, observed, &Goal::of(Verb::Create)).expect("everything is picked")
}

/// Racks of twenty: a machine that hosts, a database on it, and eighteen servers that wait for the database.
fn manifest(count: u32) -> String {
    let mut text = String::from("schema_version: 2\nname: m\npattern: tiered\nnodes:\n");
    for number in 0..count {
        let rack = number / 20;
        let (name, spec, preset) = match number % 20 {
            0 => (format!("rack-{rack}"), "pve", "large"),
            1 => (format!("db-{rack}"), "db", "small"),
            _ => (format!("web-{number}"), "web", "small"),
        };
        let kind = if spec == "pve" { "pve" } else { "vm" };
        write!(
            text,
            "  - name: {name}\n    type: {kind}\n    spec: {spec}\n    preset: {preset}\n    image: debian-13\n    \
             tags: [{spec}, zone-{}]\n",
            rack % 7
        )
        .expect("text can be written");
        if spec != "pve" {
            writeln!(text, "    parent: rack-{rack}").expect("text can be written");
        }
        if spec == "web" {
            writeln!(text, "    depends_on: [db-{rack}]").expect("text can be written");
        }
    }
    text
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
