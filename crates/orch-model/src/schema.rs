//! JSON Schemas of the site's files, from the very types that read them.

use alloc::format;
use alloc::string::String;

use serde_json::{Value as Json, json};

use crate::decode::Decode;
use crate::files::{Host, Manifest, Posture, Preset, Site, Spec};
use crate::source::FileKind;

/// The schema of every kind of file, with the name of the file that holds it.
pub fn schemas() -> impl Iterator<Item = (String, Json)> {
    FileKind::ALL.into_iter().map(|kind| (format!("{kind}.schema.json"), schema(kind)))
}

fn schema(kind: FileKind) -> Json {
    let mut schema = match kind {
        FileKind::Site => Site::schema(),
        FileKind::Host => Host::schema(),
        FileKind::Manifest => Manifest::schema(),
        FileKind::Spec => Spec::schema(),
        FileKind::Preset => Preset::schema(),
        FileKind::Posture => Posture::schema(),
    };
    schema["$schema"] = json!("http://json-schema.org/draft-07/schema#");
    schema["title"] = json!(format!("orch {kind}"));
    schema
}
