//! One question on its way through a project: what it asks, what it begins, and what is the same for every kind of thing.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value as Json, json};

use super::body::{Body, needed};
use super::effect::Effect;
use super::list::Query;
use super::refusal::Refusal;
use super::state::{Action, Course, Kind, Meta, State, Status};
use super::{firewalls, groups, images, ips, keys, networks, orders, servers, view, volumes};
use crate::exchange::Asked;
use crate::faults::{Fault, Faults};

/// A status, and a body where there is one.
pub(super) type Reply = Result<(u16, Json), Refusal>;

/// One question.
pub(super) struct Call<'a> {
    pub(super) asked: &'a Asked,
    pub(super) query: &'a Query,
    pub(super) body: Body<'a>,
    pub(super) faults: &'a Faults,
    pub(super) takes: Duration,
    pub(super) server_limit: usize,
}

impl Call<'_> {
    pub(super) fn strikes(&self, fault: Fault) -> bool {
        self.faults.strike(fault, self.asked)
    }

    /// Whether there is nothing left in a location.
    pub(super) fn is_out_of_stock(&self, location: &str) -> bool {
        let path = format!("{}?location={location}", self.asked.path);
        self.faults.strike(Fault::OutOfStock, &Asked { path, ..self.asked.clone() })
    }

    /// Begins an action that a fault can meet.
    pub(super) fn begin(
        &self,
        state: &mut State,
        command: &str,
        subject: (Kind, u64),
        others: &[(Kind, u64)],
        effect: Effect,
    ) -> u64 {
        let meanwhile = effect.status_meanwhile();
        let effect = if self.strikes(Fault::TaskFails) {
            Effect::Fail
        } else if self.strikes(Fault::TaskNeverEnds) {
            Effect::Never
        } else {
            effect
        };
        let id = note(state, command, subject, others, effect, None);
        let before = meanwhile.and_then(|status| stand(state, subject, status));
        if let Some(action) = state.actions.get_mut(&id) {
            action.before = before;
        }
        state.fresh.push(id);
        id
    }

    pub(super) fn action(&self, state: &State, id: u64) -> Json {
        state.actions.get(&id).map_or(Json::Null, |action| view::action(id, action, self.takes))
    }

    /// The answer to an order: its action.
    pub(super) fn ordered(&self, state: &State, id: u64) -> (u16, Json) {
        (201, json!({"action": self.action(state, id)}))
    }

    /// What a new thing has, its name not yet checked.
    pub(super) fn meta(&self, name: &str) -> Result<Meta, Refusal> {
        let labels = self.body.labels()?.unwrap_or_default();
        Ok(Meta { name: name.to_owned(), labels, created: Timestamp::now(), is_protected: false })
    }

    /// What a new thing has that needs a name which nothing else of its kind has.
    pub(super) fn named_meta(&self, state: &mut State, kind: Kind) -> Result<Meta, Refusal> {
        let name = needed(self.body.text("name")?, "name")?;
        check_name(kind, name)?;
        if state.is_taken(kind, name, None) {
            return Err(Refusal::taken(kind.name(), "name"));
        }
        self.meta(name)
    }

    pub(super) fn create(&self, state: &mut State, kind: Kind) -> Reply {
        if self.strikes(Fault::Quota) {
            return Err(Refusal::limit(kind.name()));
        }
        match kind {
            Kind::Server => servers::create(self, state),
            Kind::SshKey => keys::create(self, state),
            Kind::Network => networks::create(self, state),
            Kind::Firewall => firewalls::create(self, state),
            Kind::PlacementGroup => groups::create(self, state),
            Kind::Volume => volumes::create(self, state),
            Kind::PrimaryIp => ips::create(self, state),
            Kind::Image => Err(Refusal::no_such_path()),
        }
    }

    pub(super) fn update(&self, state: &mut State, kind: Kind, id: u64) -> Reply {
        let labels = self.body.labels()?;
        let name = self.body.text("name")?.filter(|_| kind != Kind::Image);
        if let Some(name) = name {
            check_name(kind, name)?;
            if state.is_taken(kind, name, Some(id)) {
                return Err(Refusal::taken(kind.name(), "name"));
            }
        }
        let meta = state.meta(kind, id).ok_or_else(|| Refusal::absent(kind.name(), id))?;
        if let Some(name) = name {
            name.clone_into(&mut meta.name);
        }
        if let Some(labels) = labels {
            meta.labels = labels;
        }
        match kind {
            Kind::Image => images::update(self, state, id)?,
            Kind::Network => networks::update(self, state, id)?,
            Kind::PrimaryIp => ips::update(self, state, id)?,
            _ => {}
        }
        Ok((200, json!({kind.name(): view::one(state, kind, id)})))
    }

    pub(super) fn delete(&self, state: &mut State, kind: Kind, id: u64) -> Reply {
        let meta = state.meta(kind, id).ok_or_else(|| Refusal::absent(kind.name(), id))?;
        if meta.is_protected {
            return Err(Refusal::protected(kind.name(), "deletion"));
        }
        if state.is_locked(kind, id, true) {
            return Err(Refusal::locked(kind.name()));
        }
        match kind {
            Kind::Server => return Ok(orders::delete(self, state, id)),
            Kind::SshKey => drop(state.keys.remove(&id)),
            Kind::Image => drop(state.images.remove(&id)),
            Kind::Network => networks::delete(state, id),
            Kind::Firewall => firewalls::delete(state, id)?,
            Kind::PlacementGroup => groups::delete(state, id)?,
            Kind::Volume => volumes::delete(state, id)?,
            Kind::PrimaryIp => ips::delete(state, id)?,
        }
        Ok((204, Json::Null))
    }

    pub(super) fn order(&self, state: &mut State, kind: Kind, id: u64, command: &str) -> Reply {
        if state.meta(kind, id).is_none() {
            return Err(Refusal::absent(kind.name(), id));
        }
        if state.is_locked(kind, id, false) {
            return Err(Refusal::locked(kind.name()));
        }
        match (kind, command) {
            (Kind::Server, _) => orders::order(self, state, id, command),
            (Kind::Network | Kind::Image | Kind::Volume | Kind::PrimaryIp, "change_protection") => {
                let effect = Effect::Protect(self.body.flag("delete")?, None);
                let action = self.begin(state, command, (kind, id), &[], effect);
                Ok(self.ordered(state, action))
            }
            (Kind::Network, _) => networks::order(self, state, id, command),
            (Kind::Firewall, _) => firewalls::order(self, state, id, command),
            (Kind::Volume, _) => volumes::order(self, state, id, command),
            (Kind::PrimaryIp, "assign" | "unassign" | "change_dns_ptr") => Err(Refusal::unsupported()),
            _ => Err(Refusal::no_such_path()),
        }
    }
}

