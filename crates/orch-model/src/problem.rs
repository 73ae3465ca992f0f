//! What is wrong with a site: where, why, and what to try.
//!
//! A problem carries everything needed to print it, so that nobody has to keep the sources for it. It does not
//! decide whether a run goes on; the presence of one error among [`Problems`] does.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use serde::Serialize;

/// Whether a problem stops the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The site cannot be used.
    Error,
    /// The site can be used; something in it should be brought up to date.
    Warning,
}

/// A place in a file, counted from 1; columns count characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Position {
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
}

/// The line that a problem is about, with the part to underline.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Excerpt {
    /// The line, or a window of it where it is long; safe to print.
    pub line: String,
    /// How many characters of `line` stand before the part in question.
    pub indent: usize,
    /// How many characters to underline, at least one.
    pub width: usize,
}

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Whether it stops the run.
    pub severity: Severity,
    /// The file, or nothing where the problem lies in the request and not in a file.
    pub file: Option<String>,
    /// Where in the file.
    pub position: Position,
    /// One lower-case clause that names the subject.
    pub message: String,
    /// What to try next.
    pub hint: Option<String>,
    /// The line in question.
    pub excerpt: Option<Excerpt>,
}

impl Problem {
    /// A problem with what was asked for, rather than with a file.
    pub fn with_request(message: impl Into<String>) -> Self {
        Self {
            severity: Severity::Error,
            file: None,
            position: Position { line: 0, column: 0 },
            message: message.into(),
            hint: None,
            excerpt: None,
        }
    }

    /// Adds what to try next.
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

impl Serialize for Problem {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Flat<'a> {
            severity: Severity,
            #[serde(skip_serializing_if = "Option::is_none")]
            file: Option<&'a str>,
            #[serde(skip_serializing_if = "Option::is_none")]
            line: Option<usize>,
            #[serde(skip_serializing_if = "Option::is_none")]
            column: Option<usize>,
            message: &'a str,
            #[serde(skip_serializing_if = "Option::is_none")]
            hint: Option<&'a str>,
        }
        Flat {
            severity: self.severity,
            file: self.file.as_deref(),
            line: self.file.as_ref().map(|_| self.position.line),
            column: self.file.as_ref().map(|_| self.position.column),
            message: &self.message,
            hint: self.hint.as_deref(),
        }
        .serialize(serializer)
    }
}

/// `file:line:column: message`, then the underlined excerpt and the hint, each on lines of its own.
impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.severity {
            Severity::Error => f.write_str("error: ")?,
            Severity::Warning => f.write_str("warning: ")?,
        }
        if let Some(file) = &self.file {
            write!(f, "{file}:{}:{}: ", self.position.line, self.position.column)?;
        }
        f.write_str(&self.message)?;
        if let Some(excerpt) = &self.excerpt {
            let number = format!("{}", self.position.line);
            let gutter = " ".repeat(number.len());
            let underline = "^".repeat(excerpt.width);
            write!(f, "\n{gutter} |\n{number} | {}", excerpt.line)?;
            write!(f, "\n{gutter} | {}{underline}", " ".repeat(excerpt.indent))?;
        }
        if let Some(hint) = &self.hint {
            write!(f, "\nhint: {hint}")?;
        }
        Ok(())
    }
}

/// Everything that is wrong, sorted by place.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Problems(Vec<Problem>);

impl Problems {
    /// Sorts the problems by file and place; those of the request come first.
    pub fn new(mut problems: Vec<Problem>) -> Self {
        problems.sort_by(|a, b| (&a.file, a.position).cmp(&(&b.file, b.position)));
        problems.dedup();
        Self(problems)
    }

    /// Whether nothing is wrong.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Each of them, in order.
    pub fn iter(&self) -> impl Iterator<Item = &Problem> {
        self.0.iter()
    }

    /// Whether one of them stops the run.
    pub fn has_errors(&self) -> bool {
        self.0.iter().any(|problem| problem.severity == Severity::Error)
    }

    /// Puts two lists together, in order.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        let mut all = self.0;
        all.extend(other.0);
        Self::new(all)
    }
}

impl From<Problem> for Problems {
    fn from(problem: Problem) -> Self {
        Self(Vec::from([problem]))
    }
}

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.0.iter().enumerate() {
            if index > 0 {
                f.write_str("\n\n")?;
            }
            write!(f, "{problem}")?;
        }
        Ok(())
    }
}

impl core::error::Error for Problems {}
