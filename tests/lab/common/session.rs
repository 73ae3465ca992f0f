//! A connection to a node that stays open, with somebody at its other end who repeats what is said.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// A session in which `cat` runs. It is ended where nobody closes it.
pub(crate) struct Session {
    child: Child,
    to: Option<ChildStdin>,
    from: BufReader<ChildStdout>,
}

impl Session {
    pub(crate) fn open(command: &mut Command) -> Self {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (to, from) = (child.stdin.take(), BufReader::new(child.stdout.take().unwrap()));
        Self { child, to, from }
    }

    #[track_caller]
    pub(crate) fn assert_answers(&mut self, word: &str) {
        writeln!(self.to.as_ref().unwrap(), "{word}").unwrap();
        let mut line = String::new();
        self.from.read_line(&mut line).unwrap();
        assert_eq!(line.trim(), word, "the connection goes on");
    }

    /// Lets the other end come to its end, and asserts that it does so in order.
    #[track_caller]
    pub(crate) fn close(mut self) {
        drop(self.to.take());
        assert!(self.child.wait().unwrap().success());
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
