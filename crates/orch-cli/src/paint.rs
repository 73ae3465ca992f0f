//! Colour for lines whose beginning says what they are. Streams that are no terminal, and `NO_COLOR`, get none: the
//! stream itself takes it out again.

use std::fmt::Write;

use anstyle::{AnsiColor, Color, Style};

/// Colours each line by how it begins.
pub(crate) fn paint(text: &str) -> String {
    let mut painted = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        let (content, end) = line.strip_suffix('\n').map_or((line, ""), |content| (content, "\n"));
        match style(content) {
            Some((length, style)) => {
                let (head, rest) = content.split_at(length);
                // Writing to a string cannot fail.
                let _ = write!(painted, "{style}{head}{style:#}{rest}{end}");
            }
            None => painted.push_str(line),
        }
    }
    painted
}

/// How much of a line is coloured, and how.
fn style(line: &str) -> Option<(usize, Style)> {
    let coloured = |colour: AnsiColor| Style::new().fg_color(Some(Color::Ansi(colour)));
    let words = [
        ("error:", coloured(AnsiColor::Red).bold()),
        ("warning:", coloured(AnsiColor::Yellow).bold()),
        ("hint:", coloured(AnsiColor::Cyan)),
        ("note:", coloured(AnsiColor::Cyan)),
        ("caveat:", coloured(AnsiColor::Yellow)),
        ("obstacle:", coloured(AnsiColor::Red).bold()),
        ("failed:", coloured(AnsiColor::Red).bold()),
        ("    try:", coloured(AnsiColor::Cyan)),
        ("      hint:", coloured(AnsiColor::Cyan)),
        ("  + ", coloured(AnsiColor::Green)),
        ("  ~ ", coloured(AnsiColor::Yellow)),
        ("  ± ", coloured(AnsiColor::Yellow)),
        ("  - ", coloured(AnsiColor::Red)),
        ("  ! ", coloured(AnsiColor::Red).bold()),
        ("  ? ", coloured(AnsiColor::Magenta)),
    ];
    let (start, style) = words.into_iter().find(|(start, _)| line.starts_with(start))?;
    let is_symbol = start.ends_with(' ');
    // A symbol colours its word too: `  + create`.
    let word = if is_symbol { line[start.len()..].find("  ").unwrap_or(0) } else { 0 };
    Some((start.len() + word, style))
}
