//! Which comments stand before which value, for files in which comments say what is encrypted.
//!
//! sops keeps comments in its tree, before the entry that they stand above or beside. A comment of its own line belongs to
//! the map or list whose entries begin in its column.

use super::SopsFile;
use super::document::Comment;
use super::node::{Entry, Value};

/// How far a comment may stand behind what it is beside. A line that is longer was not written for people.
const NEAR: usize = 10_000;

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
        let above = self.within(from, start);
        let above =
            above.iter().filter(|one| self.file.column(one.sign) == column && self.begins_line(one.sign));
        let is_leaf = value.entries().is_empty() && value.items().is_empty();
        let beside = if is_leaf { self.within(end, self.line_end(end)) } else { &[] };
        let beside = beside.iter().filter(|one| !self.begins_line(one.sign));
        above.chain(beside).map(|comment| self.text(comment)).collect()
    }

    /// The comments that begin between two places. They are in the order of the text.
    fn within(&self, from: usize, to: usize) -> &'a [Comment] {
        let all = &self.file.comments;
        let at = |place| all.partition_point(|comment| comment.sign < place);
        all.get(at(from)..at(to)).unwrap_or_default()
    }

    fn line_end(&self, at: usize) -> usize {
        let near = self.file.text.len().min(at + NEAR);
        let rest = self.file.text.get(at..near).unwrap_or_default();
        at + rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len())
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
