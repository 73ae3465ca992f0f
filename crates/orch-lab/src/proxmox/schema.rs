//! Which parameters a call takes, and whether those that came are such: by the published description of the API where it is
//! at hand, by a small table of the same shape where it is not.

use std::collections::BTreeMap;
use std::path::Path;

use regex::Regex;
use serde_json::Value as Json;

use super::params::Params;
use super::reply::Refusal;
use super::{formats, table};

const UNKNOWN: &str = "property is not defined in schema and the schema does not allow additional properties";
const MISSING: &str = "property is missing and it is not optional";

/// The parameters of every call.
pub(super) struct Schema {
    /// By method and path with its places, such as `GET /nodes/{node}/status`.
    calls: BTreeMap<String, BTreeMap<String, Rule>>,
}

/// What one parameter must be.
#[derive(Default)]
pub(super) struct Rule {
    pub(super) kind: String,
    pub(super) is_optional: bool,
    pub(super) choices: Vec<String>,
    pub(super) pattern: Option<Regex>,
    pub(super) least: Option<f64>,
    pub(super) most: Option<f64>,
    pub(super) shortest: Option<usize>,
    pub(super) longest: Option<usize>,
    pub(super) format: Option<String>,
}

impl Schema {
    /// The small table.
    pub(super) fn small() -> Self {
        Self { calls: table::calls() }
    }

    /// The published description, and the small table for what it does not have.
    pub(super) fn read(path: &Path) -> std::io::Result<Self> {
        let tree: Vec<Json> = serde_json::from_slice(&std::fs::read(path)?)?;
        let mut calls = table::calls();
        for branch in &tree {
            walk(branch, &mut calls);
        }
        Ok(Self { calls })
    }

    /// Says everything that is wrong with the parameters of a call.
    pub(super) fn check(&self, method: &str, path: &str, params: &Params) -> Result<(), Refusal> {
        let Some(rules) = self.calls.get(&format!("{method} {path}")) else {
            return Ok(());
        };
        let mut errors = BTreeMap::new();
        for (name, value) in params.all() {
            let why = match find(rules, name) {
                Some(rule) => rule.check(value),
                None => Some(UNKNOWN.to_owned()),
            };
            errors.extend(why.map(|why| (name.clone(), why)));
        }
        let missing = rules.iter().filter(|(name, rule)| !rule.is_optional && !name.ends_with("[n]"));
        for (name, _) in missing.filter(|(name, _)| params.get(name).is_none()) {
            errors.insert(name.clone(), MISSING.to_owned());
        }
        if errors.is_empty() { Ok(()) } else { Err(Refusal::parameters(errors)) }
    }
}

fn find<'a>(rules: &'a BTreeMap<String, Rule>, name: &str) -> Option<&'a Rule> {
    let word = name.trim_end_matches(|digit: char| digit.is_ascii_digit());
    let numbered = || rules.get(&format!("{word}[n]")).filter(|_| word.len() < name.len());
    rules.get(name).filter(|_| !name.ends_with("[n]")).or_else(numbered)
}

fn walk(branch: &Json, calls: &mut BTreeMap<String, BTreeMap<String, Rule>>) {
    let path = branch["path"].as_str().unwrap_or_default();
    for (method, info) in branch["info"].as_object().into_iter().flatten() {
        let properties = info["parameters"]["properties"].as_object().into_iter().flatten();
        let rules = properties.map(|(name, property)| (name.clone(), Rule::read(property))).collect();
        calls.insert(format!("{method} {path}"), rules);
    }
    for child in branch["children"].as_array().into_iter().flatten() {
        walk(child, calls);
    }
}

impl Rule {
    fn read(property: &Json) -> Self {
        let text = |name: &str| property[name].as_str().map(str::to_owned);
        // Numbers stand there as numbers or as text.
        let number = |name: &str| {
            property[name].as_f64().or_else(|| property[name].as_str().and_then(|text| text.parse().ok()))
        };
        let length = |name: &str| property[name].as_u64().and_then(|length| usize::try_from(length).ok());
        let choices = property["enum"].as_array().into_iter().flatten();
        Self {
            kind: text("type").unwrap_or_else(|| "string".into()),
            is_optional: property["optional"].as_i64() == Some(1),
            choices: choices.filter_map(|choice| choice.as_str().map(str::to_owned)).collect(),
            pattern: text("pattern").and_then(|pattern| expression(&pattern)),
            least: number("minimum"),
            most: number("maximum"),
            shortest: length("minLength"),
            longest: length("maxLength"),
            format: text("format"),
        }
    }

    fn check(&self, value: &str) -> Option<String> {
        let wrong_kind = || Some(format!("type check ('{}') failed - got '{value}'", self.kind));
        let number = match self.kind.as_str() {
            "integer" => match value.parse::<i64>() {
                Ok(_) => value.parse::<f64>().ok(),
                Err(_) => return wrong_kind(),
            },
            "number" => match value.parse::<f64>() {
                Ok(number) => Some(number),
                Err(_) => return wrong_kind(),
            },
            "boolean" if formats::truth(value).is_none() => return wrong_kind(),
            _ => None,
        };
        let small = self.least.filter(|least| number.is_some_and(|number| number < *least));
        let large = self.most.filter(|most| number.is_some_and(|number| number > *most));
        let length = value.chars().count();
        if let Some(least) = small {
            return Some(format!("value must have a minimum value of {least}"));
        }
        if let Some(most) = large {
            return Some(format!("value must have a maximum value of {most}"));
        }
        if let Some(longest) = self.longest.filter(|longest| length > *longest) {
            return Some(format!("value may only be {longest} characters long"));
        }
        if let Some(shortest) = self.shortest.filter(|shortest| length < *shortest) {
            return Some(format!("value must be at least {shortest} characters long"));
        }
        if !self.choices.is_empty() && !self.choices.iter().any(|choice| choice == value) {
            let choices = self.choices.join(", ");
            return Some(format!("value '{value}' does not have a value in the enumeration '{choices}'"));
        }
        if self.pattern.as_ref().is_some_and(|pattern| !pattern.is_match(value)) {
            return Some("value does not match the regex pattern".into());
        }
        let wrong = self.format.as_deref().and_then(|format| formats::check(format, value));
        wrong.map(|wrong| format!("invalid format - {wrong}\n"))
    }
}

/// A pattern of the description; those that only Perl understands are left alone.
pub(super) fn expression(pattern: &str) -> Option<Regex> {
    let plain = pattern.replace("(?^:", "(?:").replace("(?^i:", "(?i:");
    Regex::new(&format!("^(?:{plain})$")).ok()
}
