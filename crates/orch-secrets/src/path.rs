//! The way to a value inside a file, and the way to the file: what stands after `secret:`.

use std::fmt;
use std::str::FromStr;

use orch_model::SecretRef;
use thiserror::Error;

/// A text is no path to a value. The text is not repeated: somebody may have written the value itself there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum PathError {
    /// A part between dots has no letter in it.
    #[error("a part of the path is empty")]
    EmptyPart,
    /// A bracket or quote was not closed, or something stands behind it.
    #[error("a bracket or quote of the path is not closed")]
    Unclosed,
    /// What stands in brackets is neither a number nor a quoted key.
    #[error("brackets of the path hold neither a number nor a quoted key")]
    BadIndex,
    /// The mention of a file has no name of a file.
    #[error("the file of the secret has no name")]
    NoFile,
}

impl PathError {
    /// What to try next.
    pub fn hint(self) -> &'static str {
        "a path is written as `db.users[0].password`, and a key with a dot in it as `[\"a.b\"]`"
    }
}

/// One step into a tree of values.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Step {
    /// Into a map.
    Key(String),
    /// Into a list. Comments that stand in it are not counted.
    Index(usize),
}

/// The way to a value inside a file: `db.users[0].password`.
///
/// Its text can be read again, whatever the keys hold, and drives no terminal.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyPath(Vec<Step>);

impl KeyPath {
    /// The way that these steps make.
    pub fn new(steps: Vec<Step>) -> Self {
        Self(steps)
    }

    /// The steps, from the root.
    pub fn steps(&self) -> &[Step] {
        &self.0
    }

    /// Whether this is the root itself.
    pub fn is_root(&self) -> bool {
        self.0.is_empty()
    }

    /// One step further.
    pub(crate) fn with(&self, step: Step) -> Self {
        let mut steps = self.0.clone();
        steps.push(step);
        Self(steps)
    }

    /// The keys alone, which is what sops binds a value to.
    pub(crate) fn keys(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter_map(|step| match step {
            Step::Key(key) => Some(key.as_str()),
            Step::Index(_) => None,
        })
    }
}

impl fmt::Display for KeyPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, step) in self.0.iter().enumerate() {
            match step {
                Step::Index(index) => write!(f, "[{index}]")?,
                Step::Key(key) if is_plain(key) => write!(f, "{}{key}", if at == 0 { "" } else { "." })?,
                Step::Key(key) => write!(f, "[\"{}\"]", escaped(key))?,
            }
        }
        Ok(())
    }
}

fn is_plain(key: &str) -> bool {
    let fit = |c: char| !c.is_control() && !c.is_whitespace() && !".[]\"'#\\".contains(c) && !is_unseen(c);
    !key.is_empty() && key.chars().all(fit)
}

