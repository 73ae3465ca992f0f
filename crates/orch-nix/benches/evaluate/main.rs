//! Hosts of a real NixOS, evaluated by orch and with one nixpkgs for each of them: processor time, memory, and how long it takes when
//! nothing changed, or one host did.
//!
//! `ORCH_TEST_NIXPKGS=<folder> cargo bench -p orch-nix --bench evaluate` prints the table of docs/benchmarks.md; it needs root and Nix.
//! After `--`, numbers choose how many hosts there are. Nothing is built. Without `--bench` nothing is done, since it takes minutes.

#![expect(clippy::print_stdout, reason = "the table is what this program is for")]
#![expect(clippy::unwrap_used, reason = "a benchmark that cannot set its scene has failed")]

mod usage;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use std::{env, fs};

use orch_nix::{Evaluated, Evaluator, EvaluatorSettings, Kind, Tools, Wanted};
use serde_json::{Value as Json, json};
use tempfile::TempDir;
use tokio::runtime::Runtime;
use usage::{Cost, measure};

const REPOSITORY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// How Nix is used as root and without a daemon. Nothing is fetched.
const SETTINGS: &str =
    "experimental-features = nix-command flakes\nsandbox = false\nbuild-users-group =\nsubstituters =\n";

/// What NixOS wants of every machine, and a little more.
const HOST: &str = r#"{ ... }: {
  fileSystems."/" = { device = "/dev/vda1"; fsType = "ext4"; };
  boot.loader.grub.device = "/dev/vda";
  services.openssh.enable = true;
  services.nginx.enable = true;
}
"#;

fn main() {
    let chosen: Vec<usize> = env::args().skip(1).filter_map(|argument| argument.parse().ok()).collect();
    if !env::args().any(|argument| argument == "--bench") {
        return;
    }
    let Some(nixpkgs) = env::var_os("ORCH_TEST_NIXPKGS").map(PathBuf::from) else {
        println!("skipped: no nixpkgs; `ORCH_TEST_NIXPKGS=<folder>` names one");
        return;
    };
    println!(
        "| hosts | what | time | CPU | memory at most | CPU / one nixpkgs each | memory / one nixpkgs each |\n|---:|---|---:|---:|---:|---:|---:|"
    );
    for hosts in if chosen.is_empty() { vec![1, 4, 16] } else { chosen } {
        Site::of(hosts, &nixpkgs).print();
    }
    println!("load at the end: {}", fs::read_to_string("/proc/loadavg").unwrap());
}

/// Hosts, and what evaluates them.
struct Site {
    folder: TempDir,
    nixpkgs: PathBuf,
    hosts: usize,
    runtime: Runtime,
}

/// The derivations of hosts, by identity.
type Derivations = BTreeMap<String, String>;

impl Site {
    fn of(hosts: usize, nixpkgs: &Path) -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let site = Self { folder: TempDir::new().unwrap(), nixpkgs: nixpkgs.to_owned(), hosts, runtime };
        (1..=hosts).for_each(|host| site.write_host(host, ""));
        site
    }

    fn print(&self) {
        let (apart, theirs) = measure(|| self.apart());
        let (together, ours) = measure(|| self.orch());
        assert_eq!(apart, together, "both make the same systems");
        self.row("all, for the first time", ours, Some(theirs));
        self.row("one nixpkgs each, one process", theirs, None);
        let mut again: Vec<Cost> = (0..9).map(|_| measure(|| self.orch()).1).collect();
        again.sort_unstable_by_key(|cost| cost.wall);
        self.row("again, unchanged (median of 9)", again[4], None);
        self.write_host(1, "# Touched.\n");
        self.row("again, one of them touched", measure(|| self.orch()).1, None);
    }

    fn row(&self, what: &str, cost: Cost, theirs: Option<Cost>) {
        let ratios = theirs.map_or("– | –".into(), |theirs| {
            let cpu = cost.cpu.as_secs_f64() / theirs.cpu.as_secs_f64();
            format!("{cpu:.2} | {:.2}", mebibytes(cost.peak) / mebibytes(theirs.peak))
        });
        let Cost { wall, cpu, peak } = cost;
        println!("| {} | {what} | {} | {} | {peak} MiB | {ratios} |", self.hosts, shown(wall), shown(cpu));
    }

    fn write_host(&self, host: usize, before: &str) {
        let folder = self.folder.path().join(format!("site/hosts/h{host}"));
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("default.nix"), format!("{before}{HOST}")).unwrap();
    }

    /// As orch does it, with what it remembers of the times before.
    fn orch(&self) -> Derivations {
        let settings = EvaluatorSettings {
            cache: self.folder.path().join("cache"),
            nixpkgs: Some(self.nixpkgs.clone()),
            memory: None,
            parallel: 2,
            limit: Duration::from_mins(20),
            lib: None,
        };
        let wanted: Vec<Wanted> = (1..=self.hosts).map(wanted).collect();
        let site = self.folder.path().join("site");
        let found = self.runtime.block_on(async {
            let tools = Tools::find(None).await.unwrap().with_settings(SETTINGS);
            Evaluator::new(tools, settings).evaluate(&site, &wanted, &|_| ()).await
        });
        let derivation = |one: Evaluated| one.drv.to_string();
        found.into_iter().map(|(identity, one)| (identity.to_string(), derivation(one.unwrap()))).collect()
    }

    /// In one process, with one nixpkgs for each host.
    fn apart(&self) -> Derivations {
        let input = self.folder.path().join("input.json");
        let nodes: BTreeMap<String, Json> = (1..=self.hosts).map(described).collect();
        let all = json!({ "site": self.folder.path().join("site"), "nodes": nodes });
        fs::write(&input, all.to_string()).unwrap();
        let mut nix = Command::new("nix-instantiate");
        nix.args(["--eval", "--strict", "--json", "--read-write-mode"]);
        nix.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/evaluate/apart.nix"));
        nix.args(["--argstr", "input"]).arg(&input).args(["--argstr", "nixpkgs"]).arg(&self.nixpkgs);
        let library = Path::new(REPOSITORY).join("nix/lib").canonicalize().unwrap();
        nix.args(["--argstr", "library"]).arg(library);
        let output = nix.env("NIX_CONFIG", SETTINGS).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let found: BTreeMap<String, Json> = serde_json::from_slice(&output.stdout).unwrap();
        found
            .into_iter()
            .map(|(identity, one)| (identity, one["drvPath"].as_str().unwrap().to_owned()))
            .collect()
    }
}

fn wanted(host: usize) -> Wanted {
    Wanted {
        identity: format!("host.h{host}@h{host}").parse().unwrap(),
        kind: Kind::Host,
        modules: vec![format!("hosts/h{host}")],
        platform: None,
        tags: Vec::new(),
        config: json!({}),
    }
}

/// The same, as Nix is told of it.
fn described(host: usize) -> (String, Json) {
    let node = json!({
        "name": format!("h{host}"), "kind": "host", "modules": [format!("hosts/h{host}")], "platform": null, "tags": [],
        "config": {},
    });
    (format!("host.h{host}@h{host}"), node)
}

fn mebibytes(peak: u64) -> f64 {
    f64::from(u32::try_from(peak).unwrap())
}

fn shown(time: Duration) -> String {
    if time < Duration::from_secs(10) {
        format!("{} ms", time.as_millis())
    } else {
        format!("{:.1} s", time.as_secs_f64())
    }
}
