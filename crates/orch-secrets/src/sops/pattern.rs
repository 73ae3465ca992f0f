//! Regular expressions of Go, for a library that reads them a little differently.
//!
//! In Go `\d`, `\w`, `\s` and `\b` know ASCII only, a class in brackets has no operators, a brace that counts nothing is
//! a brace, and `\Q…\E` quotes.

use regex::bytes::{Regex, RegexBuilder};

/// How much memory one may take.
const MAX_SIZE: usize = 1 << 20;
/// How long one may be.
const MAX_LENGTH: usize = 4096;

/// Compiles an expression as Go means it. Nothing for what is none. A few that Go refuses, such as `a**`, are taken.
pub(crate) fn compile(text: &str) -> Option<Regex> {
    if text.len() > MAX_LENGTH {
        return None;
    }
    RegexBuilder::new(&translate(text)?)
        .size_limit(MAX_SIZE)
        .dfa_size_limit(MAX_SIZE)
        .nest_limit(100)
        .build()
        .ok()
}

fn translate(text: &str) -> Option<String> {
    let mut out = String::with_capacity(text.len() + 16);
    let mut rest = text;
    let mut in_class = false;
    while let Some(c) = rest.chars().next() {
        let behind = &rest[c.len_utf8()..];
        rest = match c {
            '\\' => escape(behind, in_class, &mut out)?,
            '[' if !in_class => {
                in_class = true;
                out.push('[');
                let negated = behind.strip_prefix('^');
                out.push_str(if negated.is_some() { "^" } else { "" });
                let behind = negated.unwrap_or(behind);
                // A bracket that comes first closes nothing.
                match behind.strip_prefix(']') {
                    Some(behind) => {
                        out.push_str("\\]");
                        behind
                    }
                    None => behind,
                }
            }
            '[' => {
                let named = behind.strip_prefix(':').and_then(|name| name.split_once(":]"));
                out.push_str(&named.map_or(String::from("\\["), |(name, _)| format!("[:{name}:]")));
                named.map_or(behind, |(_, behind)| behind)
            }
            ']' if in_class => {
                in_class = false;
                out.push(']');
                behind
            }
            '&' | '~' if in_class => {
                out.extend(['\\', c]);
                behind
            }
            '-' if in_class && behind.starts_with('-') => {
                out.push_str("\\-");
                behind
            }
            '{' if !in_class && !counts(behind) => {
                out.push_str("\\{");
                behind
            }
            c => {
                out.push(c);
                behind
            }
        };
    }
    Some(out)
}

/// Whether a brace is the beginning of `{2}`, `{2,}` or `{2,3}`.
fn counts(text: &str) -> bool {
    let Some((inner, _)) = text.split_once('}') else { return false };
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    match inner.split_once(',') {
        Some((low, high)) => is_number(low) && (high.is_empty() || is_number(high)),
        None => is_number(inner),
    }
}

fn escape<'a>(behind: &'a str, in_class: bool, out: &mut String) -> Option<&'a str> {
    let c = behind.chars().next()?;
    let rest = &behind[c.len_utf8()..];
    let classes = [('d', "0-9"), ('w', "0-9A-Za-z_"), ('s', r"\t\n\x0C\r ")];
    if let Some((letter, class)) = classes.iter().find(|(letter, _)| *letter == c.to_ascii_lowercase()) {
        let negation = if *letter == c { "" } else { "^" };
        // Also inside of another class: there it is one within.
        out.push_str(&format!("[{negation}{class}]"));
        return Some(rest);
    }
    match c {
        'b' | 'B' if !in_class => out.push_str(&format!("(?-u:\\{c})")),
        'Q' if !in_class => {
            let (quoted, behind) = rest.split_once("\\E").unwrap_or((rest, ""));
            out.push_str(&regex::escape(quoted));
            return Some(behind);
        }
        c => out.extend(['\\', c]),
    }
    Some(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_mean_what_they_mean_in_go() {
        for (pattern, yes, no) in [
            ("^(data|stringData)$", "data", "metadata"),
            (r"\d", "5", "\u{665}"),
            (r"^\w+$", "a_1", "\u{e9}"),
            ("[[a]", "[", "b"),
            ("[a&&b]", "&", "c"),
            ("[]a]", "]", "b"),
            ("a{x}", "a{x}", "ax"),
            ("a{2}", "aa", "a"),
            (r"^\Qa.b\E$", "a.b", "axb"),
            (r"[\d-]", "-", "x"),
            ("[[:alpha:]]", "a", "1"),
            ("^.$", "\u{e9}", "ab"),
            (r"\bx\b", "a x", "ax"),
        ] {
            let regex = compile(pattern).expect("Go takes it");
            assert!(regex.is_match(yes.as_bytes()) && !regex.is_match(no.as_bytes()), "{pattern}");
        }
        for pattern in ["(", "[a", r"\", "(?=x)"] {
            assert!(compile(pattern).is_none(), "{pattern}");
        }
    }
}
