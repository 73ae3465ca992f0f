//! Kills in the middle of an effect: at every word that the driver says of what it is doing.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use super::{MANIFEST, assert_as_wanted, assert_goes_away, edit, heal, sweep};
use crate::common::{Lab, Need, lacks};

/// How many words a create of `nested-test` says before its last: seven of each machine, four of its configuration.
const WORDS: usize = 21;
/// Unless all of them are asked for, one of so many words is tried.
const SHARE: usize = 4;

/// Runs a verb and kills the driver at the word of this number; whether it was killed.
fn kill_at(lab: &Lab, verb: &str, word: usize) -> bool {
    let yes = if verb == "destroy" { "--yes" } else { "" };
    let mut command = lab.command(&format!("{verb} -M {MANIFEST} -H father {yes}"));
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let words = BufReader::new(child.stderr.take().unwrap()).lines();
    let came = words.take(word).flatten().count() == word;
    if came {
        child.kill().unwrap();
    }
    let status = child.wait().unwrap();
    came && !status.success()
}

/// Makes, configures and destroys; each is killed at the word of this number, and run again.
fn live_and_be_cut_off(word: usize) {
    let lab = Lab::with_sample_site();
    let mut killed = kill_at(&lab, "create", word);
    heal(&lab, "create");
    assert_as_wanted(&lab);
    edit(&lab);
    killed |= kill_at(&lab, "config", word);
    heal(&lab, "config");
    assert_as_wanted(&lab);
    killed |= kill_at(&lab, "destroy", word);
    assert_goes_away(&lab);
    assert!(killed, "somebody was killed at word {word}");
}

#[test]
fn a_driver_that_is_killed_in_the_middle_of_an_effect_is_healed_by_running_it_again() {
    if lacks(&[Need::Root, Need::Ssh]) {
        return;
    }
    let seed = std::process::id() as usize;
    let is_chosen =
        |word: &usize| std::env::var_os("ORCH_LAB_FULL").is_some() || word % SHARE == seed % SHARE;
    eprintln!("seed {seed}: one word of {SHARE}; all of them with ORCH_LAB_FULL=1");
    sweep((1..=WORDS).filter(is_chosen).collect(), live_and_be_cut_off);
}
