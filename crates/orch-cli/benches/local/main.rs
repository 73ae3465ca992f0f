//! Machines on this computer, beside Ansible in the same run: creating them, doing nothing to them, changing one file on
//! each over real SSH, running one program on each; and what it takes when they fetch their configuration themselves.
//!
//! `cargo bench -p orch-cli --bench local` prints the tables of docs/benchmarks.md; it needs root, sshd and Debian's
//! `ansible-core`. After `--`, the words `create`, `ansible`, `pull` and `secrets` choose among the tables. Without `--bench` a single
//! node shows that it still works.

#![expect(clippy::print_stdout, reason = "the tables are what this program is for")]
#![expect(clippy::unwrap_used, reason = "a benchmark that cannot set its scene has failed")]

mod ansible;
mod pull;
mod secrets;
mod site;
mod usage;

use std::time::Duration;
use std::{env, fs};

use ansible::Ansible;
use site::Site;
use usage::measure;

/// How often each command runs, by turns; the median counts.
const TURNS: usize = 5;

fn main() {
    if !env::args().any(|argument| argument == "--bench") {
        let site = Site::of(1);
        for mode in ["push", "pull"] {
            site.orch(&format!("create --mode {mode}"));
            site.orch("destroy --yes");
        }
        return;
    }
    let tables: [(&str, fn()); 4] = [
        ("create", creating),
        ("ansible", beside_ansible),
        ("pull", pull::beside_push),
        ("secrets", secrets::beside_one_by_one),
    ];
    let chosen: Vec<String> = env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    for (_, table) in
        tables.iter().filter(|(name, _)| chosen.is_empty() || chosen.iter().any(|one| one == name))
    {
        table();
        println!();
    }
    let load = fs::read_to_string("/proc/loadavg").unwrap();
    println!("load at the end: {load}");
}

/// What it costs to make nodes without a configuration, to configure them, to do nothing to them afterwards, and what an
/// idle one uses.
fn creating() {
    println!(
        "| nodes | create | CPU per node | configure | no-op create, configured | destroy | memory per idle node, without sshd |"
    );
    println!("|---:|---:|---:|---:|---:|---:|---:|");
    for nodes in [1, 20, 100] {
        let site = Site::bare(nodes);
        // The first one prepares the image that the others are copied from.
        site.orch("create --only node-1");
        site.orch("destroy --yes");
        let made = measure(|| site.orch("create"));
        site.give_spec();
        let configured = measure(|| site.orch("create"));
        let noop = measure(|| site.orch("create"));
        let memory = site.memory_of_inits() / nodes;
        let gone = measure(|| site.orch("destroy --yes"));
        println!(
            "| {nodes} | {} | {} | {} | {} | {} | {:.1} MiB |",
            millis(made.wall),
            millis(made.cpu / u32::try_from(nodes).unwrap()),
            millis(configured.wall),
            millis(noop.wall),
            millis(gone.wall),
            f64::from(u32::try_from(memory).unwrap()) / 1024.0
        );
    }
}

fn beside_ansible() {
    if !Ansible::is_here() {
        println!("no ansible in PATH: the comparison is skipped");
        return;
    }
    println!("| nodes | what | orch | ansible | ansible / orch |\n|---:|---|---:|---:|---:|");
    for nodes in [8, 32, 64] {
        let site = Site::of(nodes);
        site.orch("create");
        let inventory = Ansible::inventory(&site);
        // Both have their connections from now on, as far as they keep them.
        inventory.copy("warm\n");
        site.change("warm\n");
        site.orch("config");
        let mut times = [(); 8].map(|()| Vec::new());
        for turn in 0..TURNS {
            let text = format!("turn {turn} of {nodes}\n");
            site.change(&text);
            times[0].push(measure(|| site.orch("config")).wall);
            times[1].push(measure(|| inventory.copy(&text)).wall);
            times[2].push(measure(|| site.orch("create")).wall);
            times[3].push(measure(|| inventory.copy(&text)).wall);
            times[4].push(measure(|| site.orch("config")).wall);
            times[5].push(measure(|| inventory.copy(&text)).wall);
            times[6].push(measure(|| site.orch("exec -- true")).wall);
            times[7].push(measure(|| inventory.raw("true")).wall);
            site.assert_all_have(&text);
        }
        let rows =
            ["a changed file", "nothing to do, seen from outside", "nothing to do, asked", "exec true"];
        for (row, what) in rows.into_iter().enumerate() {
            let (ours, theirs) = (median(&mut times[2 * row]), median(&mut times[2 * row + 1]));
            let ratio = theirs.as_secs_f64() / ours.as_secs_f64();
            println!("| {nodes} | {what} | {} | {} | {ratio:.1} |", millis(ours), millis(theirs));
        }
        site.orch("destroy --yes");
    }
}

fn median(times: &mut [Duration]) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

fn millis(time: Duration) -> String {
    format!("{:.0} ms", time.as_secs_f64() * 1000.0)
}
