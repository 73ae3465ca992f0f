//! The published description of the API (`OpenAPI`), where it is at hand: questions and answers are held against it.
//!
//! Only what the description makes use of is understood; what is not understood holds nobody up.

use std::path::Path;

use serde_json::{Map, Value as Json};

/// Official clients send the id of these as a number, and the real API takes it, although its description says text.
const IDS_OR_NAMES: [&str; 6] = ["image", "server_type", "location", "datacenter", "iso", "ssh_keys"];

/// Fields that official clients send or expect, and the real API takes or sends, although its description does not have them.
const UNDESCRIBED: [&str; 3] = ["gateway", "locations.available", "locations.recommended"];

/// The description of an API.
pub(super) struct Description {
    root: Json,
}

/// Which side said what is looked at.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Question,
    Answer,
}

/// Fields and what is wrong about each.
type Wrong = Vec<(String, String)>;

impl Description {
    pub(super) fn read(path: &Path) -> std::io::Result<Self> {
        let root = serde_json::from_slice(&std::fs::read(path)?).map_err(std::io::Error::other)?;
        Ok(Self { root })
    }

    /// What is wrong about the body of a question.
    pub(super) fn question(&self, method: &str, path: &[String], body: &Map<String, Json>) -> Wrong {
        let Some(operation) = self.operation(method, path) else { return Vec::new() };
        let Some(schema) = operation.pointer("/requestBody/content/application~1json/schema") else {
            return Vec::new();
        };
        let mut wrong = Vec::new();
        self.check(schema, &Json::Object(body.clone()), "", Side::Question, &mut wrong);
        wrong
    }

    /// What is wrong about an answer.
    pub(super) fn answer(&self, method: &str, path: &[String], status: u16, body: &[u8]) -> Wrong {
        let said = serde_json::from_slice(body).unwrap_or(Json::Null);
        let mut wrong = Vec::new();
        if status >= 400 {
            if let Some(schema) = self.root.pointer("/components/schemas/error_response") {
                self.check(schema, &said, "", Side::Answer, &mut wrong);
            }
            return wrong;
        }
        let Some(operation) = self.operation(method, path) else { return Vec::new() };
        let Some(promised) = operation.get("responses").and_then(|all| all.get(status.to_string())) else {
            return vec![("status".into(), format!("{status} is none that the description has"))];
        };
        match promised.pointer("/content/application~1json/schema") {
            Some(schema) => self.check(schema, &said, "", Side::Answer, &mut wrong),
            None if body.is_empty() => {}
            None => wrong.push(("body".into(), "there has to be none".into())),
        }
        wrong
    }

    /// The operation that a path means; one that is spelled out comes before one with a placeholder.
    fn operation(&self, method: &str, path: &[String]) -> Option<&Json> {
        let method = method.to_ascii_lowercase();
        let candidates = self.root.get("paths")?.as_object()?.iter().filter_map(|(template, operations)| {
            let parts: Vec<&str> = template.split('/').filter(|part| !part.is_empty()).collect();
            let fits = parts.len() == path.len()
                && parts.iter().zip(path).all(|(part, given)| part.starts_with('{') || part == given);
            let placeholders = parts.iter().filter(|part| part.starts_with('{')).count();
            fits.then_some(()).and(operations.get(&method)).map(|operation| (placeholders, operation))
        });
        candidates.min_by_key(|(placeholders, _)| *placeholders).map(|(_, operation)| operation)
    }

