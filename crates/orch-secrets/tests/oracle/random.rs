//! Random files: whatever sops itself can write and read again, we read the same way.

use std::sync::atomic::{AtomicUsize, Ordering};

use orch_secrets::{Keyring, SopsFile};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, TestRunner};

use crate::on_two_threads;
use crate::program::Desk;

/// How many files, of some thirty values each; more are asked for by `PROPTEST_CASES`, and these are the most: each is several
/// runs of sops.
const FILES: u32 = 10;
const MOST: u32 = 200;

/// What a plain scalar may be taken for: numbers in every notation, moments, words, and what only looks like them.
fn scalar() -> impl Strategy<Value = String> {
    prop_oneof![
        3 => "[-+]?[0-9_]{1,20}",
        3 => "[-+]?[0-9]{0,4}\\.[0-9]{0,5}([eE][-+]?[0-9]{1,3})?",
        2 => "[-+]?0[xob]?[0-9a-f_]{0,6}",
        3 => "[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}([Tt ][0-9]{1,2}:[0-9]{1,2}:[0-9]{1,2}(\\.[0-9]{1,11})?(Z|[-+][0-9]{2}:[0-9]{2})?)?",
        1 => "[-+.0-9xobeEinfaNTZ:_]{1,8}",
        1 => prop::sample::select(vec!["~", "null", "Null", "true", "TRUE", "yes", "off", ".inf", "-.INF", "+.inf", ".nan", "<<", "="]).prop_map(str::to_owned),
        1 => "\"([a-zé ]|\\\\n|\\\\t|\\\\u00e9){0,12}\"",
        1 => "'[ -&(-~]{0,12}'",
    ]
}

/// A file: half of its values stay in clear, where their types count in the MAC.
fn file() -> impl Strategy<Value = String> {
    let value = prop_oneof![
        6 => scalar(),
        1 => prop::collection::vec(scalar(), 0..4).prop_map(|items| format!("[{}]", items.join(", "))),
    ];
    prop::collection::vec((any::<bool>(), any::<bool>(), value), 20..40).prop_map(|entries| {
        let mut text = String::new();
        for (at, (is_clear, is_said, value)) in entries.into_iter().enumerate() {
            text += if is_said { "# said\n" } else { "" };
            text += &format!("k{at}{}: {value}\n", if is_clear { "_unencrypted" } else { "" });
        }
        text
    })
}

#[test]
fn random_files_open_to_what_sops_prints() {
    let Some(desk) = Desk::new() else { return };
    let keyring = Keyring::of([desk.identity.clone()]);
    let config = Config { failure_persistence: None, ..Config::default() };
    let count = std::env::var_os("PROPTEST_CASES").map_or(FILES, |_| config.cases.min(MOST));
    let mut runner = TestRunner::new(config);
    let files: Vec<(u32, String)> =
        (0..count).map(|at| (at, file().new_tree(&mut runner).unwrap().current())).collect();
    let compared = AtomicUsize::new(0);
    on_two_threads(&files, |(at, plain)| {
        compared.fetch_add(check_lines(&desk, &keyring, *at, plain)?, Ordering::Relaxed);
        Ok(())
    });
    let (compared, all) =
        (compared.into_inner(), files.iter().map(|(_, plain)| values(plain).len()).sum::<usize>());
    println!("{compared} of {all} values were compared");
    assert!(compared * 2 >= all, "sops refused most of them: {compared} of {all} values were compared");
}

/// The lines that hold a value.
fn values(plain: &str) -> Vec<&str> {
    plain.lines().filter(|line| !line.starts_with('#')).collect()
}

/// How many values were compared. One that sops does not write, or not read again, spoils its file for sops: then each half is a
/// file.
fn check_lines(desk: &Desk, keyring: &Keyring, at: u32, plain: &str) -> Result<usize, String> {
    let name = format!("random-{at}.yaml");
    let lines = values(plain);
    if compare(desk, keyring, &name, plain)? == Compared::Same {
        return Ok(lines.len());
    }
    let mut compared = 0;
    for half in lines.chunks(lines.len().div_ceil(2).max(1)).filter(|_| lines.len() > 1) {
        compared += check_lines(desk, keyring, at, &(half.join("\n") + "\n"))?;
    }
    Ok(compared)
}

/// What became of a file that is not opened otherwise by us than by sops.
#[derive(PartialEq, Eq)]
enum Compared {
    Same,
    /// sops itself does not write it, or not read it again.
    Refused,
}

fn compare(desk: &Desk, keyring: &Keyring, name: &str, plain: &str) -> Result<Compared, String> {
    let printed = desk.encrypt(name, plain.as_bytes(), &[]).and_then(|sealed| {
        let printed = desk.decrypt(name, &sealed)?;
        Ok((sealed, printed))
    });
    let Ok((sealed, printed)) = printed else { return Ok(Compared::Refused) };
    let opened = SopsFile::parse(name, &sealed).and_then(|file| file.open(keyring));
    let ours = opened.and_then(|opened| opened.to_json()).map_err(|error| format!("{error}\n{plain}"))?;
    let (ours, printed) = (String::from_utf8_lossy(ours.expose()), String::from_utf8_lossy(&printed));
    if ours == printed {
        Ok(Compared::Same)
    } else {
        Err(format!("{plain}\nopens to\n{ours}\nand not to\n{printed}"))
    }
}
