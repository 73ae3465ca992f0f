//! A program that was started and not waited for.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use super::Outcome;

/// A program that runs. It is killed where nobody waits for it.
pub(crate) struct Running {
    child: Option<Child>,
    words: String,
    /// What it says on standard error.
    said: File,
}

impl Running {
    pub(crate) fn start(command: &mut Command, words: &str) -> Self {
        let said = tempfile::tempfile().unwrap();
        let command = command.stdout(Stdio::piped()).stderr(said.try_clone().unwrap());
        let child = command.process_group(0).spawn().unwrap();
        Self { child: Some(child), words: words.to_owned(), said }
    }

    pub(crate) fn pid(&self) -> i32 {
        self.child.as_ref().unwrap().id().cast_signed()
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill(self.pid(), signal);
    }

    /// Kills it, and waits for its end. It may have ended before.
    pub(crate) fn cut_off(mut self) {
        let mut child = self.child.take().unwrap();
        let _ = child.kill();
        child.wait().unwrap();
    }

    /// What it has said on standard error so far.
    pub(crate) fn said(&self) -> String {
        let mut text = vec![0; usize::try_from(self.said.metadata().unwrap().len()).unwrap()];
        // By place, since it writes where it reads.
        self.said.read_exact_at(&mut text, 0).unwrap();
        String::from_utf8_lossy(&text).into_owned()
    }

    /// Whether it has ended.
    pub(crate) fn has_ended(&mut self) -> bool {
        self.child.as_mut().unwrap().try_wait().unwrap().is_some()
    }

    /// Waits for its end.
    #[track_caller]
    pub(crate) fn end(mut self) -> Outcome {
        let mut outcome = Outcome::soon(self.child.take().unwrap(), &self.words);
        outcome.stderr = self.said();
        outcome
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Sends a process a signal.
pub(crate) fn kill(pid: i32, signal: Signal) {
    kill_process(Pid::from_raw(pid).unwrap(), signal).unwrap();
}
