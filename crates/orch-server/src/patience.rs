//! A connection that gives up on somebody who does not read: what is to be written makes headway within a time, or never.

use std::future::Future;
use std::io::{self, ErrorKind, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

/// A connection with an end to its patience.
pub(crate) struct Patient<S> {
    stream: S,
    limit: Duration,
    /// When it has waited long enough; nothing while it does not wait.
    enough: Option<Pin<Box<Sleep>>>,
}

impl<S> Patient<S> {
    /// A connection that waits for so long until it can write on.
    pub(crate) const fn new(stream: S, limit: Duration) -> Self {
        Self { stream, limit, enough: None }
    }

    /// Lets a step come to its end, unless it is waited for too long.
    fn step<T>(&mut self, cx: &mut Context<'_>, step: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if step.is_ready() {
            self.enough = None;
            return step;
        }
        let limit = self.limit;
        let enough = self.enough.get_or_insert_with(|| Box::pin(sleep(limit)));
        enough.as_mut().poll(cx).map(|()| Err(ErrorKind::TimedOut.into()))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Patient<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        // How long a question may take is known to those who read it.
        Pin::new(&mut self.stream).poll_read(cx, buf)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Patient<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let step = Pin::new(&mut self.stream).poll_write(cx, buf);
        self.step(cx, step)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let step = Pin::new(&mut self.stream).poll_write_vectored(cx, bufs);
        self.step(cx, step)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let step = Pin::new(&mut self.stream).poll_flush(cx);
        self.step(cx, step)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let step = Pin::new(&mut self.stream).poll_shutdown(cx);
        self.step(cx, step)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn whoever_reads_a_little_now_and_then_is_waited_for_and_whoever_reads_nothing_is_not() {
        let (near, mut far) = duplex(10);
        let mut patient = Patient::new(near, Duration::from_secs(10));
        let reading = tokio::spawn(async move {
            for _ in 0..20 {
                sleep(Duration::from_secs(9)).await;
                far.read_exact(&mut [0; 10]).await.unwrap();
            }
            far
        });
        patient.write_all(&[0; 210]).await.unwrap();
        let _unread = reading.await.unwrap();
        assert_eq!(patient.write_all(&[0]).await.unwrap_err().kind(), ErrorKind::TimedOut);
    }
}
