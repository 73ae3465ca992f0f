//! Heeds what others want of a run while it goes on: to pause, to go on, to end.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, Sender};
use std::time::Duration;

use jiff::Timestamp;
use orch_dag::Control;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::{Herald, Patience};
use crate::journal::{Entry, RunJournal};
use crate::wish::{self, Wish, Wished};

/// Whoever listens for wishes.
pub(super) struct Attendant {
    file: PathBuf,
    control: Control,
    heeding: JoinHandle<()>,
    /// Dropping it ends the looking.
    _looking: Sender<()>,
}

impl Attendant {
    /// Listens from now on.
    pub(super) fn listen(
        journal: &Arc<RunJournal>,
        control: &Control,
        herald: &Herald,
        patience: &Patience,
    ) -> Self {
        let file = journal.wishes();
        let (looking, wishes) = look_at(file.clone(), patience.heed);
        let attention = Attention {
            journal: Arc::clone(journal),
            control: control.clone(),
            herald: Arc::clone(herald),
            longest: patience.pause,
        };
        let heeding = tokio::spawn(attention.pay(wishes));
        Self { file, control: control.clone(), heeding, _looking: looking }
    }

    /// The run is over: nobody heeds any more, and what comes after it is not held up.
    pub(super) async fn end(self) {
        self.heeding.abort();
        let _ = self.heeding.await;
        self.control.resume();
        // Most runs have none.
        let _ = std::fs::remove_file(self.file);
    }
}

/// Looks at a file again and again until what is given out first is dropped. A thread of its own does it: a file cannot be waited for, and
/// a run whose workers are busy is to be stopped all the same.
fn look_at(file: PathBuf, every: Duration) -> (Sender<()>, UnboundedReceiver<Wished>) {
    let (looking, ended) = std::sync::mpsc::channel();
    let (tell, wishes) = unbounded_channel();
    std::thread::spawn(move || {
        let mut told: Option<Wished> = None;
        while ended.recv_timeout(every) == Err(RecvTimeoutError::Timeout) {
            let heard = wish::read(&file).filter(|wished| told.as_ref() != Some(wished));
            if let Some(wished) = heard {
                told = Some(wished.clone());
                // Where nobody listens any more, the end is near.
                let _ = tell.send(wished);
            }
        }
    });
    (looking, wishes)
}

struct Attention {
    journal: Arc<RunJournal>,
    control: Control,
    herald: Herald,
    /// How long a run stays paused.
    longest: Duration,
}

impl Attention {
    async fn pay(self, mut wishes: UnboundedReceiver<Wished>) {
        let mut paused: Option<Instant> = None;
        loop {
            let end = paused.map(|since| since + self.longest);
            let is_up = async {
                match end {
                    Some(end) => tokio::time::sleep_until(end).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                next = wishes.recv() => match next {
                    Some(wish) => paused = self.heed(&wish, paused).await,
                    None => return,
                },
                () = is_up => {
                    paused = None;
                    self.abort(format!("it was paused for {:?}, and nobody had it go on", self.longest)).await;
                }
            }
        }
    }

    /// Does what is wished, and says since when the run is paused.
    async fn heed(&self, wished: &Wished, paused: Option<Instant>) -> Option<Instant> {
        let (at, by) = (Timestamp::now(), wished.by.clone());
        match (wished.wish, paused) {
            (Wish::Pause, None) => {
                self.control.pause();
                self.note(Entry::Paused { at, by: by.clone() }).await;
                let run = self.journal.run();
                (self.herald)(&format!("paused by {by}: `orch runs resume {run}` has it go on"));
                Some(Instant::now())
            }
            (Wish::Resume, Some(_)) => {
                self.note(Entry::Resumed { at, by: by.clone() }).await;
                (self.herald)(&format!("goes on, as {by} asked"));
                self.control.resume();
                None
            }
            (Wish::Abort, _) => {
                self.abort(format!("{by} asked for it")).await;
                None
            }
            (Wish::Pause, Some(_)) | (Wish::Resume, None) => paused,
        }
    }

    async fn abort(&self, why: String) {
        (self.herald)(&format!("ends early: {why}; what runs comes to its end"));
        self.note(Entry::Aborted { at: Timestamp::now(), why }).await;
        self.control.stop();
    }

    async fn note(&self, entry: Entry) {
        // A journal that cannot be written stops the engine by itself; the wish is heeded all the same.
        let _ = self.journal.append(entry).await;
    }
}
