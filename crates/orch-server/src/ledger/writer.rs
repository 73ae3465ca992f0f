//! Writes lines to the end of a file, and says when they are on disk. Those that come at once share one flush.

use std::io;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use tokio::sync::watch;

use super::Entry;
use super::scribe::Scribe;

/// So many at once are many.
const MANY: u64 = 4;
/// What those who are many wait for each other: about as long as a flush takes.
const MOMENT: Duration = Duration::from_micros(250);

/// How far the lines are on disk.
#[derive(Debug, Clone, Default)]
struct Progress {
    /// All up to this number are.
    written: u64,
    /// All up to this number were tried.
    tried: u64,
    /// Why those that were tried and are not on disk are not.
    trouble: Option<Trouble>,
}

#[derive(Debug, Clone)]
struct Trouble {
    kind: io::ErrorKind,
    why: Arc<str>,
}

#[derive(Debug)]
pub(super) struct Writer {
    queue: Mutex<Queue>,
    progress: watch::Receiver<Progress>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Queue {
    /// The number of the last line that was given away.
    last: u64,
    /// Where it was given to, until the end.
    scribe: Option<Sender<Vec<u8>>>,
}

impl Writer {
    pub(super) fn start(scribe: Scribe) -> io::Result<Self> {
        let (queue, lines) = channel();
        let (told, progress) = watch::channel(Progress::default());
        let thread =
            thread::Builder::new().name("ledger".into()).spawn(move || write(scribe, &lines, &told))?;
        let queue = Mutex::new(Queue { last: 0, scribe: Some(queue) });
        Ok(Self { queue, progress, thread: Some(thread) })
    }

    /// Gives a line away, and says which one it is.
    pub(super) fn append(&self, entry: &Entry) -> u64 {
        self.queue().give(entry.line())
    }

    /// The last line that was given away: what was decided before may hang on it. One that failed is tried again: it was
    /// decided, and whoever asks once more must not be told so before it is on disk.
    pub(super) fn last(&self) -> u64 {
        let mut queue = self.queue();
        let has_failed = {
            let progress = self.progress.borrow();
            progress.written < queue.last && progress.tried >= queue.last
        };
        if has_failed { queue.give(Vec::new()) } else { queue.last }
    }

    /// Waits until a line and all before it are on disk, or could not be written.
    pub(super) async fn wait(&self, line: u64) -> io::Result<()> {
        // Mostly there is nothing to wait for.
        if self.progress.borrow().written >= line {
            return Ok(());
        }
        let mut progress = self.progress.clone();
        let is_over = |progress: &Progress| progress.tried >= line;
        let gone = |_| io::Error::other("nobody writes it any more");
        let progress = progress.wait_for(is_over).await.map_err(gone)?;
        match &progress.trouble {
            Some(trouble) if progress.written < line => {
                Err(io::Error::new(trouble.kind, trouble.why.to_string()))
            }
            _ => Ok(()),
        }
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().expect("nobody panics while holding this")
    }
}

impl Queue {
    fn give(&mut self, line: Vec<u8>) -> u64 {
        self.last += 1;
        // Where nobody writes any more, waiting for it says so.
        let _ = self.scribe.as_ref().map(|scribe| scribe.send(line));
        self.last
    }
}

impl Drop for Writer {
    /// Waits until nothing is written any more: the file may be somebody else's then, who must not find it replaced.
    fn drop(&mut self) {
        self.queue.get_mut().expect("nobody panics while holding this").scribe = None;
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// Writes until nobody has anything to write any more. What fails now may go well the next time: disks are emptied.
fn write(mut scribe: Scribe, lines: &Receiver<Vec<u8>>, told: &watch::Sender<Progress>) {
    let mut count = 0;
    while let Ok(mut batch) = lines.recv() {
        // Where the last ones were many there are more of them on their way, and they may share a flush too.
        if count >= MANY {
            thread::sleep(MOMENT);
        }
        count = 1;
        while let Ok(more) = lines.try_recv() {
            batch.extend(more);
            count += 1;
        }
        let written = scribe.write(&batch);
        told.send_modify(|progress| {
            progress.tried += count;
            match &written {
                Ok(()) => (progress.written, progress.trouble) = (progress.tried, None),
                Err(error) => {
                    progress.trouble = Some(Trouble { kind: error.kind(), why: error.to_string().into() });
                }
            }
        });
        if written.is_ok() {
            scribe.tidy_up();
        }
    }
}
