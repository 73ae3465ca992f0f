//! A table of accounts in the form of `/etc/passwd`: a line each, fields with `:` between, the name first.

use crate::lines::Lines;

/// A table, read.
#[derive(Debug)]
pub(super) struct Table(Lines);

impl Table {
    pub(super) fn of(text: &[u8]) -> Self {
        Self(Lines::of(text))
    }

    /// The fields of the line with this name. Bytes that are no text belong to lines that orch does not read.
    pub(super) fn line(&self, name: &str) -> Option<Vec<String>> {
        self.rows().find(|fields| fields[0] == name)
    }

    /// The numbers in a column.
    pub(super) fn numbers(&self, column: usize) -> impl Iterator<Item = u32> {
        self.rows().filter_map(move |fields| fields.get(column)?.parse().ok())
    }

    /// The names of the lines that have this number in a column.
    pub(super) fn names_with(&self, column: usize, number: u32) -> impl Iterator<Item = String> {
        let has =
            move |fields: &Vec<String>| fields.get(column).and_then(|text| text.parse().ok()) == Some(number);
        self.rows().filter(has).map(|mut fields| fields.swap_remove(0))
    }

    pub(super) fn push(&mut self, fields: &[&str]) {
        self.0.push(fields.join(":").as_bytes());
    }

    pub(super) fn into_bytes(self) -> Vec<u8> {
        self.0.into_bytes()
    }

    fn rows(&self) -> impl Iterator<Item = Vec<String>> {
        let text = self.0.iter().filter_map(|line| std::str::from_utf8(line).ok());
        text.map(|line| line.split(':').map(String::from).collect())
    }
}
