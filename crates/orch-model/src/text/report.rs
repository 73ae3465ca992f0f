//! Collects what is wrong with one file and turns byte offsets into lines and columns.
//!
//! Excerpts are made here, and so is the care they need: a line is cut to a window, control characters cannot
//! reach a terminal, and a concealed value is never shown, whichever problem of its line is told.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::cell::OnceCell;
use core::ops::Range;

use super::Span;
use crate::printable::printable;
use crate::problem::{Excerpt, Position, Problem, Problems, Severity};

/// How many problems of one file are told; beyond that only their number is.
const MAX_PROBLEMS: usize = 100;
/// How many characters of a line an excerpt shows.
const WINDOW: usize = 96;
/// How many characters a message or a hint may have; only hostile input has more to say.
const MAX_MESSAGE: usize = 2000;
/// What stands for a concealed value, whatever its length.
const DOTS: &str = "••••••";

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

    /// Keeps the value, and what stands behind it, out of the excerpt: it may be a secret.
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
    findings: Vec<Finding>,
    untold: usize,
    /// Values that no excerpt may show.
    concealed: Vec<Span>,
}

impl<'a> Reporter<'a> {
    pub(crate) fn new(path: &'a str) -> Self {
        let (findings, concealed) = (Vec::new(), Vec::new());
        Self { path, text: "", line_starts: OnceCell::new(), findings, untold: 0, concealed }
    }

    /// The same file with nothing reported yet.
    pub(crate) fn emptied(&self) -> Self {
        let mut emptied = Self::new(self.path);
        emptied.set_text(self.text);
        emptied.concealed.clone_from(&self.concealed);
        emptied
    }

    /// Gives the text that spans refer to.
    pub(crate) fn set_text(&mut self, text: &'a str) {
        self.text = text;
        self.line_starts = OnceCell::new();
    }

    /// Keeps a value out of every excerpt, also of problems that were reported before.
    pub(crate) fn conceal(&mut self, span: Span) {
        self.concealed.push(span);
    }

    pub(crate) fn report(&mut self, finding: Finding) {
        if finding.excerpt == Show::Concealed {
            self.conceal(finding.span);
        }
        if self.findings.len() >= MAX_PROBLEMS {
            self.untold += 1;
            return;
        }
        self.findings.push(finding);
    }

    /// Whether looking for the nearest name is still worth its time.
    pub(crate) fn may_suggest(&self) -> bool {
        self.findings.len() < MAX_PROBLEMS / 4
    }

    /// How many problems there are so far; more afterwards means that one was reported in between.
    pub(crate) fn count(&self) -> usize {
        self.findings.len() + self.untold
    }

    /// The line of a place, from 1.
    pub(crate) fn line_of(&self, span: Span) -> usize {
        self.line_at(span.start as usize)
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
        let findings = core::mem::take(&mut self.findings);
        self.concealed.sort();
        self.concealed.dedup();
        let mut problems: Vec<Problem> = findings.into_iter().map(|finding| self.problem(finding)).collect();
        if self.untold > 0 {
            problems.push(Problem {
                severity: Severity::Error,
                file: Some(printable(self.path).into_owned()),
                position: self.position(self.text.len()),
                message: format!("{} more problems of this file are not shown", self.untold),
                hint: None,
                excerpt: None,
            });
        }
        Problems::new(problems)
    }

    fn problem(&self, finding: Finding) -> Problem {
        let position = self.position(finding.span.start as usize);
        let excerpt = match finding.excerpt {
            Show::Nothing => None,
            Show::Line | Show::Concealed => Some(self.excerpt(&finding, position)),
        };
        Problem {
            severity: finding.severity,
            file: Some(printable(self.path).into_owned()),
            position,
            message: bounded(&finding.message),
            hint: finding.hint.map(|hint| bounded(&hint)),
            excerpt,
        }
    }

    fn line_starts(&self) -> &[usize] {
        self.line_starts.get_or_init(|| {
            let breaks = self.text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
            core::iter::once(0).chain(breaks.map(|(at, _)| at + 1)).collect()
        })
    }

    fn line_at(&self, offset: usize) -> usize {
        self.line_starts().partition_point(|start| *start <= offset.min(self.text.len()))
    }

    fn position(&self, offset: usize) -> Position {
        let offset = offset.min(self.text.len());
        let line = self.line_at(offset);
        let start = self.line_starts()[line - 1];
        let column = self.text.get(start..offset).map_or(1, |before| before.chars().count() + 1);
        Position { line, column }
    }

    /// Where a line starts and ends, without its line break.
    fn line_range(&self, line: usize) -> Range<usize> {
        let starts = self.line_starts();
        let start = starts[line - 1];
        let end = starts.get(line).map_or(self.text.len(), |next| next - 1);
        let text = self.text.get(start..end).unwrap_or_default();
        start..start + text.trim_end_matches('\r').len()
    }

    fn excerpt(&self, finding: &Finding, position: Position) -> Excerpt {
        let mut line = self.line_range(position.line);
        let from = (finding.span.start as usize).clamp(line.start, line.end);
        // A line may be the whole of a large file, and only what is near the problem can be shown.
        line.start = line.start.max(self.text.floor_char_boundary(from.saturating_sub(5 * WINDOW)));
        line.end = line.end.min(self.text.ceil_char_boundary(from + 5 * WINDOW));
        let to = (finding.span.end as usize).clamp(from, line.end);
        let covered = self.masked(from..to);
        let after =
            if finding.excerpt == Show::Concealed { String::new() } else { self.masked(to..line.end) };
        let before = self.masked(line.start..from);
        let width = covered.trim_end().chars().count().max(1);
        window(&before, &format!("{covered}{after}"), width)
    }

    /// A part of a line, with the same few dots for each concealed value in it.
    fn masked(&self, part: Range<usize>) -> String {
        let mut masked = String::new();
        let mut at = part.start;
        let first = self.concealed.partition_point(|span| (span.end as usize) <= part.start);
        for span in self.concealed[first..].iter().take_while(|span| (span.start as usize) < part.end) {
            let (start, end) = (span.start as usize, span.end as usize);
            masked += self.text.get(at..start.max(at)).unwrap_or_default();
            masked += DOTS;
            at = end.clamp(at, part.end);
        }
        masked + self.text.get(at..part.end).unwrap_or_default()
    }
}

/// Puts a line together, or the part of it around the problem where it is long.
fn window(before: &str, rest: &str, width: usize) -> Excerpt {
    let indent = before.chars().count();
    let rest_length = rest.chars().count();
    if indent + rest_length <= WINDOW {
        return Excerpt { line: printable(&format!("{before}{rest}")).into_owned(), indent, width };
    }
    let kept = indent.min(WINDOW / 3);
    let lead = if kept < indent { "…" } else { "" };
    let start = before.char_indices().rev().take(kept).last().map_or(before.len(), |(at, _)| at);
    let shown: String = rest.chars().take(WINDOW - kept).collect();
    let tail = if rest_length > WINDOW - kept { "…" } else { "" };
    let line = format!("{lead}{}{}{tail}", printable(&before[start..]), printable(&shown));
    Excerpt { line, indent: kept + lead.chars().count(), width: width.min(WINDOW - kept) }
}

/// A message as it is told: printable, and not longer than anybody reads.
fn bounded(text: &str) -> String {
    match text.char_indices().nth(MAX_MESSAGE) {
        Some((end, _)) => format!("{}…", printable(&text[..end])),
        None => printable(text).into_owned(),
    }
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
