//! The whole command, from start until its answer is printed, beside `terraform plan` in the same run.
//!
//! `cargo bench -p orch-cli` prints the table of docs/benchmarks.md. Without `--bench`, as in `cargo test --benches`, a small
//! site shows that it still works.

#![expect(clippy::print_stdout, reason = "the table is what this program is for")]

#[path = "../../orch-plan/benches/scale/site.rs"]
mod site;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use std::{env, fs};

use tempfile::TempDir;

/// How often each command runs, by turns.
const TURNS: usize = 9;

fn main() {
    if !env::args().any(|argument| argument == "--bench") {
        orch(site_of(100).path(), &["plan", "-M", "m", "-H", "pve"]);
        return;
    }
    let large = site_of(10_000);
    let terraform = terraform_project();
    let mut times: [Vec<Duration>; 4] = Default::default();
    for _ in 0..TURNS {
        times[0].push(orch(large.path(), &["--version"]));
        times[1].push(orch(large.path(), &["validate", "-M", "m", "-H", "pve"]));
        times[2].push(orch(large.path(), &["plan", "-M", "m", "-H", "pve"]));
        if let Some((program, folder)) = &terraform {
            times[3]
                .push(run(Command::new(program).args(["plan", "-no-color", "-input=false"]), folder.path()));
        }
    }
    println!("| command, best and median of {TURNS} | best | median |\n|---|---:|---:|");
    let names = [
        "orch --version",
        "orch validate, 10,000 nodes",
        "orch plan, 10,000 nodes",
        "terraform plan, 100 terraform_data resources",
    ];
    for (name, times) in names.iter().zip(&mut times).filter(|(_, times)| !times.is_empty()) {
        times.sort_unstable();
        println!("| {name} | {} | {} |", millis(times[0]), millis(times[TURNS / 2]));
    }
    match times[3].get(TURNS / 2) {
        Some(median) => {
            let ratio = times[2][TURNS / 2].as_secs_f64() / median.as_secs_f64();
            println!("\norch plan of 10,000 nodes / terraform plan of 100 resources, medians: {ratio:.2}");
        }
        None => println!("\nno terraform in PATH: the comparison is skipped"),
    }
}

/// A site with so many nodes, in a folder of its own.
fn site_of(count: u32) -> TempDir {
    let folder = TempDir::new().expect("a temporary folder can be made");
    let manifest = site::manifest(count);
    for (path, text) in site::FILES.into_iter().chain([("manifests/m.yaml", manifest.as_str())]) {
        let path = folder.path().join(path);
        fs::create_dir_all(path.parent().expect("a file is in a folder")).expect("a folder can be made");
        fs::write(path, text).expect("a file can be written");
    }
    folder
}

fn orch(folder: &Path, arguments: &[&str]) -> Duration {
    run(Command::new(env!("CARGO_BIN_EXE_orch")).args(arguments), folder)
}

/// A project of 100 built-in resources, where there is a terraform.
fn terraform_project() -> Option<(PathBuf, TempDir)> {
    let folders = env::var_os("PATH")?;
    let program =
        env::split_paths(&folders).map(|folder| folder.join("terraform")).find(|path| path.is_file())?;
    let folder = TempDir::new().expect("a temporary folder can be made");
    let resource =
        |number| format!("resource \"terraform_data\" \"n{number}\" {{\n  input = \"node {number}\"\n}}\n");
    let text: Vec<String> = (0..100).map(resource).collect();
    fs::write(folder.path().join("main.tf"), text.concat()).expect("main.tf can be written");
    run(Command::new(&program).args(["init", "-no-color"]), folder.path());
    Some((program, folder))
}

/// Runs a command to its end, with its answer thrown away.
fn run(command: &mut Command, folder: &Path) -> Duration {
    command.current_dir(folder).stdout(Stdio::null()).stderr(Stdio::null());
    command.env("CHECKPOINT_DISABLE", "1").env("TF_CLI_CONFIG_FILE", "/dev/null");
    let start = Instant::now();
    let status = command.status().expect("the program starts");
    assert!(status.success(), "{command:?} succeeds");
    start.elapsed()
}

fn millis(time: Duration) -> String {
    format!("{:.1} ms", time.as_secs_f64() * 1e3)
}
