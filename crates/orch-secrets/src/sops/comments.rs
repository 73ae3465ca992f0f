//! Which comments stand before which value, for files in which comments say what is encrypted.
//!
//! sops keeps comments in its tree, before the entry that they stand above or beside. A comment of its own line belongs to
//! the map or list whose entries begin in its column.

use super::SopsFile;
use super::document::Comment;
use super::node::{Entry, Value};

/// Comments of a file, as they are asked for while its tree is walked.
pub(super) struct Comments<'a> {
    file: &'a SopsFile,
}

impl<'a> Comments<'a> {
    pub(super) fn of(file: &'a SopsFile) -> Self {
        Self { file }
    }

    /// The texts of the comments that belong to an entry of a map. What is before it ends at `from`.
    pub(super) fn of_entry(&self, from: usize, entry: &Entry) -> Vec<&'a [u8]> {
        let start = entry.key_span.start;
        let column = self.file.column(start);
        self.texts(from, start, column, &entry.value, self.file.end_of(entry))
    }

    /// The same for an item of a list, which begins with its dash.
    pub(super) fn of_item(&self, from: usize, item: &Value) -> Vec<&'a [u8]> {
        let line = item.span.start - self.file.column(item.span.start);
        let text = self.file.text.get(line..).unwrap_or_default();
        let column = text.iter().take_while(|byte| **byte == b' ').count();
        self.texts(from, item.span.start, column, item, self.file.end_of_value(item))
    }

    fn texts(&self, from: usize, start: usize, column: usize, value: &Value, end: usize) -> Vec<&'a [u8]> {
        let line_end = self.file.line_end(end);
        let is_leaf = value.entries().is_empty() && value.items().is_empty();
        let own = |comment: &&Comment| {
            let at = comment.sign;
            let above = (from..start).contains(&at) && self.file.column(at) == column && self.begins_line(at);
            let beside = is_leaf && (end..line_end).contains(&at) && !self.begins_line(at);
            above || beside
        };
        self.file.comments.iter().filter(own).map(|comment| self.text(comment)).collect()
    }

    /// All that stands behind the sign.
    fn text(&self, comment: &Comment) -> &'a [u8] {
        let end = self.file.line_end(comment.sign);
        self.file.text.get(comment.sign + 1..end).unwrap_or_default()
    }

    fn begins_line(&self, at: usize) -> bool {
        let start = at - self.file.column(at);
        self.file.text[start..at].iter().all(|byte| *byte == b' ')
    }
}
