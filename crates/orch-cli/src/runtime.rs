//! The runtime that waits for many things at once. Only verbs that look at hosts start it.

use std::future::Future;
use std::time::Duration;

use rustix::process::{DumpableBehavior, set_dumpable_behavior};

use crate::failure::Failure;

/// How long work in threads that nobody waits for any more may still take when the command ends. Everything else that is
/// still under way is dropped.
const GIVEN_UP: Duration = Duration::from_secs(2);

/// Has nothing of this process's memory written to a disk, whatever becomes of it. To be called before a secret is opened.
/// Programs that it starts are not concerned.
pub(crate) fn leave_no_dump() {
    // Where the kernel does not know how, there is nobody to tell who could do better.
    let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
}

/// Waits for the end of what is to be done.
pub(crate) fn block_on<T>(future: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().enable_all().build().map_err(Failure::NoThreads)?;
    let done = runtime.block_on(future);
    // What was given up on may still be waiting for a host, and would keep the command from ending.
    runtime.shutdown_timeout(GIVEN_UP);
    done
}
