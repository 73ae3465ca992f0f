//! Writes what was decided to disk, one batch after the other, on a thread of its own.

use std::io;
use std::sync::{Arc, Mutex};

use super::book::Book;
use super::disk::Disk;
use super::{SLACK, is_worth_writing_anew};

#[derive(Debug)]
pub(super) struct Scribe {
    disk: Disk,
    /// What was decided: all that is on disk, and what is on its way there.
    book: Arc<Mutex<Book>>,
    /// How many lines the file has.
    lines: usize,
    /// What could not be written yet.
    backlog: Vec<u8>,
    /// From how many on it is worth another try to write it anew, after one that failed.
    patience: usize,
}

impl Scribe {
    pub(super) fn new(disk: Disk, book: Arc<Mutex<Book>>, lines: usize) -> Self {
        Self { disk, book, lines, backlog: Vec::new(), patience: 0 }
    }

    /// Writes these lines, after those that could not be written before. When this comes back they are all on disk; where it
    /// fails none is, and the next ones come after them: what was decided stays so, and in that order.
    pub(super) fn write(&mut self, batch: &[u8]) -> io::Result<()> {
        self.backlog.extend(batch);
        let lines = lines_of(&self.backlog);
        if let Err(error) = self.disk.append(&self.backlog) {
            // It does not grow for as long as the disk is full: the book says it all.
            if let Some(book) = self.copy_if(|book| is_worth_writing_anew(lines, book)) {
                self.backlog = book.text();
            }
            return Err(error);
        }
        self.lines += lines;
        self.backlog = Vec::new();
        Ok(())
    }

    /// Writes the file anew where most of it says nothing any more. Nobody waits for that, and where it fails the long file
    /// is as good as the short one.
    pub(super) fn tidy_up(&mut self) {
        let is_worth_it = |book: &Book| self.lines > self.patience && is_worth_writing_anew(self.lines, book);
        let Some(book) = self.copy_if(is_worth_it) else { return };
        match self.disk.write_anew(&book.text()) {
            Ok(()) => (self.lines, self.patience) = (book.lines(), 0),
            Err(_) => self.patience = self.lines + SLACK,
        }
    }

    /// A copy, for whoever shows a token meanwhile does not wait. It may say more than was given to us yet; that comes after
    /// it once more, and says nothing new then.
    fn copy_if(&self, is_wanted: impl FnOnce(&Book) -> bool) -> Option<Book> {
        let book = self.book.lock().expect("nobody panics while holding this");
        is_wanted(&book).then(|| book.clone())
    }
}

fn lines_of(text: &[u8]) -> usize {
    text.split(|byte| *byte == b'\n').count() - 1
}
