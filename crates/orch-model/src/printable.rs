//! Text that comes from elsewhere, made safe to show: nothing in it can drive a terminal or be read as another text.

use alloc::borrow::Cow;

/// Replaces every character that could drive a terminal, break a line, or reorder what stands around it.
pub fn printable(text: &str) -> Cow<'_, str> {
    // Almost every text is fine as it is.
    if text.chars().all(|c| printable_char(c) == c) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(text.chars().map(printable_char).collect())
}

/// The same for one character; a tab becomes one space so that underlines stay in place.
pub(crate) fn printable_char(c: char) -> char {
    match c {
        '\t' => ' ',
        '\u{2028}' | '\u{2029}' => '\u{fffd}',
        c if c.is_control() || is_bidi_control(c) => '\u{fffd}',
        c => c,
    }
}

/// Characters that reorder what stands around them, with which a line can be made to read as another.
fn is_bidi_control(c: char) -> bool {
    matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200e}' | '\u{200f}' | '\u{61c}')
}

#[cfg(test)]
mod tests {
    use super::printable;

    #[test]
    fn what_is_shown_cannot_drive_a_terminal() {
        assert_eq!(
            printable("a\u{1b}[31mb\nc\td\u{202e}e\u{2028}f"),
            "a\u{fffd}[31mb\u{fffd}c d\u{fffd}e\u{fffd}f"
        );
        assert_eq!(printable("plain – ä 日本"), "plain – ä 日本");
    }
}
