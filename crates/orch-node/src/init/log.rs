//! The log of init. Where it cannot be written, init goes on without.

use std::fs::File;
use std::io::Write;
use std::path::Path;

pub(super) struct Log(Option<File>);

impl Log {
    pub(super) fn open(path: &Path) -> Self {
        Self(File::options().append(true).create(true).open(path).ok())
    }

    pub(super) fn say(&mut self, line: &str) {
        if let Some(file) = &mut self.0 {
            // There is nobody to tell that it cannot be told.
            let _ = writeln!(file, "{:.3} {line}", jiff::Timestamp::now());
        }
    }

    /// Lets go of the streams that came with the process: whoever started the node waits for their end.
    pub(super) fn take_standard_streams(&self) {
        let Ok(nothing) = File::options().read(true).write(true).open("/dev/null") else { return };
        let _ = rustix::stdio::dup2_stdin(&nothing);
        let out = self.0.as_ref().unwrap_or(&nothing);
        let _ = rustix::stdio::dup2_stdout(out);
        let _ = rustix::stdio::dup2_stderr(out);
    }
}
