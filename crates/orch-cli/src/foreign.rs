//! What programs on nodes wrote: passed on as it is to files and pipes, made harmless for a terminal, which would obey it.

use std::borrow::Cow;
use std::io::IsTerminal;

use orch_model::printable;

/// The bytes of a program as this stream may have them.
pub(crate) fn fit_for<'b>(stream: &impl IsTerminal, bytes: &'b [u8]) -> Cow<'b, [u8]> {
    if stream.is_terminal() { harmless(bytes).into_bytes().into() } else { bytes.into() }
}

/// The same text without anything that could drive a terminal; lines and tabs stay.
fn harmless(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let line = |line: &str| {
        let words: Vec<_> = line.trim_end_matches('\r').split('\t').map(printable).collect();
        words.join("\t")
    };
    text.split('\n').map(line).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_is_shown_the_text_and_nothing_that_it_would_obey() {
        let written = b"NAME\tSIZE\r\na\t1\n\n\x1b]0;owned\x07\x1b[2Jb\rc\xff\n\xe6\x97\xa5";
        let shown = "NAME\tSIZE\na\t1\n\n\u{fffd}]0;owned\u{fffd}\u{fffd}[2Jb\u{fffd}c\u{fffd}\n\u{65e5}";
        assert_eq!(harmless(written), shown);
        assert_eq!(harmless(b""), "");
    }

    #[test]
    fn what_is_no_terminal_gets_every_byte() {
        let file = std::fs::File::open("/dev/null").unwrap();
        let written = b"\x1b[2J\x00\xff\r\n";
        assert_eq!(*fit_for(&file, written), *written);
    }
}