    fn check(&self, schema: &Json, value: &Json, at: &str, side: Side, wrong: &mut Wrong) {
        if let Some(target) = schema.get("$ref").and_then(Json::as_str) {
            if let Some(schema) = target.strip_prefix('#').and_then(|target| self.root.pointer(target)) {
                self.check(schema, value, at, side, wrong);
            }
            return;
        }
        if value.is_null() && schema.get("nullable") == Some(&Json::Bool(true)) {
            return;
        }
        for part in list(schema, "allOf") {
            self.check(part, value, at, side, wrong);
        }
        for choice in ["oneOf", "anyOf"] {
            let choices = list(schema, choice);
            if !choices.is_empty() && !choices.iter().any(|part| self.allows(part, value, at, side)) {
                wrong.push((name(at), "is none of what is allowed".into()));
            }
        }
        let kind = schema.get("type").and_then(Json::as_str);
        if kind.is_some_and(|kind| !is_of(kind, value, at, side)) {
            wrong.push((name(at), format!("has to be of the type {}", kind.unwrap_or_default())));
            return;
        }
        check_bounds(schema, value, at, wrong);
        self.check_inside(schema, value, at, side, wrong);
    }

    fn allows(&self, schema: &Json, value: &Json, at: &str, side: Side) -> bool {
        let mut wrong = Vec::new();
        self.check(schema, value, at, side, &mut wrong);
        wrong.is_empty()
    }

    fn check_inside(&self, schema: &Json, value: &Json, at: &str, side: Side, wrong: &mut Wrong) {
        if let (Some(items), Some(values)) = (schema.get("items"), value.as_array()) {
            for value in values {
                self.check(items, value, at, side, wrong);
            }
        }
        let (Some(known), Some(fields)) =
            (schema.get("properties").and_then(Json::as_object), value.as_object())
        else {
            if let (Some(each), Some(fields)) = (schema.get("additionalProperties"), value.as_object()) {
                fields.iter().for_each(|(key, value)| self.check(each, value, &below(at, key), side, wrong));
            }
            return;
        };
        for field in list(schema, "required").iter().filter_map(Json::as_str) {
            if !fields.contains_key(field) {
                wrong.push((below(at, field), "is missing".into()));
            }
        }
        for (field, value) in fields {
            match known.get(field) {
                Some(schema) => self.check(schema, value, &below(at, field), side, wrong),
                None if is_undescribed(&below(at, field)) => {}
                // Details are said by errors in ways of their own.
                None if side == Side::Answer || at.is_empty() => {
                    wrong.push((below(at, field), "is not known".into()));
                }
                None => {}
            }
        }
    }
}

fn check_bounds(schema: &Json, value: &Json, at: &str, wrong: &mut Wrong) {
    let allowed = list(schema, "enum");
    if !allowed.is_empty() && !allowed.contains(value) {
        wrong.push((name(at), "is none of the values that are allowed".into()));
    }
    let count = value.as_str().map(|text| text.chars().count()).or_else(|| value.as_array().map(Vec::len));
    let (least, most) = if value.is_array() { ("minItems", "maxItems") } else { ("minLength", "maxLength") };
    let bound =
        |name: &str| schema.get(name).and_then(Json::as_u64).and_then(|bound| usize::try_from(bound).ok());
    if count.is_some_and(|count| bound(least).is_some_and(|bound| count < bound)) {
        wrong.push((name(at), "is too short".into()));
    }
    if count.is_some_and(|count| bound(most).is_some_and(|bound| count > bound)) {
        wrong.push((name(at), "is too long".into()));
    }
    let bound = |name: &str| schema.get(name).and_then(Json::as_f64);
    let (least, most) = (bound("minimum"), bound("maximum"));
    if value.as_f64().is_some_and(|value| least.is_some_and(|least| value < least)) {
        wrong.push((name(at), "is too small".into()));
    }
    if value.as_f64().is_some_and(|value| most.is_some_and(|most| value > most)) {
        wrong.push((name(at), "is too large".into()));
    }
    let is_time = schema.get("format").and_then(Json::as_str) == Some("date-time");
    if is_time && value.as_str().is_some_and(|text| text.parse::<jiff::Timestamp>().is_err()) {
        wrong.push((name(at), "is no time".into()));
    }
}

