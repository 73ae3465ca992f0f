//! What opening a thousand values costs in one process, beside running the sops program once for each file.
//!
//! Prints a table and asserts nothing but that both found the same values: numbers depend on the machine.

#![allow(clippy::print_stdout, reason = "a benchmark prints")]

#[path = "../tests/oracle/find.rs"]
mod find;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use orch_secrets::seal::Identity;
use orch_secrets::sops::{Policy, encrypt};
use orch_secrets::{Env, Format, Keyring, SopsFile};
use tempfile::TempDir;

const FILES: usize = 50;
const VALUES: usize = 20;
const ROUNDS: usize = 9;
const SOPS_ROUNDS: usize = 3;

fn main() {
    let folder = TempDir::new().expect("a folder can be made");
    let identity = Identity::generate();
    let key = folder.path().join("keys.txt");
    fs::write(&key, identity.to_secret().expose()).expect("the key can be written");
    let files = write_files(folder.path(), &identity);
    println!(
        "{FILES} files of {VALUES} values in YAML, one age recipient each; reading the files included\n"
    );
    println!("{:<34} {:>10} {:>10} {:>12}", "", "best", "median", "per value");
    let ours = sorted(ROUNDS, || open_all(&files, &key));
    print_row("orch, one process", &ours);
    let Some(sops) = find::find() else {
        println!("skipped: there is no sops program");
        return;
    };
    let theirs = sorted(SOPS_ROUNDS, || run_all(&sops, &files, &key));
    print_row("sops, one process for each file", &theirs);
    let ratio = |of: fn(&[Duration]) -> Duration| of(&theirs).as_secs_f64() / of(&ours).as_secs_f64();
    println!("\nsops / orch: {:.0} by medians, {:.0} by the best", ratio(median), ratio(best));
}

fn write_files(folder: &Path, identity: &Identity) -> Vec<PathBuf> {
    let policy = Policy::of([identity.recipient().into()]);
    let write = |number: usize| {
        let lines = (0..VALUES).map(|at| format!("key{at}: value {number} {at} of a usual length"));
        let plain = lines.collect::<Vec<_>>().join("\n");
        let text =
            encrypt("bench.yaml", Format::Yaml, plain.as_bytes(), &policy).expect("it can be encrypted");
        let path = folder.join(format!("{number}.yaml"));
        fs::write(&path, text).expect("it can be written");
        path
    };
    (0..FILES).map(write).collect()
}

fn open_all(files: &[PathBuf], key: &Path) {
    let keyring = Keyring::from(&Env { key_file: Some(key.to_owned()), ..Env::default() });
    let mut values = 0;
    for path in files {
        let text = fs::read(path).expect("it can be read");
        let file = SopsFile::parse("bench.yaml", &text).expect("it is a sops file");
        let opened = file.open(&keyring).expect("it opens");
        values += file.paths().iter().filter(|path| opened.secret(path).is_ok()).count();
    }
    assert_eq!(values, FILES * VALUES);
}

fn run_all(sops: &Path, files: &[PathBuf], key: &Path) {
    let mut values = 0;
    for path in files {
        let output = Command::new(sops)
            .arg("decrypt")
            .arg(path)
            .env_clear()
            .env("SOPS_AGE_KEY_FILE", key)
            .env("SOPS_DISABLE_VERSION_CHECK", "1")
            .stderr(Stdio::null())
            .output()
            .expect("sops runs");
        values += String::from_utf8_lossy(&output.stdout).lines().count();
    }
    assert_eq!(values, FILES * VALUES);
}

fn sorted(rounds: usize, run: impl Fn()) -> Vec<Duration> {
    let mut times: Vec<Duration> = (0..rounds)
        .map(|_| {
            let start = Instant::now();
            run();
            start.elapsed()
        })
        .collect();
    times.sort();
    times
}

fn best(times: &[Duration]) -> Duration {
    times[0]
}

fn median(times: &[Duration]) -> Duration {
    times[times.len() / 2]
}

fn print_row(name: &str, times: &[Duration]) {
    let per_value = median(times) / u32::try_from(FILES * VALUES).unwrap_or(1);
    println!("{name:<34} {:>10.1?} {:>10.1?} {per_value:>12.1?}", best(times), median(times));
}
