//! The thread that writes: takes all lines that wait, writes them at once, flushes once, acknowledges all.
//!
//! A thread and not a task, because flushing blocks for milliseconds and must go on while a runtime winds down.

use std::fs::File;
use std::io::{self, Write};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};

use tokio::sync::oneshot;

type Written = Result<(), Arc<io::Error>>;

struct Waiting {
    line: Vec<u8>,
    acknowledge: oneshot::Sender<Written>,
}

/// A thread that appends to a file. Dropping it waits until everything handed in is written.
#[derive(Debug)]
pub(super) struct Writer {
    queue: Option<Sender<Waiting>>,
    thread: Option<JoinHandle<()>>,
}

impl Writer {
    pub(super) fn start(file: File) -> io::Result<Self> {
        let (queue, waiting) = channel();
        let thread =
            thread::Builder::new().name("journal".to_owned()).spawn(move || serve(file, &waiting))?;
        Ok(Self { queue: Some(queue), thread: Some(thread) })
    }

    /// Appends one line; when this returns without error, it is on the disk.
    pub(super) async fn write(&self, line: Vec<u8>) -> Written {
        let (acknowledge, written) = oneshot::channel();
        let queued = self.queue.as_ref().map(|queue| queue.send(Waiting { line, acknowledge }));
        match queued {
            Some(Ok(())) => written.await.unwrap_or_else(|_| Err(gone())),
            Some(Err(_)) | None => Err(gone()),
        }
    }
}

fn gone() -> Arc<io::Error> {
    Arc::new(io::Error::other("the writing thread has ended"))
}

impl Drop for Writer {
    fn drop(&mut self) {
        // Without a sender the thread ends as soon as its queue is empty.
        self.queue = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn serve(mut file: File, waiting: &Receiver<Waiting>) {
    let mut written: Written = Ok(());
    while let Ok(first) = waiting.recv() {
        let batch: Vec<Waiting> = std::iter::once(first).chain(waiting.try_iter()).collect();
        // After a failure it is unknown what the kernel still holds, and a second flush may claim success wrongly.
        written = written.and_then(|()| write_all(&mut file, &batch).map_err(Arc::new));
        for waiting in batch {
            // Whoever no longer waits does not need to know.
            let _ = waiting.acknowledge.send(written.clone());
        }
    }
}

fn write_all(file: &mut File, batch: &[Waiting]) -> io::Result<()> {
    let bytes: Vec<u8> = batch.iter().flat_map(|waiting| waiting.line.iter().copied()).collect();
    file.write_all(&bytes)?;
    file.sync_data()
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::fs::OpenOptions;

    use super::*;

    #[tokio::test]
    async fn after_one_failure_no_line_is_acknowledged() {
        let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
        let writer = Writer::start(full).unwrap();
        for _ in 0..2 {
            let error = writer.write(b"line\n".to_vec()).await.unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::StorageFull);
        }
    }

    #[tokio::test]
    async fn lines_that_wait_together_are_acknowledged_together() {
        let (queue, waiting) = channel();
        let acknowledged: Vec<_> = (0..3u8)
            .map(|number| {
                let (acknowledge, written) = oneshot::channel();
                queue.send(Waiting { line: vec![number], acknowledge }).unwrap();
                written
            })
            .collect();
        drop(queue);
        let mut file = tempfile::tempfile().unwrap();
        serve(file.try_clone().unwrap(), &waiting);
        for written in acknowledged {
            assert!(written.await.unwrap().is_ok());
        }
        let mut bytes = Vec::new();
        io::Seek::rewind(&mut file).unwrap();
        io::Read::read_to_end(&mut file, &mut bytes).unwrap();
        assert_eq!(bytes, [0, 1, 2]);
    }
}