/// Characters that turn the direction of writing, or cannot be seen at all.
fn is_unseen(c: char) -> bool {
    matches!(c, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

fn escaped(key: &str) -> String {
    let mut text = String::with_capacity(key.len());
    for c in key.chars() {
        match c {
            '"' | '\\' => text.extend(['\\', c]),
            c if c.is_control() || is_unseen(c) => text.push_str(&format!("\\u{{{:x}}}", u32::from(c))),
            c => text.push(c),
        }
    }
    text
}

impl FromStr for KeyPath {
    type Err = PathError;

    fn from_str(text: &str) -> Result<Self, PathError> {
        let mut steps = Vec::new();
        let mut rest = text;
        while !rest.is_empty() {
            let (step, behind) = match rest.strip_prefix('[') {
                Some(inner) => bracketed(inner)?,
                None => plain(rest)?,
            };
            steps.push(step);
            rest = match behind.strip_prefix('.') {
                Some("") => return Err(PathError::EmptyPart),
                // A dot before a bracket is one too many.
                Some(next) if next.starts_with('[') => return Err(PathError::EmptyPart),
                Some(next) => next,
                None if behind.is_empty() || behind.starts_with('[') => behind,
                None => return Err(PathError::Unclosed),
            };
        }
        Ok(Self(steps))
    }
}

fn plain(text: &str) -> Result<(Step, &str), PathError> {
    let end = text.find(['.', '[']).unwrap_or(text.len());
    let (key, rest) = text.split_at(end);
    match key {
        "" => Err(PathError::EmptyPart),
        key if key.contains(['"', '\'', ']']) => Err(PathError::Unclosed),
        key => Ok((Step::Key(key.to_owned()), rest)),
    }
}

fn bracketed(text: &str) -> Result<(Step, &str), PathError> {
    let (step, rest) = if let Some(inner) = text.strip_prefix('\'') {
        let (key, rest) = inner.split_once('\'').ok_or(PathError::Unclosed)?;
        (Step::Key(key.to_owned()), rest)
    } else if let Some(inner) = text.strip_prefix('"') {
        let (key, rest) = unescaped(inner)?;
        (Step::Key(key), rest)
    } else {
        let end = text.find(']').ok_or(PathError::Unclosed)?;
        let (digits, rest) = text.split_at(end);
        let fit = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        let index = if fit { digits.parse().ok() } else { None };
        (Step::Index(index.ok_or(PathError::BadIndex)?), rest)
    };
    Ok((step, rest.strip_prefix(']').ok_or(PathError::Unclosed)?))
}

/// Reads up to the closing quote.
fn unescaped(text: &str) -> Result<(String, &str), PathError> {
    let mut key = String::new();
    let mut rest = text;
    loop {
        let at = rest.find(['"', '\\']).ok_or(PathError::Unclosed)?;
        key.push_str(&rest[..at]);
        let behind = &rest[at + 1..];
        if rest[at..].starts_with('"') {
            return Ok((key, behind));
        }
        rest = if let Some(inner) = behind.strip_prefix("u{") {
            let (digits, behind) = inner.split_once('}').ok_or(PathError::Unclosed)?;
            let code = u32::from_str_radix(digits, 16).ok().and_then(char::from_u32);
            key.push(code.ok_or(PathError::BadIndex)?);
            behind
        } else {
            let c = behind.chars().next().filter(|c| matches!(c, '"' | '\\'));
            key.push(c.ok_or(PathError::BadIndex)?);
            &behind[1..]
        };
    }
}

/// What a mention of a secret means.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reference {
    /// A value of a file; the root where the whole file is one value.
    File {
        /// The file, relative to the site.
        file: String,
        /// Where in it.
        path: KeyPath,
    },
    /// A name that is looked for in every file.
    Short(String),
}

impl Reference {
    /// Reads what stands after `secret:`. Without `#`, what has a `/` in it is a file, and what has none is a name.
    pub fn of(mention: &SecretRef) -> Result<Self, PathError> {
        Self::read(mention.as_str())
    }

    fn read(text: &str) -> Result<Self, PathError> {
        match text.split_once('#') {
            Some(("", _)) => Err(PathError::NoFile),
            Some((file, path)) => Ok(Self::File { file: file.to_owned(), path: path.parse()? }),
            None if text.contains('/') => Ok(Self::File { file: text.to_owned(), path: KeyPath::default() }),
            None => Ok(Self::Short(text.to_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot set its scene has failed")]

    use super::*;

    fn keys(text: &str) -> Vec<String> {
        let path: KeyPath = text.parse().unwrap();
        let show = |step: &Step| match step {
            Step::Key(key) => key.clone(),
            Step::Index(index) => format!("#{index}"),
        };
        path.steps().iter().map(show).collect()
    }

    #[test]
    fn a_path_has_keys_and_indices() {
        assert_eq!(keys("father.token"), ["father", "token"]);
        assert_eq!(keys("a[0].b"), ["a", "#0", "b"]);
        assert_eq!(keys("[\"a.b\"]['x'].y[10][2]"), ["a.b", "x", "y", "#10", "#2"]);
        assert_eq!(keys("[\"a\\\"\\u{1b}\"]"), ["a\"\u{1b}"]);
        assert!(keys("").is_empty());
    }

    #[test]
    fn what_is_no_path_is_refused() {
        for text in
            [".", "a.", ".a", "a..b", "a[", "a[x]", "a[-1]", "a]b", "a[\"x]", "a['x'", "a[0]b", "a.[0]"]
        {
            assert!(text.parse::<KeyPath>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_mention_is_a_file_or_a_name() {
        let file =
            |file: &str, path: &str| Reference::File { file: file.into(), path: path.parse().unwrap() };
        for (text, reference) in [
            ("secret:secrets/api.yaml#father.token", file("secrets/api.yaml", "father.token")),
            ("secret:secrets/tls.key#", file("secrets/tls.key", "")),
            ("secret:secrets/tls.key", file("secrets/tls.key", "")),
            ("secret:api-token", Reference::Short("api-token".into())),
        ] {
            assert_eq!(Reference::of(&text.parse().unwrap()).unwrap(), reference);
        }
        assert_eq!(Reference::of(&"secret:#x".parse().unwrap()), Err(PathError::NoFile));
    }
}
