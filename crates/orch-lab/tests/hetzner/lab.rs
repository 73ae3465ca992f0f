//! A project on paper, and how the tests speak to it.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use orch_lab::{Answer, Api as _, Asked, Faults, Hetzner, HetznerSettings, Paper, Rule};
use serde_json::{Value as Json, json};

pub(crate) const TOKEN: &str = "a-token";
pub(crate) const READER: &str = "a-reader";
pub(crate) const KEY: &str =
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJvT0ZzX6mFz1sFQ2E0oT5QyYHhC0rKk0H5wFqvV7u7A me@here";

/// The published description, where it is at hand.
pub(crate) fn description() -> Option<PathBuf> {
    let folder = std::env::var_os("ORCH_API_DESCRIPTIONS").map_or_else(
        || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data"),
        PathBuf::from,
    );
    Some(folder.join("hcloud-openapi.json")).filter(|path| path.exists())
}

pub(crate) struct Lab {
    pub(crate) api: Hetzner,
    pub(crate) faults: Faults,
}

/// An answer, read.
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) status: u16,
    pub(crate) body: Json,
    pub(crate) answer: Answer,
}

impl Said {
    pub(crate) fn code(&self) -> (u16, &str) {
        (self.status, self.body["error"]["code"].as_str().unwrap_or(""))
    }

    pub(crate) fn id(&self, what: &str) -> u64 {
        self.body[what]["id"].as_u64().unwrap_or_else(|| panic!("no {what} in {:?}", self.body))
    }

    pub(crate) fn header(&self, name: &str) -> i64 {
        let found = self.answer.headers.iter().find(|(known, _)| known == name);
        found.expect(name).1.parse().unwrap()
    }
}

impl Lab {
    pub(crate) fn new() -> Self {
        Self::with(|_| {})
    }

    pub(crate) fn with(change: impl FnOnce(&mut HetznerSettings)) -> Self {
        let faults = Faults::default();
        let mut settings = HetznerSettings::new(Arc::new(Paper::default()), faults.clone());
        settings.token = TOKEN.into();
        settings.read_only_tokens.insert(READER.into());
        settings.action_time = Duration::from_millis(20);
        settings.limit = 1_000_000;
        settings.description = description();
        change(&mut settings);
        Self { api: Hetzner::open(settings).unwrap(), faults }
    }

    pub(crate) fn fault(&self, rule: Rule) {
        self.faults.clear();
        self.faults.add(rule);
    }

    pub(crate) async fn ask_as(&self, token: &str, method: &str, path: &str, body: Vec<u8>) -> Said {
        let (path, query) = path.split_once('?').unwrap_or((path, ""));
        let asked = Asked {
            method: method.into(),
            path: format!("/v1{path}"),
            query: query.into(),
            headers: BTreeMap::from([("authorization".into(), format!("Bearer {token}"))]),
            body,
        };
        let answer = self.api.answer(asked).await;
        let body: Json = serde_json::from_slice(&answer.body).unwrap_or(Json::Null);
        assert_ne!(answer.status, 500, "{method} {path}: {body}");
        Said { status: answer.status, body, answer }
    }

    pub(crate) async fn ask(&self, method: &str, path: &str, body: Json) -> Said {
        let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
        self.ask_as(TOKEN, method, path, body).await
    }

    pub(crate) async fn get(&self, path: &str) -> Json {
        let said = self.ask("GET", path, Json::Null).await;
        assert_eq!(said.status, 200, "{path}: {}", said.body);
        said.body
    }

    /// Asks for something that has to be made.
    pub(crate) async fn make(&self, path: &str, body: Json) -> Said {
        let said = self.ask("POST", path, body).await;
        assert_eq!(said.status, 201, "{path}: {}", said.body);
        said
    }

    /// Waits for an action to end, and returns it.
    pub(crate) async fn end(&self, id: u64) -> Json {
        loop {
            let action = self.get(&format!("/actions/{id}")).await["action"].take();
            if action["status"] != "running" {
                assert_eq!(action["progress"], 100);
                return action;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// Gives an order, waits for its end, and returns the action.
    pub(crate) async fn order(&self, path: &str, body: Json) -> Json {
        let id = self.make(path, body).await.id("action");
        self.end(id).await
    }

    /// A server that is made and started.
    pub(crate) async fn server(&self, name: &str, more: Json) -> u64 {
        let mut body = json!({"name": name, "server_type": "cx22", "image": "debian-13"});
        body.as_object_mut().unwrap().extend(more.as_object().cloned().unwrap_or_default());
        let said = self.make("/servers", body).await;
        let last = said.body["next_actions"].as_array().unwrap().last().cloned();
        let last = last.map_or_else(|| said.id("action"), |action| action["id"].as_u64().unwrap());
        assert_eq!(self.end(last).await["status"], "success");
        said.id("server")
    }
}
