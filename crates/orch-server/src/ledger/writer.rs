//! Writes lines to the end of a file, and says when they are on disk. Those that come at once share one flush.

use std::io;
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, Sender, channel};
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
#[derive(Debug, Clone)]
enum Progress {
    /// All up to this number.
    Until(u64),
    /// Nothing more is: the file cannot be written.
    Failed(String),
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
        let (told, progress) = watch::channel(Progress::Until(0));
        let thread =
            thread::Builder::new().name("ledger".into()).spawn(move || write(scribe, &lines, &told))?;
        let queue = Mutex::new(Queue { last: 0, scribe: Some(queue) });
        Ok(Self { queue, progress, thread: Some(thread) })
    }

    /// Gives a line away, and says which one it is.
    pub(super) fn append(&self, entry: &Entry) -> u64 {
        let mut queue = self.queue.lock().expect("nobody panics while holding this");
        queue.last += 1;
        // Where nobody writes any more, waiting for it says so.
        let _ = queue.scribe.as_ref().map(|scribe| scribe.send(entry.line()));
        queue.last
    }

    /// The last line that was given away: what was decided before may hang on it.
    pub(super) fn last(&self) -> u64 {
        self.queue.lock().expect("nobody panics while holding this").last
    }

    /// Waits until a line and all before it are on disk.
    pub(super) async fn wait(&self, line: u64) -> io::Result<()> {
        // Mostly there is nothing to wait for.
        if matches!(*self.progress.borrow(), Progress::Until(until) if until >= line) {
            return Ok(());
        }
        let mut progress = self.progress.clone();
        let is_over = |progress: &Progress| match progress {
            Progress::Until(until) => *until >= line,
            Progress::Failed(_) => true,
        };
        match progress.wait_for(is_over).await.map(|progress| progress.clone()) {
            Ok(Progress::Until(_)) => Ok(()),
            Ok(Progress::Failed(why)) => Err(io::Error::other(why)),
            Err(_) => Err(io::Error::other("nobody writes it any more")),
        }
    }
}

impl Drop for Writer {
    /// Waits until nothing is written any more: the file may be somebody else's then, who must not find it replaced.
    fn drop(&mut self) {
        self.queue.get_mut().expect("nobody panics while holding this").scribe = None;
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// Writes until nobody has anything to write any more, or it cannot be written.
fn write(mut scribe: Scribe, lines: &Receiver<Vec<u8>>, told: &watch::Sender<Progress>) {
    let (mut until, mut count) = (0, 0);
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
        if let Err(error) = scribe.write(&batch) {
            let _ = told.send(Progress::Failed(error.to_string()));
            return;
        }
        until += count;
        let _ = told.send(Progress::Until(until));
        scribe.tidy_up();
    }
}
