//! Writes lines to the end of a file, and says when they are on disk. Those that come at once share one flush.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

use serde::Serialize;
use tokio::sync::watch;

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
    /// The number of the last line that was given away, and where it was given to.
    queue: Mutex<(u64, Sender<Vec<u8>>)>,
    progress: watch::Receiver<Progress>,
}

impl Writer {
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let file = OpenOptions::new().append(true).create(true).mode(0o600).open(path)?;
        let (queue, lines) = channel();
        let (told, progress) = watch::channel(Progress::Until(0));
        thread::Builder::new().name("ledger".into()).spawn(move || write(file, &lines, &told))?;
        Ok(Self { queue: Mutex::new((0, queue)), progress })
    }

    /// Gives a line away, and says which one it is.
    pub(super) fn append(&self, entry: &impl Serialize) -> u64 {
        let mut line = serde_json::to_vec(entry).expect("an entry can be written as JSON");
        line.push(b'\n');
        let mut queue = self.queue.lock().expect("nobody panics while holding this");
        queue.0 += 1;
        // Where nobody writes any more, waiting for it says so.
        let _ = queue.1.send(line);
        queue.0
    }

    /// The last line that was given away: what was decided before may hang on it.
    pub(super) fn last(&self) -> u64 {
        self.queue.lock().expect("nobody panics while holding this").0
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

/// Writes until nobody has anything to write any more, or it cannot be written.
fn write(mut file: File, lines: &Receiver<Vec<u8>>, told: &watch::Sender<Progress>) {
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
        if let Err(error) = file.write_all(&batch).and_then(|()| file.sync_data()) {
            let _ = told.send(Progress::Failed(error.to_string()));
            return;
        }
        until += count;
        let _ = told.send(Progress::Until(until));
    }
}
