//! What every format is read into: documents, comments, and what is wrong with a text.

use std::ops::Range;

use super::error::SopsError;
use super::node::Value;

/// A file, read.
pub(super) struct Documents {
    /// One map for each document.
    pub(super) roots: Vec<Value>,
    pub(super) comments: Vec<Comment>,
    /// Whether a value stands in it more than once by way of an alias.
    pub(super) has_aliases: bool,
}

impl Documents {
    pub(super) fn one(root: Value) -> Self {
        Self { roots: vec![root], comments: Vec::new(), has_aliases: false }
    }
}

/// A comment of the text.
#[derive(Debug, Clone)]
pub(super) struct Comment {
    /// Where the sign is that begins it.
    pub(super) sign: usize,
    /// Where its text is, without the sign that begins it.
    pub(super) span: Range<usize>,
    /// Whether it is encrypted.
    pub(super) is_encrypted: bool,
}

impl Comment {
    /// A comment that begins with its sign.
    pub(super) fn of(text: &str, range: Range<usize>) -> Self {
        let comment = &text[range.clone()];
        let body = comment.trim_start_matches(['#', ';', ' ']);
        let start = range.start + comment.len() - body.len();
        let body = body.trim_end();
        Self {
            sign: range.start,
            span: start..start + body.len(),
            is_encrypted: body.starts_with("ENC[AES256_GCM,"),
        }
    }
}

/// What is wrong with a text. It never repeats any of it.
#[derive(Debug, Clone, Copy)]
pub(super) enum Fault {
    At(usize, &'static str),
    TooLarge(&'static str),
}

impl Fault {
    pub(super) fn at(at: usize, what: &'static str) -> Self {
        Self::At(at, what)
    }

    pub(super) fn too_large(what: &'static str) -> Self {
        Self::TooLarge(what)
    }

    /// As an error of the file whose text it is.
    pub(super) fn of(self, file: &str, text: &[u8]) -> SopsError {
        let file = file.to_owned();
        match self {
            Self::TooLarge(what) => SopsError::TooLarge { file, what },
            Self::At(at, what) => {
                let before = &text[..at.min(text.len())];
                let line = before.split(|byte| *byte == b'\n').count();
                let start = before.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
                let column = String::from_utf8_lossy(&before[start..]).chars().count() + 1;
                SopsError::Malformed { file, line, column, what }
            }
        }
    }
}
