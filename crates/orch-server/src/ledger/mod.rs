//! Which tokens were used. A token may be shown again until the one that follows it was shown; from then on it is worthless,
//! also after the server was killed: nothing is answered before that is on disk.

mod book;
mod disk;
mod scribe;
#[cfg(test)]
mod tests;
mod writer;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard};

use orch_model::token::{Chain, Refusal, TokenId};
use orch_model::{Identity, NodeKeys};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::files;
use book::Book;
pub use book::TokenStanding;
use disk::{Disk, Put};
use scribe::Scribe;
use writer::Writer;

/// How many lines there may be beyond twice those that say something new before the file is written anew.
const SLACK: usize = 1000;

/// The ledger cannot be used.
#[derive(Debug, Error)]
#[error("the ledger of tokens cannot be {doing}")]
pub struct LedgerError {
    doing: &'static str,
    #[source]
    source: io::Error,
}

/// Why a token that is shown is not taken.
#[derive(Debug, Error)]
pub enum ShowError {
    /// It is worthless.
    #[error("{0}")]
    Refused(Refusal),
    /// It could not be written down, so nobody may rely on it.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
}

/// What is taken back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Revoked {
    /// A token and everything that follows from it.
    Chain(Chain),
    /// Everything that a node was given until a moment, which is a chain that would begin then.
    Node(Identity, Chain),
}

/// One line of the file.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Entry {
    Used { node: Identity, id: TokenId, at: u64 },
    Met { node: Identity, keys: NodeKeys },
    Misused { node: Identity, id: TokenId, at: u64 },
    Revoked { what: Revoked, at: u64 },
}

impl Entry {
    fn line(&self) -> Vec<u8> {
        let mut line = serde_json::to_vec(self).expect("an entry can be written as JSON");
        line.push(b'\n');
        line
    }
}

/// Which tokens were used. Whoever has it open is the only one.
#[derive(Debug)]
pub struct Ledger {
    book: Arc<Mutex<Book>>,
    writer: Writer,
}

impl Ledger {
    /// Opens the ledger of a server. The caller is the one who may.
    pub fn open(path: &Path) -> Result<Self, LedgerError> {
        Self::open_with(path, disk::put)
    }

    fn open_with(path: &Path, put: Put) -> Result<Self, LedgerError> {
        let failed = |doing| move |source| LedgerError { doing, source };
        let Loaded { book, mut lines, is_cut_off } = load(path).map_err(failed("read"))?;
        // What comes after half a line would be taken for its end.
        if is_cut_off || is_worth_writing_anew(lines, &book) {
            files::replace(path, &book.text()).map_err(failed("written"))?;
            lines = book.lines();
        }
        let disk = Disk::open(path, put).map_err(failed("opened"))?;
        let book = Arc::new(Mutex::new(book));
        let scribe = Scribe::new(disk, Arc::clone(&book), lines);
        let writer = Writer::start(scribe).map_err(failed("opened"))?;
        Ok(Self { book, writer })
    }

    /// Takes a token that a node shows, which was signed by us: it must not be followed by one that was shown already.
    pub async fn show(&self, node: &Identity, id: TokenId, now: u64) -> Result<(), ShowError> {
        let (verdict, written) = {
            let mut book = self.book();
            let verdict = book.show(node, id, now);
            let entry = match verdict {
                Ok(true) => Some(Entry::Used { node: node.clone(), id, at: now }),
                Err(Refusal::UsedUp) if book.is_new_misuse(node, id, now) => {
                    Some(Entry::Misused { node: node.clone(), id, at: now })
                }
                Ok(false) | Err(_) => None,
            };
            // In the order in which it was decided, and so under the lock.
            (verdict, entry.map_or_else(|| self.writer.last(), |entry| self.writer.append(&entry)))
        };
        let failed = |source| LedgerError { doing: "written", source };
        self.writer.wait(written).await.map_err(failed)?;
        verdict.map(|_| ()).map_err(ShowError::Refused)
    }

