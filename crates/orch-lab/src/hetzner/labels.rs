//! Labels: which are allowed, and the selectors that choose by them.

use std::collections::BTreeMap;

/// Why a label is not allowed.
pub(super) fn check(key: &str, value: &str) -> Result<(), String> {
    check_key(key)?;
    if value.is_empty() || is_word(value) {
        Ok(())
    } else {
        Err(format!("label value '{value}' is not correctly formatted"))
    }
}

fn check_key(key: &str) -> Result<(), String> {
    let (prefix, name) = key.split_once('/').map_or((None, key), |(prefix, name)| (Some(prefix), name));
    let prefix_is_fine = prefix.is_none_or(|prefix| prefix.len() <= 253 && prefix.split('.').all(is_word));
    if !prefix_is_fine || !is_word(name) {
        return Err(format!("label key '{key}' is not correctly formatted"));
    }
    if prefix == Some("hetzner.cloud") {
        return Err(format!("label key '{key}' has a reserved prefix"));
    }
    Ok(())
}

/// At most 63 characters, a letter or digit at both ends, and `-`, `_` or `.` between them.
fn is_word(text: &str) -> bool {
    let bytes = text.as_bytes();
    let ends = bytes.first().zip(bytes.last());
    ends.is_some_and(|(first, last)| first.is_ascii_alphanumeric() && last.is_ascii_alphanumeric())
        && bytes.len() <= 63
        && bytes.iter().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(byte))
}

/// What a label selector asks for; all of it has to hold.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Selector(Vec<Term>);

#[derive(Debug, PartialEq, Eq)]
enum Term {
    Has(String),
    Lacks(String),
    In(String, Vec<String>),
    NotIn(String, Vec<String>),
}

impl Selector {
    /// Reads a selector; an error says which part is wrong.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let terms = parts(text).into_iter().map(str::trim);
        terms
            .map(|part| term(part).ok_or_else(|| format!("'{part}' is no label selector")))
            .collect::<Result<_, _>>()
            .map(Self)
    }

    /// Whether labels are chosen. What is not there is unequal to everything.
    pub(super) fn chooses(&self, labels: &BTreeMap<String, String>) -> bool {
        self.0.iter().all(|term| match term {
            Term::Has(key) => labels.contains_key(key),
            Term::Lacks(key) => !labels.contains_key(key),
            Term::In(key, values) => labels.get(key).is_some_and(|value| values.contains(value)),
            Term::NotIn(key, values) => labels.get(key).is_none_or(|value| !values.contains(value)),
        })
    }
}

/// The parts between the commas; a comma between parentheses parts nothing.
fn parts(text: &str) -> Vec<&str> {
    let mut depth = 0_usize;
    let split = text.split(move |letter| {
        match letter {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        letter == ',' && depth == 0
    });
    split.collect()
}

fn term(part: &str) -> Option<Term> {
    if let Some((key, value)) = part.split_once("!=") {
        return Some(Term::NotIn(key_of(key)?, vec![value_of(value)?]));
    }
    if let Some((key, value)) = part.split_once("==").or_else(|| part.split_once('=')) {
        return Some(Term::In(key_of(key)?, vec![value_of(value)?]));
    }
    if let Some(key) = part.strip_prefix('!') {
        return Some(Term::Lacks(key_of(key)?));
    }
    let Some((head, values)) = part.strip_suffix(')').and_then(|part| part.split_once('(')) else {
        return Some(Term::Has(key_of(part)?));
    };
    let values = values.split(',').map(value_of).collect::<Option<Vec<_>>>()?;
    let (key, word) = head.trim_end().rsplit_once(char::is_whitespace)?;
    match word {
        "in" => Some(Term::In(key_of(key)?, values)),
        "notin" => Some(Term::NotIn(key_of(key)?, values)),
        _ => None,
    }
}

fn key_of(text: &str) -> Option<String> {
    let key = text.trim();
    check_key(key).is_ok().then(|| key.to_owned())
}

fn value_of(text: &str) -> Option<String> {
    let value = text.trim();
    (value.is_empty() || is_word(value)).then(|| value.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chooses(selector: &str, labels: &[(&str, &str)]) -> bool {
        let labels = labels.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        Selector::parse(selector).unwrap().chooses(&labels)
    }

    #[test]
    fn every_form_of_a_selector_chooses_what_it_says() {
        let web = [("role", "web"), ("env", "")];
        for yes in
            ["role", "!db", "role=web", "role==web", "role!=db", "role in (db, web)", "role notin (a,b)"]
        {
            assert!(chooses(yes, &web), "{yes}");
        }
        for no in ["db", "!role", "role=db", "role!=web", "role in (a,b)", "role notin (web)", "env=x"] {
            assert!(!chooses(no, &web), "{no}");
        }
        assert!(chooses("role in (web,x),env=,!z", &web) && !chooses("role=web,env=x", &web));
        assert!(chooses("none!=x,none notin (x)", &web), "what is not there is unequal to everything");
        for wrong in ["", "a,", "=x", "a in b", "a is (b)", "a=b c", "-a", "a in (b"] {
            assert!(Selector::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn labels_are_words_of_at_most_63_letters() {
        let long = "a".repeat(64);
        assert!(check("orch-uuid", "1.2_3-4").is_ok() && check("a.b/c", "").is_ok());
        for (key, value) in
            [("", "x"), ("-a", "x"), ("a b", "x"), ("hetzner.cloud/a", "x"), ("a", "x!"), ("a", "-")]
        {
            assert!(check(key, value).is_err(), "{key} {value}");
        }
        assert!(check(&long, "x").is_err() && check("x", &long).is_err());
    }
}
