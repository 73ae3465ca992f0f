//! Collects what is wrong with one file and turns byte offsets into lines and columns.
//!
//! Excerpts are made here, and so is the care they need: a line is cut to a window, control characters cannot
//! reach a terminal, and a concealed value is never shown.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::cell::OnceCell;

use super::Span;
use crate::problem::{Excerpt, Position, Problem, Problems, Severity};

/// How many problems of one file are told; beyond that only their number is.
const MAX_PROBLEMS: usize = 100;
/// How many characters of a line an excerpt shows.
const WINDOW: usize = 96;

/// Something noticed at a place, before it is turned into words with line and column.
#[derive(Debug)]
pub(crate) struct Finding {
    span: Span,
    message: String,
    hint: Option<String>,
    severity: Severity,
    excerpt: Show,
}

#[derive(Debug, PartialEq, Eq)]
enum Show {
    Line,
    Concealed,
    Nothing,
}

impl Finding {
    pub(crate) fn new(span: Span, message: impl Into<String>) -> Self {
        let message = message.into();
        Self { span, message, hint: None, severity: Severity::Error, excerpt: Show::Line }
    }

    /// Something about the file as a whole: no line is worth showing.
    pub(crate) fn about_file(message: impl Into<String>) -> Self {
        Self { excerpt: Show::Nothing, ..Self::new(Span::new(0, 0), message) }
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    pub(crate) fn hint_option(mut self, hint: Option<String>) -> Self {
        self.hint = hint.or(self.hint);
        self
    }

    pub(crate) fn warning(mut self) -> Self {
        self.severity = Severity::Warning;
        self
    }

    /// Keeps the value itself out of the excerpt: it may be a secret.
    pub(crate) fn concealed(mut self) -> Self {
        self.excerpt = Show::Concealed;
        self
    }
}

/// What is wrong with one file so far.
#[derive(Debug)]
pub(crate) struct Reporter<'a> {
    path: &'a str,
    text: &'a str,
    line_starts: OnceCell<Vec<usize>>,
    problems: Vec<Problem>,
    untold: usize,
}

impl<'a> Reporter<'a> {
    pub(crate) fn new(path: &'a str) -> Self {
        Self { path, text: "", line_starts: OnceCell::new(), problems: Vec::new(), untold: 0 }
    }

    /// The same file with nothing reported yet.
    pub(crate) fn emptied(&self) -> Self {
        let mut emptied = Self::new(self.path);
        emptied.set_text(self.text);
        emptied
    }

    /// Gives the text that spans refer to.
    pub(crate) fn set_text(&mut self, text: &'a str) {
        self.text = text;
        self.line_starts = OnceCell::new();
    }

    pub(crate) fn report(&mut self, finding: Finding) {
        if self.problems.len() >= MAX_PROBLEMS {
            self.untold += 1;
            return;
        }
        let position = self.position(finding.span.start as usize);
        let excerpt = match finding.excerpt {
            Show::Nothing => None,
            Show::Line => Some(self.excerpt(finding.span, position)),
            Show::Concealed => Some(self.concealed_excerpt(finding.span, position)),
        };
        self.problems.push(Problem {
            severity: finding.severity,
            file: Some(self.path.to_owned()),
            position,
            message: printable(&finding.message),
            hint: finding.hint.map(|hint| printable(&hint)),
            excerpt,
        });
    }

    /// Whether looking for the nearest name is still worth its time.
    pub(crate) fn may_suggest(&self) -> bool {
        self.problems.len() < MAX_PROBLEMS / 4
    }

    /// How many problems there are so far; more afterwards means that one was reported in between.
    pub(crate) fn count(&self) -> usize {
        self.problems.len() + self.untold
    }

    /// The line of a place, from 1.
    pub(crate) fn line_of(&self, span: Span) -> usize {
        self.position(span.start as usize).line
    }

    /// The source text of a value, for messages that repeat it; cut where it is long.
    pub(crate) fn quote(&self, span: Span) -> String {
        let text = self.text.get(span.start as usize..span.end as usize).unwrap_or_default();
        let line = text.lines().next().unwrap_or_default();
        if line.chars().count() > 40 {
            return format!("{}…", line.chars().take(40).collect::<String>());
        }
        line.to_owned()
    }

    pub(crate) fn finish(mut self) -> Problems {
        if self.untold > 0 {
            let message = format!("{} more problems of this file are not shown", self.untold);
            self.problems.push(Problem {
                severity: Severity::Error,
                file: Some(self.path.to_owned()),
                position: self.position(self.text.len()),
                message,
                hint: None,
                excerpt: None,
            });
        }
        Problems::new(self.problems)
    }

