//! Text that must fit a line, and how wide it gets.

use alloc::borrow::ToOwned;
use alloc::string::String;
use alloc::vec::Vec;

/// Cuts a text to one line of at most `max` characters. Its end is kept too: names often differ there.
pub(super) fn cut(text: &str, max: usize) -> String {
    let line = one_line(text);
    let count = line.chars().count();
    if count <= max {
        return line;
    }
    let tail = max / 3;
    let head = line.chars().take(max - tail - 1);
    let end = line.chars().skip(count - tail);
    head.chain(['…']).chain(end).collect()
}

/// Breaks a text into at most `max_lines` lines, each no wider than `max` by the measure of `width`.
pub(super) fn wrap(text: &str, max: i64, max_lines: usize, width: impl Fn(&str) -> i64) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        let word = cut(word, 60);
        let longer = lines.last().map(|line| [line, " ", &word].concat());
        match longer.filter(|longer| width(longer) <= max) {
            Some(longer) => {
                lines.pop();
                lines.push(longer);
            }
            None if lines.len() == max_lines => {
                if let Some(last) = lines.last_mut() {
                    last.push_str(" …");
                }
                break;
            }
            None => lines.push(word),
        }
    }
    lines
}

/// The width of a text of one pixel's size, in thousandths of a pixel.
///
/// The reader's font is unknown, so these are the widths of Verdana and its kin, the widest that are common:
/// in any other font the text ends a little before its box does.
pub(super) fn width(text: &str) -> i64 {
    text.chars().map(char_width).sum()
}

fn char_width(c: char) -> i64 {
    match c {
        'i' | 'j' | 'l' | '.' | ',' | ':' | ';' | '\'' | '|' | '!' | ' ' | 'I' => 350,
        'f' | 't' | 'r' | '(' | ')' | '[' | ']' | '-' | '/' | '\\' | '·' => 420,
        'm' | 'w' | 'M' | 'W' | '@' | '%' | '…' => 1000,
        'A'..='Z' | '×' | '~' | '+' | '=' | '<' | '>' | '#' | '&' => 840,
        ' '..='~' => 640,
        '\u{1100}'.. => 1060,
        _ => 800,
    }
}

fn one_line(text: &str) -> String {
    if !text.contains(|c: char| c.is_whitespace() && c != ' ') {
        return text.to_owned();
    }
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A character that no drawing language may hold; it is shown as one that could not be read.
pub(super) fn printable(c: char) -> char {
    // XML knows no way to write control characters and the two non-characters, not even escaped.
    if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') { '\u{fffd}' } else { c }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_that_is_too_long_keeps_its_beginning_and_its_end() {
        assert_eq!(cut("short", 9), "short");
        assert_eq!(cut("a-very-long-name-17", 9), "a-ver…-17");
        assert_eq!(cut("two\nlines", 20), "two lines");
    }

    #[test]
    fn wrapped_lines_are_no_wider_than_asked_and_say_when_something_is_missing() {
        let chars = |text: &str| i64::try_from(text.chars().count()).unwrap();
        assert_eq!(wrap("one two three four", 9, 9, chars), ["one two", "three", "four"]);
        assert_eq!(wrap("one two three four", 9, 2, chars), ["one two", "three …"]);
        assert!(wrap(" \n ", 9, 2, chars).is_empty());
    }
}
