//! What a ledger promises of its file.

use std::fs;
use std::path::PathBuf;

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