    /// Takes note of the keys that a node says it has, with a token that was just taken. Those that come with the first
    /// token of a chain are the node's; whoever comes with others is not the node, and the node's operator is alarmed.
    pub async fn meet(&self, node: &Identity, keys: &NodeKeys, now: u64) -> Result<(), ShowError> {
        self.take_note(node, keys, now, Book::meet).await
    }

    /// The same for a node that tells something: what is known of it may become more, but it is not known by that.
    pub async fn hear(&self, node: &Identity, keys: &NodeKeys, now: u64) -> Result<(), ShowError> {
        self.take_note(node, keys, now, Book::hear).await
    }

    async fn take_note(
        &self,
        node: &Identity,
        keys: &NodeKeys,
        now: u64,
        judge: impl FnOnce(&mut Book, &Identity, &NodeKeys) -> Result<bool, Refusal>,
    ) -> Result<(), ShowError> {
        let (verdict, written) = {
            let mut book = self.book();
            let verdict = judge(&mut book, node, keys);
            let entry = match verdict {
                Ok(true) => Some(Entry::Met { node: node.clone(), keys: keys.clone() }),
                Ok(false) => None,
                Err(_) => {
                    book.suspect(node, now).map(|id| Entry::Misused { node: node.clone(), id, at: now })
                }
            };
            (verdict, entry.map_or_else(|| self.writer.last(), |entry| self.writer.append(&entry)))
        };
        let failed = |source| LedgerError { doing: "written", source };
        self.writer.wait(written).await.map_err(failed)?;
        verdict.map(|_| ()).map_err(ShowError::Refused)
    }

    /// Takes tokens back. When this comes back they are worthless.
    pub async fn revoke(&self, what: Revoked, now: u64) -> Result<(), LedgerError> {
        let written = {
            let mut book = self.book();
            book.revoke(&what);
            self.writer.append(&Entry::Revoked { what, at: now })
        };
        self.writer.wait(written).await.map_err(|source| LedgerError { doing: "written", source })
    }

    /// How the tokens of a node stand; nothing where it never showed one.
    pub fn standing(&self, node: &Identity) -> Option<TokenStanding> {
        self.book().standing(node).cloned()
    }

    /// How many nodes have shown a token.
    pub(crate) fn len(&self) -> usize {
        self.book().len()
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().expect("nobody panics while holding this")
    }
}

/// How the tokens of every node stand, by what is on disk. Whoever serves goes on meanwhile.
pub fn read(path: &Path) -> Result<BTreeMap<Identity, TokenStanding>, LedgerError> {
    let loaded = load(path).map_err(|source| LedgerError { doing: "read", source })?;
    Ok(loaded.book.into_standings())
}

/// Whether a token would be taken if its node showed it now, by what is on disk. It is not shown by that: nothing is used up,
/// and there is no alarm. Whether it was signed by us, and for this node, is not known here.
pub fn judge(path: &Path, node: &Identity, id: TokenId) -> Result<Result<(), Refusal>, LedgerError> {
    let loaded = load(path).map_err(|source| LedgerError { doing: "read", source })?;
    Ok(loaded.book.would_take(node, id))
}

/// What the file says.
struct Loaded {
    book: Book,
    lines: usize,
    /// Whether its last line was cut off. Nobody was answered for that one.
    is_cut_off: bool,
}

/// Whether most of the lines of the file say nothing any more.
fn is_worth_writing_anew(lines: usize, book: &Book) -> bool {
    lines > 2 * book.lines() + SLACK
}

fn load(path: &Path) -> io::Result<Loaded> {
    let mut loaded = Loaded { book: Book::default(), lines: 0, is_cut_off: false };
    let mut file = match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(loaded),
        file => BufReader::new(file?),
    };
    let mut line = Vec::new();
    while file.read_until(b'\n', &mut line)? > 0 {
        if !line.ends_with(b"\n") {
            loaded.is_cut_off = true;
            break;
        }
        let entry = serde_json::from_slice(&line);
        loaded.book.take_over(&entry.map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?);
        loaded.lines += 1;
        line.clear();
    }
    Ok(loaded)
}
