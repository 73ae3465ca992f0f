//! Turns panics of code that is not ours into values, so that one task cannot take the engine with it.

use std::any::Any;
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::task::{Context, Poll};

use crate::BoxFuture;

/// Calls `code`; the panic's message if it panics.
///
/// Asserting unwind safety is sound for the engine: it never looks again at what a panicking call may have left.
pub(crate) fn call<R>(code: impl FnOnce() -> R) -> Result<R, String> {
    catch_unwind(AssertUnwindSafe(code)).map_err(|payload| message(payload.as_ref()))
}

/// Waits for a future; the panic's message if it panics.
pub(crate) async fn wait<F: Future>(future: F) -> Result<F::Output, String> {
    let mut future = pin!(future);
    poll_fn(|cx| match call(|| future.as_mut().poll(cx)) {
        Ok(poll) => poll.map(Ok),
        Err(message) => Poll::Ready(Err(message)),
    })
    .await
}

/// Makes a future and waits for it; the panic's message if making or running it panics.
pub(crate) async fn run<'a, R>(make: impl FnOnce() -> BoxFuture<'a, R>) -> Result<R, String> {
    wait(Shielded(Some(call(make)?))).await
}

/// A future whose destructor may panic as well: when it is dropped early, that must not reach the worker.
struct Shielded<'a, R>(Option<BoxFuture<'a, R>>);

impl<R> Future for Shielded<'_, R> {
    type Output = R;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<R> {
        self.0.as_mut().map_or(Poll::Pending, |future| future.as_mut().poll(cx))
    }
}

impl<R> Drop for Shielded<'_, R> {
    fn drop(&mut self) {
        let future = self.0.take();
        // The task has ended already; how its remains behave is no longer part of it.
        let _ = call(|| drop(future));
    }
}

fn message(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().copied();
    let text = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("a value that is not text").to_owned()
}