/// Writes down an action that begins when another one has succeeded; if that one never ends, neither does this.
pub(super) fn follow(
    state: &mut State,
    after: u64,
    command: &str,
    subject: (Kind, u64),
    others: &[(Kind, u64)],
    effect: Effect,
) -> u64 {
    let is_stuck = state.actions.get(&after).is_some_and(|action| action.effect == Effect::Never);
    note(state, command, subject, others, if is_stuck { Effect::Never } else { effect }, Some(after))
}

fn note(
    state: &mut State,
    command: &str,
    subject: (Kind, u64),
    others: &[(Kind, u64)],
    effect: Effect,
    after: Option<u64>,
) -> u64 {
    let id = state.next_id();
    let (command, others, started) = (command.to_owned(), others.to_vec(), Timestamp::now());
    let course = Course::Running;
    let action =
        Action { command, subject, others, course, started, finished: None, effect, after, before: None };
    state.actions.insert(id, action);
    id
}

/// Says of a server what it is about now, and returns what was said before.
pub(super) fn stand(state: &mut State, (kind, id): (Kind, u64), status: Status) -> Option<Status> {
    let server = state.servers.get_mut(&id).filter(|_| kind == Kind::Server)?;
    server.revision += 1;
    Some(std::mem::replace(&mut server.status, status))
}

fn check_name(kind: Kind, name: &str) -> Result<(), Refusal> {
    let is_host = |part: &str| {
        !part.is_empty()
            && part.len() <= 63
            && !part.starts_with('-')
            && !part.ends_with('-')
            && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    };
    let is_fine = match kind {
        Kind::Server => name.len() <= 253 && name.split('.').all(is_host),
        _ => !name.trim().is_empty() && name.len() <= 128 && !name.contains(char::is_control),
    };
    is_fine.then_some(()).ok_or_else(|| Refusal::invalid("name", "is no valid name"))
}
