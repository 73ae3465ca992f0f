//! The runtime that waits for many things at once. Only verbs that look at hosts start it.

use std::future::Future;

use crate::failure::Failure;

/// Waits for the end of what is to be done.
pub(crate) fn block_on<T>(future: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    runtime.map_err(Failure::NoThreads)?.block_on(future)
}
