//! The body of an answer: whole, or cut in the middle.

use std::convert::Infallible;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use hyper::body::{Body, Bytes, Frame, SizeHint};

/// What is sent of a body.
pub(super) enum Sent {
    /// All of it.
    Whole(http_body_util::Full<Bytes>),
    /// The first half, as if the rest were to come.
    Half {
        half: Option<Bytes>,
        length: u64,
        /// Whether what was handed over had a chance to go out.
        is_out: bool,
    },
}

impl Sent {
    pub(super) fn whole(body: Vec<u8>) -> Self {
        Self::Whole(http_body_util::Full::new(body.into()))
    }

    pub(super) fn half(mut body: Vec<u8>) -> Self {
        let length = body.len() as u64;
        body.truncate(body.len() / 2);
        Self::Half { half: Some(body.into()), length, is_out: false }
    }
}

impl Body for Sent {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        match &mut *self {
            Self::Whole(body) => {
                Pin::new(body).poll_frame(context).map_err(|never: Infallible| match never {})
            }
            Self::Half { half, is_out, .. } => {
                if let Some(half) = half.take() {
                    return Poll::Ready(Some(Ok(Frame::data(half))));
                }
                if *is_out {
                    return Poll::Ready(Some(Err(io::Error::other("cut on purpose"))));
                }
                // Whoever waits for more sends what he has first.
                *is_out = true;
                context.waker().wake_by_ref();
                Poll::Pending
            }
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(body) => body.size_hint(),
            Self::Half { length, .. } => SizeHint::with_exact(*length),
        }
    }
}
