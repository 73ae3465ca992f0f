//! Text that is nobody's file: YAML, and so JSON, as plain values. For what orch is given and does not define.

use alloc::format;
use alloc::string::{String, ToString};

use serde_json::{Map, Value as Json};

use crate::source::{Format, MAX_FILE_BYTES};
use crate::text::{self, Data, Reporter, Value};

/// Reads one document of YAML, within the limits that hold for every text. What is wrong with it is said by line and without
/// showing the line: it may be a secret.
pub fn yaml_value(text: &str) -> Result<Json, String> {
    if text.len() > MAX_FILE_BYTES {
        return Err("it is too large".into());
    }
    let mut problems = Reporter::new("text");
    problems.set_text(text);
    let value = text::read(Format::Yaml, text, &mut problems);
    let problems = problems.finish();
    if let Some(problem) = problems.iter().next() {
        return Err(format!("line {}: {}", problem.position.line, problem.message));
    }
    Ok(value.map_or(Json::Null, |value| plain(&value)))
}

fn plain(value: &Value<'_>) -> Json {
    match &value.data {
        Data::Null => Json::Null,
        Data::Bool(value) => Json::Bool(*value),
        Data::Int(value) => Json::from(*value),
        Data::Float(value) => Json::from(*value),
        Data::Text(value) => Json::String(value.to_string()),
        Data::List(values) => values.iter().map(plain).collect(),
        Data::Map(entries) => {
            let pairs = entries.iter().map(|entry| (entry.key.to_string(), plain(&entry.value)));
            Json::Object(pairs.collect::<Map<_, _>>())
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn yaml_and_json_are_the_same_values_and_comments_are_none() {
        let text = "#cloud-config\nusers:\n  - default\n  - name: a\n    lock: true\nmode: 0644\nn: 12\n";
        let value = json!({ "users": ["default", { "name": "a", "lock": true }], "mode": "0644", "n": 12 });
        assert_eq!(yaml_value(text), Ok(value.clone()));
        assert_eq!(yaml_value(&format!("#cloud-config\n{value:#}\n")), Ok(value));
        assert_eq!(yaml_value(""), Ok(Json::Null));
    }

    #[test]
    fn what_is_wrong_is_said_without_the_line() {
        let told = yaml_value("a: 1\nb: 'very secret\n").expect_err("it has no end");
        assert!(told.starts_with("line ") && !told.contains("secret"), "{told}");
    }
}
