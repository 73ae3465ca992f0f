//! The JSON Schemas that editors use are the committed ones, and as strict as the reader.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value as Json;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/schema")
}

#[test]
fn no_other_schema_is_committed() {
    let names: Vec<String> = orch_model::schemas().map(|(name, _)| name).collect();
    for entry in fs::read_dir(folder()).expect("docs/schema is there").flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        assert!(
            names.contains(&name) || !name.ends_with(".schema.json"),
            "docs/schema/{name} describes nothing"
        );
    }
}

#[test]
fn every_schema_is_sound_and_refuses_unknown_keys() {
    for (name, schema) in orch_model::schemas() {
        assert_eq!(schema["$schema"], "http://json-schema.org/draft-07/schema#", "{name}");
        assert!(schema["title"].is_string() && schema["description"].is_string(), "{name}");
        check(&name, &schema, true);
    }
}

/// Walks through a schema; a record is one whose keys are listed.
fn check(at: &str, schema: &Json, is_root: bool) {
    let keywords = schema.as_object().unwrap_or_else(|| unreachable!("{at} is no object"));
    for (key, value) in keywords {
        let at = format!("{at}/{key}");
        match key.as_str() {
            "$schema" | "title" => assert!(is_root, "{at}"),
            "description" | "pattern" => assert!(value.is_string(), "{at}"),
            "const" | "default" => {}
            "type" => check_type(&at, value),
            "minimum" | "maximum" | "minItems" | "maxItems" => assert!(value.is_u64(), "{at}"),
            "enum" => assert!(value.as_array().is_some_and(|words| !words.is_empty()), "{at}"),
            "required" => check_required(&at, value, &schema["properties"]),
            "properties" => {
                let is_free = at.ends_with("/config/properties");
                assert!(
                    is_free || schema["additionalProperties"] == Json::Bool(false),
                    "{at} lets unknown keys in"
                );
                let properties = value.as_object().unwrap_or_else(|| unreachable!("{at}"));
                properties.iter().for_each(|(key, schema)| check(&format!("{at}/{key}"), schema, false));
            }
            "additionalProperties" => {
                if value.is_object() {
                    check(&at, value, false);
                }
            }
            "items" => check(&at, value, false),
            "oneOf" => value.as_array().into_iter().flatten().for_each(|branch| check(&at, branch, false)),
            _ => unreachable!("{at} is no keyword that we use"),
        }
    }
    check_nullable(at, schema);
}

fn check_type(at: &str, value: &Json) {
    let kinds = ["object", "array", "string", "integer", "number", "boolean", "null"];
    let is_kind = |kind: &Json| kind.as_str().is_some_and(|kind| kinds.contains(&kind));
    assert!(is_kind(value) || value.as_array().is_some_and(|all| all.iter().all(is_kind)), "{at}");
}

fn check_required(at: &str, required: &Json, properties: &Json) {
    for key in required.as_array().into_iter().flatten() {
        assert!(key.as_str().is_some_and(|key| properties.get(key).is_some()), "{at}: {key}");
    }
}

/// What may be null by its type must be allowed to be null by its words too.
fn check_nullable(at: &str, schema: &Json) {
    let may_be_null = schema["type"].as_array().is_some_and(|kinds| kinds.contains(&Json::from("null")));
    if let (true, Some(words)) = (may_be_null, schema["enum"].as_array()) {
        assert!(words.contains(&Json::Null), "{at}");
    }
    assert!(!(may_be_null && schema.get("const").is_some()), "{at} can never be null");
}
