//! The runtime that waits for many things at once. Only verbs that look at hosts start it.

use std::future::Future;
use std::time::Duration;

use crate::failure::Failure;

/// How long work in threads that nobody waits for any more may still take when the command ends. Everything else that is
/// still under way is dropped.
const GIVEN_UP: Duration = Duration::from_secs(2);

/// Waits for the end of what is to be done.
pub(crate) fn block_on<T>(future: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().enable_all().build().map_err(Failure::NoThreads)?;
    let done = runtime.block_on(future);
    // What was given up on may still be waiting for a host, and would keep the command from ending.
    runtime.shutdown_timeout(GIVEN_UP);
    done
}
