//! Two drivers with two revisions of a site and the same eight hosts: whoever comes first has them all, the other is told so, and
//! no fleet is left mixed.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use super::hosts::{Driver, Hosts};
use super::scene::skips;
use crate::common::{Outcome, Running, kill, wait_until};
use crate::kill::seed;

const COUNT: usize = 8;

/// How often it is tried: a hundred times where all is asked for.
fn tries() -> usize {
    if std::env::var_os("ORCH_LAB_FULL").is_some() { 100 } else { 8 }
}

/// Numbers that look random, and are the same for the same seed.
struct Dice(u64);

impl Dice {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }
}

/// A revision of what all hosts are to run.
fn revise(driver: &Driver, version: &str) {
    driver.scene.module(&format!("version = \"{version}\"; activate = \"echo {version} > /etc/revision\";"));
}

fn start(driver: &Driver, hosts: &Hosts) -> Running {
    let (mut command, words) = driver.rollout(hosts);
    Running::start(&mut command, &words)
}

/// The one system that all hosts run and boot, by the end of its name.
#[track_caller]
fn whole(hosts: &Hosts, about: &str) -> String {
    let stands = hosts.stands();
    let version = |path: &std::path::PathBuf| {
        path.to_string_lossy().rsplit('-').next().map(String::from).unwrap_or_default()
    };
    let mut versions: BTreeSet<Option<String>> = BTreeSet::new();
    for (runs, boots) in &stands {
        assert_eq!(runs, boots, "{about}: {stands:?}");
        versions.insert(runs.as_ref().map(version));
    }
    assert_eq!(versions.len(), 1, "the fleet is mixed, {about}: {stands:?}");
    versions.pop_first().flatten().unwrap_or_default()
}

/// Whether a driver got its way. One that did not says who was in its way and since when, and touched nothing.
#[track_caller]
fn won(ended: &Outcome) -> bool {
    if ended.code == 0 {
        return true;
    }
    let text = &ended.stdout;
    let is_told = text.contains(" has had it since ")
        || (text.contains("it was changed meanwhile by run ") && text.contains("run again"));
    assert!(is_told, "it ended with {} and did not say why:\n{text}\n{}", ended.code, ended.stderr);
    assert!(!text.contains("\"status\": \"changed\""), "who is refused touches nothing: {text}");
    false
}

#[test]
fn two_drivers_with_two_revisions_never_leave_a_mixed_fleet() {
    if skips() {
        return;
    }
    let (hosts, seed) = (Hosts::made(COUNT), seed());
    let drivers = [hosts.driver(), hosts.driver()];
    let mut dice = Dice(seed as u64);
    let (mut refused, began) = (0, Instant::now());
    for number in 0..tries() {
        // What was built once is there, and every other time one of the two has nothing to do.
        let names = ["a", "b"].map(|name| format!("{name}{}", number / 2 % 2));
        for (driver, name) in drivers.iter().zip(&names) {
            revise(driver, name);
        }
        let first = usize::try_from(dice.below(2)).unwrap();
        let one = start(&drivers[first], &hosts);
        // How far the first is when the other begins is what is tried.
        std::thread::sleep(Duration::from_millis(dice.below(1500)));
        let other = start(&drivers[1 - first], &hosts);
        let (other, one) = (other.end(), one.end());
        let results = [won(&one), won(&other)];
        let about = format!("try {number} of ORCH_LAB_SEED={seed}, {names:?}: {results:?}");
        let found = whole(&hosts, &about);
        assert!(results[0] || results[1], "somebody gets their way, {about}");
        refused += results.iter().filter(|won| !**won).count();
        if results[0] != results[1] {
            let winner = if results[0] { first } else { 1 - first };
            assert_eq!(found, names[winner], "{about}\n{}\n{}", one.stdout, other.stdout);
        }
        assert!(names.contains(&found), "{about}: {found}");
    }
    eprintln!("{} tries in {:.1?}, {refused} refused", tries(), began.elapsed());
    assert!(refused > 0, "they never met");
}

#[test]
fn what_a_driver_that_was_killed_in_the_middle_left_mixed_is_made_whole_by_the_next() {
    if skips() {
        return;
    }
    let (hosts, seed) = (Hosts::made(COUNT), seed());
    let drivers = [hosts.driver(), hosts.driver()];
    let mut dice = Dice(seed as u64);
    for number in 0..tries().div_ceil(8) {
        let names = ["a", "b"].map(|name| format!("{name}{number}"));
        for (driver, name) in drivers.iter().zip(&names) {
            revise(driver, name);
        }
        let one = start(&drivers[0], &hosts);
        let enough = usize::try_from(1 + dice.below(COUNT as u64 - 1)).unwrap();
        wait_until("some hosts have been moved", || moved(&hosts, &names[0]) >= enough);
        kill(one.pid(), Signal::KILL);
        one.cut_off();
        let refused = start(&drivers[1], &hosts).end();
        assert!(!won(&refused), "a driver that was killed keeps its hosts for a while: {}", refused.stdout);
        hosts.let_leases_end();
        let ended = start(&drivers[1], &hosts).end();
        let about = format!("try {number} of ORCH_LAB_SEED={seed}\n{}\n{}", ended.stdout, ended.stderr);
        assert!(won(&ended), "{about}");
        assert_eq!(whole(&hosts, &about), names[1], "{about}");
    }
}

/// How many hosts run this revision.
fn moved(hosts: &Hosts, version: &str) -> usize {
    let is_it = |runs: &Option<std::path::PathBuf>| {
        runs.as_ref().is_some_and(|path| path.to_string_lossy().ends_with(&format!("-{version}")))
    };
    hosts.stands().iter().filter(|(runs, _)| is_it(runs)).count()
}
