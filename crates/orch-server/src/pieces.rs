//! A body in pieces. Those that many answers have in common are one, however many have not been read yet.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use hyper::body::{Body, Bytes, Frame, SizeHint};

/// What is shorter than this is copied: so it is sent at once.
const SHORT: usize = 16 << 10;

/// A body in pieces.
#[derive(Debug, Default)]
pub(crate) struct Pieces {
    pieces: VecDeque<Bytes>,
}

impl Pieces {
    /// A body of these, one after the other.
    pub(crate) fn of(pieces: impl IntoIterator<Item = Bytes>) -> Self {
        let pieces: VecDeque<Bytes> = pieces.into_iter().filter(|piece| !piece.is_empty()).collect();
        let body = Self { pieces };
        if body.pieces.len() < 2 || body.len() > SHORT {
            return body;
        }
        let mut whole = Vec::with_capacity(body.len());
        body.pieces.iter().for_each(|piece| whole.extend_from_slice(piece));
        Self { pieces: VecDeque::from([whole.into()]) }
    }

    fn len(&self) -> usize {
        self.pieces.iter().map(Bytes::len).sum()
    }
}

impl From<Vec<u8>> for Pieces {
    fn from(bytes: Vec<u8>) -> Self {
        Self::of([bytes.into()])
    }
}

impl Body for Pieces {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(self.pieces.pop_front().map(|piece| Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.pieces.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.len() as u64)
    }
}