    fn line_starts(&self) -> &[usize] {
        self.line_starts.get_or_init(|| {
            let breaks = self.text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
            core::iter::once(0).chain(breaks.map(|(at, _)| at + 1)).collect()
        })
    }

    fn position(&self, offset: usize) -> Position {
        let offset = offset.min(self.text.len());
        let starts = self.line_starts();
        let line = starts.partition_point(|start| *start <= offset);
        let start = starts[line - 1];
        let column = self.text.get(start..offset).map_or(1, |before| before.chars().count() + 1);
        Position { line, column }
    }

    fn line_text(&self, line: usize) -> &'a str {
        let starts = self.line_starts();
        let start = starts[line - 1];
        let end = starts.get(line).map_or(self.text.len(), |next| next - 1);
        self.text.get(start..end).unwrap_or_default().trim_end_matches('\r')
    }

    fn excerpt(&self, span: Span, position: Position) -> Excerpt {
        let line = self.line_text(position.line);
        let length = line.chars().count();
        let before = (position.column - 1).min(length);
        let covered = self.text.get(span.start as usize..span.end as usize).unwrap_or_default();
        let covered = covered.lines().next().unwrap_or_default().trim_end().chars().count();
        let width = covered.min(length - before).max(1);
        if length <= WINDOW {
            return Excerpt { line: printable(line), indent: before, width };
        }
        let from = before.saturating_sub(WINDOW / 3);
        let window: String = line.chars().skip(from).take(WINDOW).collect();
        let lead = if from > 0 { "…" } else { "" };
        let indent = before - from + lead.chars().count();
        let line = format!("{lead}{}…", printable(&window));
        Excerpt { line, indent, width: width.min(WINDOW - (before - from)) }
    }

    /// Shows what stands before the value, and a fixed number of dots instead of it.
    fn concealed_excerpt(&self, span: Span, position: Position) -> Excerpt {
        let shown = self.excerpt(Span { end: span.start, ..span }, position);
        let before: String = shown.line.chars().take(shown.indent).collect();
        Excerpt { line: format!("{before}••••••"), indent: shown.indent, width: 6 }
    }
}

/// Replaces what could drive a terminal; tabs become one space so that underlines stay in place.
fn printable(text: &str) -> String {
    let safe = |c: char| match c {
        '\t' => ' ',
        c if c.is_control() || is_bidi_control(c) => '\u{fffd}',
        c => c,
    };
    text.chars().map(safe).collect()
}

/// Characters that reorder what stands around them, with which a line can be made to read as another.
fn is_bidi_control(c: char) -> bool {
    matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200e}' | '\u{200f}')
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use super::*;

    fn show(text: &str, finding: Finding) -> String {
        let mut reporter = Reporter::new("f");
        reporter.set_text(text);
        reporter.report(finding);
        reporter.finish().to_string()
    }

    #[test]
    fn columns_count_characters_and_not_bytes() {
        let shown = show("äöü: x\n", Finding::new(Span::new(8, 9), "here"));
        assert!(shown.starts_with("error: f:1:6: here"), "{shown}");
    }

    #[test]
    fn a_concealed_value_is_not_shown() {
        let text = "api_token: hunter2-is-my-password # really\n";
        let shown = show(text, Finding::new(Span::new(11, 33), "a literal").concealed());
        assert!(!shown.contains("hunter2"), "{shown}");
        assert!(shown.contains("api_token: ••••••"), "{shown}");
        let control = show(text, Finding::new(Span::new(11, 33), "a literal"));
        assert!(control.contains("hunter2"), "the control shows that the value would have been there");
    }

    #[test]
    fn an_excerpt_cannot_drive_a_terminal_and_a_long_line_is_cut() {
        let shown = show("a: \u{1b}[2J\n", Finding::new(Span::new(3, 7), "x"));
        assert!(!shown.contains('\u{1b}'));
        let long = format!("{}b{}", "a".repeat(5000), "c".repeat(5000));
        let shown = show(&long, Finding::new(Span::new(5000, 5001), "x"));
        assert!(shown.len() < 400, "{shown}");
        let (line, under) = {
            let mut lines = shown.lines().skip(2);
            (lines.next().unwrap_or_default().to_string(), lines.next().unwrap_or_default().to_string())
        };
        let place = |text: &str, wanted| text.chars().skip(5).position(|c| c == wanted);
        assert_eq!(place(&line, 'b'), place(&under, '^'));
    }
}
