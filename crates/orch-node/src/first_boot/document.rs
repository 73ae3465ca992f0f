//! What user data says, as far as it is understood here. What is not understood is named, and what has the wrong form is taken
//! for something that is not understood.

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value as Json};

/// User data, told apart by its first line as cloud-init does.
pub(super) enum UserData<'u> {
    Nothing,
    Document(Box<Document>),
    Script(&'u str),
}

/// A document of `#cloud-config`.
#[derive(Default)]
pub(super) struct Document {
    pub(super) hostname: Option<String>,
    /// Nothing where it says nothing of users.
    pub(super) users: Option<Vec<User>>,
    pub(super) keys: Vec<String>,
    pub(super) deletes_host_keys: bool,
    /// Such as `ed25519_private`, with what it holds.
    pub(super) host_keys: Map<String, Json>,
    pub(super) write_files: Vec<File>,
    pub(super) bootcmd: Vec<Command>,
    pub(super) runcmd: Vec<Command>,
    /// What is not understood.
    pub(super) unknown: Vec<String>,
}

/// An account.
#[derive(Deserialize)]
#[serde(untagged)]
pub(super) enum User {
    /// `default` is the platform's; any other name is an account without more.
    Named(String),
    Described {
        name: String,
        /// A rule, a list of rules, or `false`.
        #[serde(default)]
        sudo: Json,
        #[serde(default)]
        shell: Option<String>,
        #[serde(default)]
        ssh_authorized_keys: Vec<String>,
    },
}

/// A file to be written.
#[derive(Deserialize)]
pub(super) struct File {
    pub(super) path: String,
    #[serde(default)]
    pub(super) content: String,
    #[serde(default)]
    pub(super) owner: Option<String>,
    #[serde(default)]
    pub(super) permissions: Option<Json>,
    #[serde(default)]
    pub(super) encoding: Option<String>,
    #[serde(default)]
    pub(super) append: bool,
}

/// A command: words, or a line for a shell.
#[derive(Deserialize)]
#[serde(untagged)]
pub(super) enum Command {
    Words(Vec<Json>),
    Line(String),
}

impl<'u> UserData<'u> {
    pub(super) fn of(text: &'u str) -> Result<Self, String> {
        let first = text.lines().next().unwrap_or_default().trim_end();
        if text.trim().is_empty() {
            return Ok(Self::Nothing);
        }
        if first.starts_with("#!") {
            return Ok(Self::Script(text));
        }
        if first != "#cloud-config" {
            return Err("the user data is neither `#cloud-config` nor a script".into());
        }
        match orch_model::yaml_value(text) {
            Ok(Json::Object(map)) => Ok(Self::Document(Box::new(Document::of(map)))),
            Ok(Json::Null) => Ok(Self::Nothing),
            Ok(_) => Err("the user data is not a map".into()),
            Err(why) => Err(format!("the user data is not YAML: {why}")),
        }
    }
}

impl Document {
    fn of(map: Map<String, Json>) -> Self {
        let mut document = Self::default();
        for (key, value) in map {
            if !document.take(&key, value) {
                document.unknown.push(key);
            }
        }
        document
    }

    /// Takes one key; whether it is understood.
    fn take(&mut self, key: &str, value: Json) -> bool {
        match key {
            "hostname" => into(&mut self.hostname, value),
            "users" => into(&mut self.users, value),
            "ssh_authorized_keys" => into(&mut self.keys, value),
            "ssh_deletekeys" => into(&mut self.deletes_host_keys, value),
            "ssh_keys" => into(&mut self.host_keys, value),
            "write_files" => into(&mut self.write_files, value),
            "bootcmd" => into(&mut self.bootcmd, value),
            "runcmd" => into(&mut self.runcmd, value),
            _ => false,
        }
    }
}

fn into<T: DeserializeOwned>(place: &mut T, value: Json) -> bool {
    match serde_json::from_value(value) {
        Ok(value) => {
            *place = value;
            true
        }
        Err(_) => false,
    }
}
