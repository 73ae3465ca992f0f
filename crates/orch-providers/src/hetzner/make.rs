//! Making servers: once for each mark, whatever answers are lost on the way.

use orch_plan::{MachineRef, MachineSpec};
use orch_run::{Done, Order};
use serde_json::{Value as Json, json};
use tokio::time::{Instant, sleep};
use zeroize::Zeroizing;

use super::Hetzner;
use super::answer::{Made, Server, Thing};
use super::ensure::Ensured;
use super::settle::Settled;
use super::trouble::CallError;
use crate::api::encode;
use crate::cloud::{FirstBoot, FirstKey, Written, user_data};

/// With these codes the API says that there is no room for such a server at this place now.
const FULL: [&str; 2] = ["resource_unavailable", "placement_error"];

/// What became of a try to make a server.
enum Tried {
    /// It is being made, or was already.
    There(Box<Server>),
    /// There is no room for it at this place.
    NoRoom,
}

impl Hetzner {
    /// Makes a server and waits until it can be reached. One that bears the order's mark already is finished.
    pub(super) async fn create(&self, order: &Order, spec: &MachineSpec) -> Result<Done, CallError> {
        let until = self.deadline();
        if let Some(parent) = &spec.parent {
            return Err(CallError::Refused(super::preflight::nested(&order.identity.node, parent)));
        }
        if let Some(server) = self.there(order, until).await? {
            return self.finish(order, spec, server.id, until).await;
        }
        self.make(order, spec, until).await?;
        Ok(Done::Changed)
    }

    /// Finishes a server that an interrupted run began to make.
    pub(super) async fn adopt(
        &self,
        order: &Order,
        found: &MachineRef,
        spec: &MachineSpec,
    ) -> Result<Done, CallError> {
        self.finish(order, spec, id_of(found)?, self.deadline()).await
    }

    async fn finish(
        &self,
        order: &Order,
        spec: &MachineSpec,
        id: u64,
        until: Instant,
    ) -> Result<Done, CallError> {
        match self.settle(id, order.uuid, &order.progress, until).await? {
            Settled::Running { server, changed } => {
                self.reach(&server, &order.progress).await?;
                Ok(if changed { Done::Changed } else { Done::Unchanged })
            }
            Settled::Dead => {
                order.progress.say("removing what never came to be");
                self.remove(id, order.uuid, until).await?;
                self.make(order, spec, until).await?;
                Ok(Done::Changed)
            }
        }
    }

    /// The server that bears the order's mark. Another one for the same node was made by somebody else.
    async fn there(&self, order: &Order, until: Instant) -> Result<Option<Server>, CallError> {
        let (site, node) = (&order.site, &order.identity);
        let selector = format!("orch-site={site},orch-manifest={},orch-node={}", node.manifest, node.node);
        let found = self.selected(&format!("{selector},orch-host={}", node.host), until).await?;
        match found.iter().find(|server| server.bears(order.uuid)) {
            Some(server) => Ok(Some(server.clone())),
            None => found.first().map_or(Ok(None), |other| Err(meanwhile(other))),
        }
    }

    async fn make(&self, order: &Order, spec: &MachineSpec, until: Instant) -> Result<(), CallError> {
        let made = self.make_somewhere(order, spec, until).await;
        if made.is_err() && self.inner.setup.hetzner.spread {
            // A group that was made for it alone is of no use to anybody.
            let _ = self.tidy_groups(&order.identity.manifest, until).await;
        }
        made
    }

