//! Text inside XML.

use core::fmt::{self, Display, Formatter, Write};

use crate::graph::text::printable;

/// Text that is safe between tags and inside quotes.
pub(super) struct Escaped<'t>(pub(super) &'t str);

impl Display for Escaped<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for c in self.0.chars() {
            match c {
                '<' => f.write_str("&lt;")?,
                '>' => f.write_str("&gt;")?,
                '&' => f.write_str("&amp;")?,
                '"' => f.write_str("&quot;")?,
                '\'' => f.write_str("&#39;")?,
                '\n' | '\r' | '\t' => f.write_char(' ')?,
                c => f.write_char(printable(c))?,
            }
        }
        Ok(())
    }
}
