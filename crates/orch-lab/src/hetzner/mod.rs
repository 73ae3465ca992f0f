//! Hetzner Cloud, version 1 of its API, as a project on this computer sees it.
//!
//! Questions are answered from one state under one lock; what takes time becomes an action, which is carried out in the
//! background. Whatever changes the state is kept in a file before it is answered, so that a program that was killed goes on
//! where it was: actions that were running are carried out from their beginning, which every machine allows.

mod body;
mod call;
mod catalog;
mod course;
mod description;
mod effect;
mod fingerprint;
mod firewalls;
mod groups;
mod images;
mod ips;
mod keep;
mod keys;
mod labels;
mod limit;
mod list;
mod networks;
mod orders;
mod range;
mod refusal;
mod routes;
mod servers;
mod state;
mod view;
mod volumes;

use std::collections::BTreeSet;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use async_trait::async_trait;
use serde_json::{Map, Value as Json};

use body::Body;
use call::Call;
use description::Description;
use limit::Bucket;
use list::Query;
use refusal::Refusal;
use state::State;

use crate::exchange::{Answer, Api, Asked};
use crate::faults::{Fault, Faults};
use crate::machines::Machines;

/// How a project is, and what it is given.
#[derive(Clone)]
pub struct HetznerSettings {
    /// What the servers are.
    pub machines: Arc<dyn Machines>,
    /// What goes wrong on purpose.
    pub faults: Faults,
    /// The token that opens everything. Made at random unless it is set.
    pub token: String,
    /// Tokens that open everything for reading.
    pub read_only_tokens: BTreeSet<String>,
    /// The file that the project is kept in; without one it is forgotten.
    pub state: Option<PathBuf>,
    /// How long an action takes, beside what its machine takes.
    pub action_time: Duration,
    /// How many questions are answered in an hour.
    pub limit: u32,
    /// How many servers there can be.
    pub server_limit: usize,
    /// The published description of the API, in JSON. With it, questions that it does not allow are refused, and an answer that
    /// it does not allow becomes an error that says why.
    pub description: Option<PathBuf>,
}

impl HetznerSettings {
    /// A project that is forgotten, with the limits of a real one.
    pub fn new(machines: Arc<dyn Machines>, faults: Faults) -> Self {
        let half = || uuid::Uuid::new_v4().simple();
        Self {
            machines,
            faults,
            token: format!("{}{}", half(), half()),
            read_only_tokens: BTreeSet::new(),
            state: None,
            action_time: Duration::from_secs(1),
            limit: 3600,
            server_limit: 100,
            description: None,
        }
    }
}

/// A project at Hetzner Cloud. Copies are the same project; when the last one goes, its actions stop where they are.
#[derive(Clone)]
pub struct Hetzner(Arc<Inner>);

struct Inner {
    settings: HetznerSettings,
    description: Option<Description>,
    bucket: Bucket,
    state: Mutex<State>,
}

impl Hetzner {
    /// Opens a project, and goes on with what was going on in it; so it is called inside a runtime. An error is one of
    /// reading its files.
    pub fn open(settings: HetznerSettings) -> io::Result<Self> {
        let description = settings.description.as_deref().map(Description::read).transpose()?;
        let mut state = settings.state.as_deref().map(keep::load).transpose()?.unwrap_or_default();
        state.fresh = course::waiting(&state);
        let bucket = Bucket::full(settings.limit);
        let inner = Arc::new(Inner { settings, description, bucket, state: Mutex::new(state) });
        course::set_off(&inner, &mut inner.state());
        Ok(Self(inner))
    }
}

#[async_trait]
impl Api for Hetzner {
    async fn answer(&self, asked: Asked) -> Answer {
        let left = self.0.bucket.take();
        let answered = if left.was_enough {
            self.0.reply(&asked).await
        } else {
            Err(Refusal::new(429, "rate_limit_exceeded", "limit of requests per hour reached"))
        };
        let answer = match answered {
            Ok((status, Json::Null)) => Answer::empty(status),
            Ok((status, body)) => Answer::json(status, &body),
            Err(refusal) => refusal.answer(),
        };
        left.beside(self.0.checked(&asked, answer))
    }
}

