//! A connection to a node that stays open, with somebody at its other end who repeats what is said.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use super::wait_until;

/// How long an answer may take.
const LIMIT: Duration = Duration::from_secs(30);

/// A session in which `cat` runs. It is ended where nobody closes it.
pub(crate) struct Session {
    child: Child,
    to: Option<ChildStdin>,
    answers: Receiver<String>,
}

impl Session {
    pub(crate) fn open(command: &mut Command) -> Self {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (tell, answers) = channel();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        std::thread::spawn(move || lines.map_while(Result::ok).try_for_each(|line| tell.send(line)));
        Self { to: child.stdin.take(), child, answers }
    }

    #[track_caller]
    pub(crate) fn assert_answers(&mut self, word: &str) {
        writeln!(self.to.as_ref().unwrap(), "{word}").unwrap();
        assert_eq!(self.answers.recv_timeout(LIMIT).as_deref(), Ok(word), "the connection goes on");
    }

    /// Lets the other end come to its end, and asserts that it does so in order.
    #[track_caller]
    pub(crate) fn close(mut self) {
        drop(self.to.take());
        wait_until("the session is over", || self.child.try_wait().unwrap().is_some());
        assert!(self.child.wait().unwrap().success());
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