    /// Makes the server at the first location that has room for it.
    async fn make_somewhere(
        &self,
        order: &Order,
        spec: &MachineSpec,
        until: Instant,
    ) -> Result<(), CallError> {
        let ensured = self.ensured(&order.progress, until).await?;
        let seat = self.seat(&order.identity.manifest, until).await?;
        let group = seat.as_ref().map(|seat| seat.group);
        let mut body = self.wanted(order, spec, ensured, group, until).await?;
        let hetzner = &self.inner.setup.hetzner;
        let mut full = Vec::new();
        for location in [&hetzner.location].into_iter().chain(&hetzner.fallback_locations) {
            order.progress.say(&format!("making the server in {location}"));
            body.0["location"] = json!(location);
            match self.try_to_make(order, &body, until).await? {
                Tried::There(server) => {
                    if let Some(seat) = seat {
                        seat.take();
                    }
                    return self.reach(&server, &order.progress).await;
                }
                Tried::NoRoom => {
                    order.progress.say(&format!("there is no room in {location}"));
                    full.push(location.as_str());
                }
            }
        }
        let (kind, places) = (body.0["server_type"].as_str().unwrap_or_default(), full.join(", "));
        Err(CallError::Refused(format!(
            "there is no room for a server of type `{kind}` in {places}: try later, or name more `fallback_locations` or another type"
        )))
    }

    async fn try_to_make(&self, order: &Order, body: &Body, until: Instant) -> Result<Tried, CallError> {
        let caller = &self.inner.caller;
        let mut attempt = 0;
        loop {
            let error = match caller.post::<Made>("/servers", &body.0, until).await {
                Ok(made) => return self.made(order, made, until).await,
                Err(error) => error,
            };
            match error.code() {
                Some(code) if FULL.contains(&code) => return Ok(Tried::NoRoom),
                Some("uniqueness_error") => {}
                _ if error.may_be_done() => {}
                _ => return Err(error),
            }
            // Its answer was lost, or its name is taken: by the one whose answer was lost, or by somebody else.
            if let Some(server) = self.taken(order, body, until).await? {
                return match self.settle(server.id, order.uuid, &order.progress, until).await? {
                    Settled::Running { server, .. } => Ok(Tried::There(server)),
                    Settled::Dead => {
                        self.remove(server.id, order.uuid, until).await?;
                        Err(error)
                    }
                };
            }
            if attempt + 1 >= caller.pace.tries {
                return Err(error);
            }
            sleep(caller.pace.pause(attempt)).await;
            attempt += 1;
        }
    }

    /// Waits for a server that is being made.
    async fn made(&self, order: &Order, made: Made, until: Instant) -> Result<Tried, CallError> {
        let id = made.server.id;
        let making = made.action.id;
        order.progress.say("waiting for the server");
        if let Err(error) = self.inner.watch.ended([made.action], until).await {
            let CallError::Action { code, .. } = &error else { return Err(error) };
            // What it left is no server, and nobody's but this order's. If it stays, whoever comes next finds it.
            let removed = self.remove(id, order.uuid, until).await;
            let is_full = FULL.contains(&code.as_str());
            return if is_full && removed.is_ok() { Ok(Tried::NoRoom) } else { Err(error) };
        }
        let next = made.next_actions.into_iter().filter(|action| action.id != making);
        self.inner.watch.ended(next, until).await?;
        match self.settle(id, order.uuid, &order.progress, until).await? {
            Settled::Running { server, .. } => Ok(Tried::There(server)),
            Settled::Dead => Err(CallError::Late(format!("server {id} was made and does not start"))),
        }
    }

    /// Who has the name that the server was to have, if anybody: only one that bears the order's mark may.
    async fn taken(&self, order: &Order, body: &Body, until: Instant) -> Result<Option<Server>, CallError> {
        let name = body.0["name"].as_str().unwrap_or_default();
        let Some(server) = self.named(name, until).await? else { return self.there(order, until).await };
        match server.written() {
            Some(written) if written.marks.uuid == order.uuid => Ok(Some(server)),
            Some(written) if written.marks.is_of(&order.site, &order.identity) => Err(meanwhile(&server)),
            _ => Err(CallError::NotOurs { machine: server.name, expected: order.uuid }),
        }
    }

