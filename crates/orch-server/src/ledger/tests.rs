//! What a ledger promises of its file.

use std::error::Error as _;
use std::fs;
use std::io::Write as _;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use tempfile::TempDir;

use super::*;

struct Scene {
    _base: TempDir,
    path: PathBuf,
}

impl Scene {
    fn new() -> Self {
        let base = TempDir::new().unwrap();
        Self { path: base.path().join("ledger.jsonl"), _base: base }
    }

    fn lines(&self) -> usize {
        fs::read_to_string(&self.path).unwrap().lines().count()
    }

    /// What somebody finds who opens the file now.
    fn found(&self) -> Vec<u8> {
        load(&self.path).unwrap().book.text()
    }
}

fn node(number: usize) -> Identity {
    format!("m.n{number}@h").parse().unwrap()
}

fn id(chain: u128, generation: u64) -> TokenId {
    TokenId { chain: Chain(chain), generation }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_ledger_does_not_grow_with_the_questions_and_loses_none_of_them() {
    const NODES: usize = 16;
    let scene = Scene::new();
    let ledger = Arc::new(Ledger::open(&scene.path).unwrap());
    let ask = |number: usize| {
        let (ledger, path) = (Arc::clone(&ledger), scene.path.clone());
        async move {
            for generation in 0..300 {
                ledger.show(&node(number), id(1, generation), generation).await.unwrap();
                if generation % 50 == 49 {
                    let found = read(&path).unwrap()[&node(number)].last;
                    assert_eq!(found, id(1, generation), "it was answered, so it is on disk");
                    ledger.show(&node(number), id(1, 0), generation).await.unwrap_err();
                    let chain = Chain(1000 + u128::from(generation));
                    ledger.revoke(Revoked::Chain(chain), generation).await.unwrap();
                }
            }
        }
    };
    let asking: Vec<_> = (0..NODES).map(|number| tokio::spawn(ask(number))).collect();
    for asked in asking {
        asked.await.unwrap();
    }
    let said = ledger.book().text();
    assert_eq!(said.split_inclusive(|byte| *byte == b'\n').count(), ledger.book().lines());
    drop(ledger);
    assert_eq!(scene.found(), said);
    assert!(scene.lines() < 2 * (2 * NODES + 6) + SLACK + NODES, "{}", scene.lines());
    let names: Vec<_> = fs::read_dir(scene.path.parent().unwrap()).unwrap().collect();
    assert_eq!(names.len(), 1, "no draft stays: {names:?}");
}

#[tokio::test]
async fn many_things_taken_back_are_no_reason_to_write_the_file_anew_all_the_time() {
    let scene = Scene::new();
    let text: Vec<u8> = (0..2 * SLACK as u128)
        .flat_map(|chain| Entry::Revoked { what: Revoked::Chain(Chain(chain)), at: 7 }.line())
        .collect();
    fs::write(&scene.path, &text).unwrap();
    let ledger = Ledger::open(&scene.path).unwrap();
    ledger.show(&node(1), id(1 << 20, 0), 0).await.unwrap();
    drop(ledger);
    assert!(fs::read(&scene.path).unwrap().starts_with(&text));
}

/// Whether the disk of the one test that has such a disk is full.
static IS_FULL: AtomicBool = AtomicBool::new(false);

/// A disk that, when it is full, has room for half of what is written.
fn put_or_run_out(file: &mut File, lines: &[u8]) -> io::Result<()> {
    if !IS_FULL.load(Ordering::SeqCst) {
        return disk::put(file, lines);
    }
    file.write_all(&lines[..lines.len() / 2])?;
    Err(io::ErrorKind::StorageFull.into())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_is_said_to_those_who_wait_and_forgotten_once_there_is_room() {
    let scene = Scene::new();
    let ledger = Ledger::open_with(&scene.path, put_or_run_out).unwrap();
    ledger.show(&node(1), id(1, 0), 0).await.unwrap();
    let before = fs::read(&scene.path).unwrap();
    IS_FULL.store(true, Ordering::SeqCst);
    for _ in 0..3 {
        let Err(ShowError::Ledger(error)) = ledger.show(&node(1), id(1, 1), 1).await else {
            panic!("it is not on disk, and it is not for the first one alone that it is not")
        };
        assert!(error.source().unwrap().to_string().contains("no storage space"), "{error:?}");
        assert_eq!(
            fs::read(&scene.path).unwrap(),
            before,
            "half a line would be taken for the next one's begin"
        );
    }
    ledger.revoke(Revoked::Chain(Chain(9)), 2).await.unwrap_err();
    ledger.show(&node(1), id(1, 2), 3).await.unwrap_err();
    for number in 0..2 * SLACK as u64 {
        // Somebody who has two tokens that were used up can go on like this for as long as he likes.
        ledger.show(&node(1), id(1, number % 2), 3).await.unwrap_err();
    }
    ledger.show(&node(2), id(1, 0), 3).await.unwrap_err();
    assert_eq!(fs::read(&scene.path).unwrap(), before);
    IS_FULL.store(false, Ordering::SeqCst);
    ledger.show(&node(1), id(1, 2), 4).await.unwrap();
    assert_eq!(read(&scene.path).unwrap()[&node(1)].last, id(1, 2), "it was answered, so it is on disk");
    assert!(scene.lines() < SLACK + 20, "what waits for room does not grow without end: {}", scene.lines());
    let said = ledger.book().text();
    drop(ledger);
    assert_eq!(scene.found(), said, "what was decided while there was no room is there too");
}