fn is_of(kind: &str, value: &Json, at: &str, side: Side) -> bool {
    match kind {
        "string" => {
            value.is_string() || side == Side::Question && IDS_OR_NAMES.contains(&at) && value.is_u64()
        }
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        _ => true,
    }
}

fn is_undescribed(at: &str) -> bool {
    UNDESCRIBED.iter().any(|known| at == *known || at.ends_with(&format!(".{known}")))
}

fn list<'a>(schema: &'a Json, name: &str) -> &'a [Json] {
    schema.get(name).and_then(Json::as_array).map(Vec::as_slice).unwrap_or_default()
}

fn below(at: &str, field: &str) -> String {
    if at.is_empty() { field.to_owned() } else { format!("{at}.{field}") }
}

fn name(at: &str) -> String {
    if at.is_empty() { "body".to_owned() } else { at.to_owned() }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn described() -> Description {
        let thing = json!({
            "type": "object", "required": ["name"],
            "properties": {
                "name": {"type": "string", "minLength": 2, "maxLength": 4}, "kind": {"type": "string", "enum": ["a", "b"]},
                "size": {"type": "integer", "minimum": 1, "maximum": 9}, "image": {"type": "string"},
                "tags": {"type": "array", "maxItems": 1, "items": {"type": "string"}},
                "at": {"type": "string", "format": "date-time", "nullable": true},
                "either": {"oneOf": [{"type": "string"}, {"type": "boolean"}]},
                "labels": {"type": "object", "additionalProperties": {"type": "string"}},
            },
        });
        let body =
            json!({"content": {"application/json": {"schema": {"$ref": "#/components/schemas/thing"}}}});
        let special = json!({"get": {"responses": {"204": {}}}});
        let root = json!({
            "components": {"schemas": {"thing": thing}},
            "paths": {
                "/things/{id}": {"put": {"requestBody": body, "responses": {"200": body}}, "get": {"responses": {"200": body}}},
                "/things/special": special,
            },
        });
        Description { root }
    }

    fn wrong(body: &Json) -> Vec<String> {
        let path = ["things".to_owned(), "7".to_owned()];
        let wrong = described().question("PUT", &path, body.as_object().unwrap());
        wrong.into_iter().map(|(field, _)| field).collect()
    }

    #[test]
    fn a_question_is_held_against_every_rule_that_the_description_has() {
        let fine = json!({
            "name": "abc", "kind": "a", "size": 9, "tags": ["x"], "at": null, "either": true, "labels": {"k": "v"}, "image": 7,
        });
        assert_eq!(wrong(&fine), [""; 0]);
        for (field, value) in [
            ("name", json!(7)),
            ("name", json!("a")),
            ("name", json!("abcde")),
            ("kind", json!("c")),
            ("size", json!(0)),
            ("size", json!(10)),
            ("size", json!(1.5)),
            ("tags", json!([1])),
            ("tags", json!(["a", "b"])),
            ("at", json!("yesterday")),
            ("either", json!(1)),
            ("unheard", json!(1)),
        ] {
            let mut body = fine.clone();
            body[field] = value;
            assert_eq!(wrong(&body), [field], "{body}");
        }
        assert_eq!(wrong(&json!({})), ["name"]);
        assert_eq!(wrong(&json!({"name": "abc", "labels": {"k": 1}})), ["labels.k"]);
    }

    #[test]
    fn an_answer_is_held_against_the_path_that_is_spelled_out_before_the_one_that_is_not() {
        let answer = |last: &str, status: u16, body: &[u8]| {
            described().answer("GET", &["things".to_owned(), last.to_owned()], status, body).is_empty()
        };
        assert!(
            answer("special", 204, b"") && !answer("special", 204, b"{}") && !answer("special", 200, b"{}")
        );
        assert!(
            answer("7", 200, br#"{"name": "abc"}"#) && !answer("7", 200, br#"{"name": "abc", "more": 1}"#)
        );
        assert!(!answer("7", 200, b""));
    }
}
