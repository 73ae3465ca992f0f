//! A command that prints identities: its words, split without a shell, and its output, within a time.

use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use zeroize::Zeroizing;

use super::{read_once, withhold};

/// Runs the command. Why not, in words that repeat nothing of it: its arguments may be secret.
pub(super) fn output(line: &str, deadline: Duration) -> Result<Zeroizing<Vec<u8>>, &'static str> {
    let words = words(line).ok_or("a quote of it is not closed")?;
    let (program, arguments) = words.split_first().ok_or("it is empty")?;
    let mut child = withhold(&mut Command::new(program))
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|_| "it cannot be run")?;
    let stdout = child.stdout.take().ok_or("it cannot be run")?;
    let (sender, receiver) = mpsc::channel();
    // Reading does not end before whoever inherited the pipe is gone, so it is done on the side and may be left behind.
    thread::spawn(move || {
        // Nobody listens any more where it took too long.
        let _ = sender.send(read_once(stdout));
    });
    let end = Instant::now() + deadline;
    let printed = receiver.recv_timeout(deadline);
    let status = loop {
        match child.try_wait() {
            Ok(Some(status)) => break Some(status),
            Ok(None) if printed.is_ok() && Instant::now() < end => thread::sleep(Duration::from_millis(2)),
            _ => break None,
        }
    };
    let Some(status) = status else {
        let _ = child.kill();
        let _ = child.wait();
        return Err("it took too long");
    };
    match printed {
        Ok(Ok(bytes)) if status.success() => Ok(bytes),
        Ok(Ok(_)) => Err("it failed"),
        _ => Err("its output cannot be read"),
    }
}

/// Splits a line as sops does: spaces, both kinds of quotes, a backslash for the next character, `#` for the rest of the line.
pub(crate) fn words(line: &str) -> Option<Vec<String>> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        match c {
            ' ' | '\t' | '\r' | '\n' => words.extend(word.take()),
            '#' if word.is_none() => {
                chars.by_ref().find(|c| *c == '\n');
            }
            '\\' => word.get_or_insert_default().push(chars.next()?),
            '\'' => {
                let word = word.get_or_insert_default();
                loop {
                    match chars.next()? {
                        '\'' => break,
                        c => word.push(c),
                    }
                }
            }
            '"' => {
                let word = word.get_or_insert_default();
                loop {
                    match chars.next()? {
                        '"' => break,
                        '\\' => word.push(chars.next()?),
                        c => word.push(c),
                    }
                }
            }
            c => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    Some(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_split_without_a_shell() {
        let split = |line: &str| words(line).unwrap_or_default();
        assert_eq!(
            split("pass show 'my key' \"a \\\" b\" c\\ d # rest"),
            ["pass", "show", "my key", "a \" b", "c d"]
        );
        assert_eq!(split("echo $HOME;ls '' x#y"), ["echo", "$HOME;ls", "", "x#y"]);
        assert_eq!(words("a 'b"), None);
    }

    #[test]
    fn a_command_that_does_not_end_is_given_up() {
        let start = Instant::now();
        assert_eq!(output("sleep 20", Duration::from_millis(50)).err(), Some("it took too long"));
        assert!(start.elapsed() < Duration::from_secs(10));
    }

    #[test]
    fn a_command_is_believed_only_where_it_succeeds() {
        let minute = Duration::from_mins(1);
        assert_eq!(output("printf '%s' abc", minute).map(|bytes| bytes.to_vec()), Ok(b"abc".to_vec()));
        assert_eq!(output("false", minute).err(), Some("it failed"));
        assert_eq!(output("/no/such/program x", minute).err(), Some("it cannot be run"));
        assert_eq!(output("", minute).err(), Some("it is empty"));
        assert_eq!(output("head -c 1048577 /dev/zero", minute).err(), Some("its output cannot be read"));
    }
}
