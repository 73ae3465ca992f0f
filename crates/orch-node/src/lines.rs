//! A text file as lines of bytes, of which one is changed and every other stays as it is, byte for byte.

/// The lines of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Lines(Vec<Vec<u8>>);

impl Lines {
    pub(crate) fn of(text: &[u8]) -> Self {
        let mut lines: Vec<Vec<u8>> = text.split(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect();
        if lines.last().is_some_and(Vec::is_empty) {
            lines.pop();
        }
        Self(lines)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &[u8]> {
        self.0.iter().map(Vec::as_slice)
    }

    /// Puts `line` in the place of the first line that `is_it`, or at the end where there is none.
    pub(crate) fn set(&mut self, line: &[u8], is_it: impl Fn(&[u8]) -> bool) {
        match self.0.iter_mut().find(|old| is_it(old)) {
            Some(old) => *old = line.to_vec(),
            None => self.push(line),
        }
    }

    pub(crate) fn push(&mut self, line: &[u8]) {
        self.0.push(line.to_vec());
    }

    pub(crate) fn push_front(&mut self, line: &[u8]) {
        self.0.insert(0, line.to_vec());
    }

    /// The file again. Its last line ends as a line does.
    pub(crate) fn into_bytes(self) -> Vec<u8> {
        let mut text = self.0.join(&b'\n');
        if !self.0.is_empty() {
            text.push(b'\n');
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_set_and_every_other_keeps_its_bytes() {
        for (old, new) in [
            ("", "x=1\n"),
            ("a\n", "a\nx=1\n"),
            ("a", "a\nx=1\n"),
            ("x=0\nb\r\n\n\n", "x=1\nb\r\n\n\n"),
            ("\u{fffd}\nx=\nx=2\n", "\u{fffd}\nx=1\nx=2\n"),
        ] {
            let mut lines = Lines::of(old.as_bytes());
            lines.set(b"x=1", |line| line.starts_with(b"x="));
            assert_eq!(String::from_utf8_lossy(&lines.into_bytes()), new, "{old:?}");
        }
    }
}