    /// What the API is asked for, but for the location.
    async fn wanted(
        &self,
        order: &Order,
        spec: &MachineSpec,
        ensured: &Ensured,
        group: Option<u64>,
        until: Instant,
    ) -> Result<Body, CallError> {
        let setup = &self.inner.setup;
        let kind = self.kind_of(order)?;
        let key = FirstKey::generate();
        let mut written = Written::new(order.marks(), key.public.clone(), &spec.image);
        written.size = Some(spec.size);
        let program = setup.hetzner.node_program.as_deref();
        let enrolment = match (&order.enrolment, program) {
            (None, _) => None,
            (Some(enrolment), Some(program)) => Some((enrolment, program)),
            (Some(_), None) => {
                return Err(CallError::Refused(format!(
                    "`{}` is to fetch its configuration, and hosts/{}.yaml does not say where its image has the program for that: name it with `node_program`",
                    order.identity.node, setup.host
                )));
            }
        };
        let first = FirstBoot {
            hostname: order.identity.node.as_str(),
            user: &setup.user,
            access: &ensured.access,
            host_key: &key,
            enrolment,
        };
        let user_data = user_data(&first).map_err(|error| CallError::Refused(error.to_string()))?;
        let mut body = Body(json!({
            "name": spec.name,
            "server_type": kind,
            "image": self.image(&spec.image, until).await?,
            "ssh_keys": [ensured.key],
            "labels": written.labels(),
            "user_data": user_data.as_str(),
            "networks": ensured.networks,
            "firewalls": ensured.firewall.iter().map(|id| json!({ "firewall": id })).collect::<Vec<_>>(),
            "start_after_create": true,
        }));
        if let Some(group) = group {
            body.0["placement_group"] = json!(group);
        }
        Ok(body)
    }

    /// The server type that stands for the size of an order's node.
    pub(super) fn kind_of(&self, order: &Order) -> Result<&str, CallError> {
        let setup = &self.inner.setup;
        let node = &order.identity.node;
        let kind = setup.server_types.get(node).map(String::as_str);
        kind.ok_or_else(|| {
            let file = format!("hosts/{}.yaml", setup.host);
            CallError::Refused(format!(
                "no server type stands for the preset of `{node}`: name one in `server_types` of {file}"
            ))
        })
    }

    /// An image as it is ordered: by its id, by its name, or the newest one with a label, written as `name=value`.
    async fn image(&self, image: &str, until: Instant) -> Result<Json, CallError> {
        if let Ok(id) = image.parse::<u64>() {
            return Ok(json!(id));
        }
        if !image.contains('=') {
            return Ok(json!(image));
        }
        let query = format!("label_selector={}&status=available", encode(image));
        let found: Vec<Thing> = self.inner.caller.list("/images", "images", &query, until).await?;
        // Ids are given one after the other; times are told in seconds.
        let newest = found.iter().max_by_key(|image| image.id).ok_or_else(|| {
            CallError::Refused(format!("there is no image with the label `{image}`: make a snapshot with it"))
        })?;
        Ok(json!(newest.id))
    }

    /// When an order's time is over.
    pub(super) fn deadline(&self) -> Instant {
        Instant::now() + self.inner.caller.pace.order
    }
}

/// What the API is asked for. It holds what the server is given at its first start, and is wiped.
struct Body(Json);

impl Drop for Body {
    fn drop(&mut self) {
        if let Some(Json::String(text)) = self.0.get_mut("user_data") {
            drop(Zeroizing::new(std::mem::take(text)));
        }
    }
}

/// The API's id of a machine.
pub(super) fn id_of(machine: &MachineRef) -> Result<u64, CallError> {
    let none = |_| CallError::NotOurs { machine: machine.id.clone(), expected: machine.uuid };
    machine.id.parse().map_err(none)
}

fn meanwhile(other: &Server) -> CallError {
    let why = format!("server `{}` is this node under another mark", other.name);
    CallError::Refused(format!("{why}: another run made it meanwhile; a plan made now will see it"))
}