impl Inner {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("nobody panics while holding this")
    }

    fn save(&self, state: &State) -> bool {
        self.settings.state.as_deref().is_none_or(|path| keep::save(path, state).is_ok())
    }

    async fn reply(self: &Arc<Self>, asked: &Asked) -> call::Reply {
        let is_write = asked.method != "GET";
        self.admit(asked, is_write)?;
        let path = path(asked).ok_or_else(Refusal::no_such_path)?;
        let body = body(asked)?;
        let wrong = self.description.as_ref().map(|known| known.question(&asked.method, &path, &body));
        let wrong = wrong.filter(|wrong| !wrong.is_empty() && is_write);
        wrong.map_or(Ok(()), |wrong| Err(Refusal::all_invalid(&wrong)))?;
        self.see_all(&path).await;
        let mut state = self.state();
        self.let_strangers_in(asked, &path, &body, &mut state);
        let before = is_write.then(|| state.clone());
        let reply = self.route(asked, &path, &body, &mut state);
        match before {
            Some(before) if reply.is_err() || !self.save(&state) => {
                *state = before;
                reply.and(Err(Refusal::new(503, "service_error", "the project cannot be kept")))
            }
            _ => {
                course::set_off(self, &mut state);
                reply
            }
        }
    }

    fn route(
        &self,
        asked: &Asked,
        path: &[String],
        body: &Map<String, Json>,
        state: &mut State,
    ) -> call::Reply {
        let query: Query = asked.query();
        let HetznerSettings { faults, action_time: takes, server_limit, .. } = &self.settings;
        let (takes, server_limit) = (*takes, *server_limit);
        let call = Call { asked, query: &query, body: Body(body), faults, takes, server_limit };
        routes::route(&call, path, state)
    }

    /// Whether this question may be asked.
    fn admit(&self, asked: &Asked, is_write: bool) -> Result<(), Refusal> {
        let given = asked.header("authorization").and_then(|header| header.strip_prefix("Bearer "));
        let given = given.map(str::trim).unwrap_or_default();
        let is_reader = self.settings.read_only_tokens.contains(given);
        if given.is_empty() || given != self.settings.token && !is_reader {
            return Err(Refusal::new(401, "unauthorized", "unable to authenticate"));
        }
        if is_write && is_reader {
            return Err(Refusal::new(
                403,
                "token_readonly",
                "the token is only allowed to perform GET requests",
            ));
        }
        if is_write && self.settings.faults.strike(Fault::NoPrivilege, asked) {
            return Err(Refusal::new(403, "forbidden", "insufficient permissions for this request"));
        }
        Ok(())
    }

    /// Looks at the machines, before something is said about them.
    async fn see_all(&self, path: &[String]) {
        let is_about = |name: &str| ["servers", "primary_ips", "volumes"].contains(&name);
        if path.first().is_some_and(|name| is_about(name)) {
            let ids: Vec<u64> = self.state().servers.keys().copied().collect();
            for id in ids {
                self.see(id).await;
            }
        }
    }

    fn let_strangers_in(&self, asked: &Asked, path: &[String], body: &Map<String, Json>, state: &mut State) {
        let name = body.get("name").and_then(Json::as_str);
        let is_create = asked.method == "POST" && path == ["servers"];
        if let Some(name) =
            name.filter(|_| is_create && self.settings.faults.strike(Fault::StrangerTakesId, asked))
        {
            servers::stranger(state, name);
        }
    }

    /// The answer, if the description allows it; an error that says what it does not allow otherwise.
    fn checked(&self, asked: &Asked, answer: Answer) -> Answer {
        let Some((known, path)) = self.description.as_ref().zip(path(asked)) else { return answer };
        let wrong = known.answer(&asked.method, &path, answer.status, &answer.body);
        if wrong.is_empty() {
            return answer;
        }
        let why: Vec<String> = wrong.into_iter().map(|(field, why)| format!("`{field}` {why}")).collect();
        Refusal::new(500, "server_error", format!("the lab answers wrongly: {}", why.join(", "))).answer()
    }
}

/// The parts of a path behind the version.
fn path(asked: &Asked) -> Option<Vec<String>> {
    let mut parts = asked.segments().into_iter();
    (parts.next()? == "v1").then(|| parts.collect())
}

fn body(asked: &Asked) -> Result<Map<String, Json>, Refusal> {
    if asked.method == "GET" || asked.body.iter().all(u8::is_ascii_whitespace) {
        return Ok(Map::new());
    }
    match serde_json::from_slice(&asked.body) {
        Ok(Json::Object(body)) => Ok(body),
        Ok(Json::Null) => Ok(Map::new()),
        Ok(_) | Err(_) => Err(Refusal::new(400, "json_error", "the body is no JSON object")),
    }
}
