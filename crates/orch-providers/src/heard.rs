//! What a program on a node writes: its end, where it is more than this machine should keep.

use tokio::io::{AsyncRead, AsyncReadExt as _};

/// How much of each stream is kept; of more, the end.
const MOST: usize = 8 << 20;

/// How much is taken at once.
const BITE: usize = 64 << 10;

/// What was heard of one stream.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Heard {
    /// The end of what was written, or all of it.
    pub(crate) bytes: Vec<u8>,
    /// How many bytes before that were let go.
    left_out: u64,
}

impl Heard {
    /// Takes everything that a program writes. A connection that breaks shows in how the program ended.
    pub(crate) async fn all_of(stream: Option<impl AsyncRead + Unpin>) -> Self {
        let mut heard = Self::default();
        let Some(mut stream) = stream else { return heard };
        let mut bite = vec![0; BITE];
        while let Ok(length @ 1..) = stream.read(&mut bite).await {
            heard.bytes.extend_from_slice(&bite[..length]);
            // Not at every bite: what is kept has to be moved each time.
            if heard.bytes.len() > MOST + MOST / 2 {
                heard.cut();
            }
        }
        heard.cut();
        heard
    }

    /// The words for what was left out, where something was.
    pub(crate) fn note(&self, stream: &str) -> Option<String> {
        let kept = MOST >> 20;
        (self.left_out > 0).then(|| {
            format!(
                "orch: the first {} bytes of {stream} were left out: the last {kept} MB are kept\n",
                self.left_out
            )
        })
    }

    fn cut(&mut self) {
        let more = self.bytes.len().saturating_sub(MOST);
        self.bytes.drain(..more);
        self.left_out += u64::try_from(more).unwrap_or(u64::MAX);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_end_is_kept_and_what_was_left_out_is_said() {
        let long = tokio::io::repeat(b'x').take(9 * (MOST as u64)).chain(&b"the end"[..]);
        let heard = Heard::all_of(Some(long)).await;
        assert!(heard.bytes.len() == MOST && heard.bytes.ends_with(b"xthe end"), "{}", heard.bytes.len());
        let note = heard.note("standard output").unwrap();
        let count = 8 * MOST + "the end".len();
        assert_eq!(
            note,
            format!(
                "orch: the first {count} bytes of standard output were left out: the last 8 MB are kept\n"
            )
        );
        let whole = Heard::all_of(Some(&b"all of it"[..])).await;
        assert_eq!((whole.bytes.as_slice(), whole.note("it")), (&b"all of it"[..], None));
    }
}
