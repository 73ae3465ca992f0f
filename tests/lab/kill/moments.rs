//! Kills in the middle of an effect: at every word that the driver says of what it is doing.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use super::{Fleet, NESTED, WORKERS, edit, sweep};
use crate::common::{Lab, Need, lacks};

/// A fleet, and the word at which its driver is killed.
type Cell = (Fleet, usize);

/// How many words a create says of a node: seven of its machine, four of its configuration.
const WORDS: usize = 11;

/// Runs a verb and kills the driver at the word of this number; whether it was killed.
fn kill_at(lab: &Lab, (fleet, word): Cell, verb: &str) -> bool {
    let mut command = lab.command(&fleet.words(verb));
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
fn live_and_be_cut_off(cell: Cell) {
    let (lab, (fleet, word)) = (Lab::with_sample_site(), cell);
    let mut killed = kill_at(&lab, cell, "create");
    fleet.heal(&lab, "create");
    fleet.assert_as_wanted(&lab);
    edit(&lab);
    killed |= kill_at(&lab, cell, "config");
    fleet.heal(&lab, "config");
    fleet.assert_as_wanted(&lab);
    killed |= kill_at(&lab, cell, "destroy");
    fleet.assert_goes_away(&lab);
    assert!(killed, "somebody was killed at word {word}");
}

/// The number that chooses which words: the one that is asked for, or another one each time.
pub(crate) fn seed() -> usize {
    let asked = std::env::var("ORCH_LAB_SEED").ok();
    asked.map_or(std::process::id() as usize, |seed| seed.parse().expect("ORCH_LAB_SEED is a number"))
}

/// All cells, or one of `share` where not all of them are asked for.
pub(crate) fn chosen<C>(cells: Vec<C>, share: usize) -> Vec<C> {
    let seed = seed();
    eprintln!("ORCH_LAB_SEED={seed} repeats this: one cell of {share}; all of them with ORCH_LAB_FULL=1");
    let is_chosen =
        |place: usize| std::env::var_os("ORCH_LAB_FULL").is_some() || place % share == seed % share;
    cells.into_iter().enumerate().filter(|(place, _)| is_chosen(*place)).map(|(_, cell)| cell).collect()
}

/// Every word but the last of a fleet's create, or one of `share` where not all of them are asked for.
fn cells(fleet: Fleet, share: usize) -> Vec<Cell> {
    chosen((1..fleet.machines.len() * WORDS).map(|word| (fleet, word)).collect(), share)
}

#[test]
fn a_driver_that_is_killed_in_the_middle_of_an_effect_is_healed_by_running_it_again() {
    if lacks(&[Need::Root, Need::Ssh]) {
        return;
    }
    sweep(cells(NESTED, 4), live_and_be_cut_off);
}

#[test]
fn so_is_one_that_is_killed_in_the_middle_of_several_effects() {
    if lacks(&[Need::Root, Need::Ssh]) {
        return;
    }
    sweep(cells(WORKERS, 8), live_and_be_cut_off);
}
