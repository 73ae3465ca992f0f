//! Against the real sops program: what it encrypts we open to what it prints, and what we write it opens.

#![allow(clippy::unwrap_used, reason = "a test that cannot set its scene has failed")]
#![allow(clippy::print_stdout, reason = "a test that is skipped says so")]

mod cells;
mod find;
mod keys;
mod program;
mod random;
mod writes;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use cells::{Cell, cells};
use orch_secrets::{Format, KeyPath, Keyring, SopsFile};
use program::Desk;

#[test]
fn what_sops_encrypts_opens_to_what_sops_prints() {
    let Some(desk) = Desk::new() else { return };
    let cells = cells();
    assert!(cells.len() >= 60, "{} cells", cells.len());
    on_two_threads(&cells, |cell| check(&desk, cell).map_err(|why| format!("{}: {why}", cell.name)));
}

/// Every cell, two at a time; all that fail are told.
fn on_two_threads<T: Sync>(cells: &[T], check: impl Fn(&T) -> Result<(), String> + Sync) {
    let next = AtomicUsize::new(0);
    let work = || {
        let mut failures = Vec::new();
        while let Some(cell) = cells.get(next.fetch_add(1, Ordering::Relaxed)) {
            failures.extend(check(cell).err());
        }
        failures
    };
    let failures: Vec<String> = thread::scope(|scope| {
        let threads = [scope.spawn(work), scope.spawn(work)];
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    assert!(failures.is_empty(), "{} of {}:\n{}", failures.len(), cells.len(), failures.join("\n"));
}

fn check(desk: &Desk, cell: &Cell) -> Result<(), String> {
    let keyring = Keyring::of([desk.identity.clone()]);
    let sealed = desk
        .encrypt(&cell.name, &cell.plain, &cell.options)
        .map_err(|why| format!("sops encrypts: {why}"))?;
    let printed = desk.decrypt(&cell.name, &sealed).map_err(|why| format!("sops decrypts: {why}"))?;
    let show = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let file = SopsFile::parse(&cell.name, &sealed).map_err(|error| format!("{error}\n{}", show(&sealed)))?;
    let opened = file.open(&keyring).map_err(|error| format!("{error}\n{}", show(&sealed)))?;
    let ours = match Format::of(&cell.name) {
        Format::Binary => opened.secret(&KeyPath::default()),
        _ => opened.to_json(),
    };
    let ours = ours.map_err(|error| error.to_string())?;
    if ours.expose() != printed {
        return Err(format!("opens to\n{}\nand sops prints\n{}", show(ours.expose()), show(&printed)));
    }
    Ok(())
}
