//! Proxmox VE 9: its API over machines of the lab, as a real one was seen to behave.
//!
//! A call is taken apart (`params`), its caller found out (`access`), its parameters checked (`schema`), and then it is one
//! function (`routes`) over the whole state (`state`). What takes time is a task (`lab`), with the locks of the real one.

#![allow(clippy::unnecessary_wraps, reason = "calls have one type, those too that are never refused")]

mod access;
mod agent;
mod call;
mod card;
mod clone;
mod cloud_init;
mod cluster;
mod config;
mod content;
mod create;
mod destroy;
mod drive;
mod formats;
mod guest;
mod iso;
mod lab;
mod node;
mod params;
mod permissions;
mod pools;
mod power;
mod reply;
mod resize;
mod roles;
mod routes;
mod schema;
mod settings;
mod snapshot;
mod state;
mod status;
mod table;
mod tasks;
mod upload;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use async_trait::async_trait;
use thiserror::Error;
use tokio::sync::OwnedRwLockWriteGuard;

pub use settings::{ProxmoxSettings, ProxmoxStorage, ProxmoxTemplate, ProxmoxTimings, ProxmoxToken};

use crate::exchange::{Answer, Api, Asked};
use crate::faults::Fault;
use access::Caller;
use call::Call;
use guest::Kind;
use lab::Lab;
use params::Params;
use reply::{Outcome, Refusal};
use routes::Route;
use schema::Schema;
use state::State;

/// A Proxmox VE could not be begun.
#[derive(Debug, Error)]
pub enum ProxmoxError {
    /// What it remembers cannot be read.
    #[error("what the Proxmox VE of node `{0}` remembers cannot be read")]
    State(String, #[source] std::io::Error),
    /// The description of the API cannot be read.
    #[error("`{0}` cannot be read as the description of an API")]
    Description(PathBuf, #[source] std::io::Error),
}

/// One Proxmox VE. Its tasks run on the runtime in which it is asked.
pub struct Proxmox {
    lab: Arc<Lab>,
}

impl Proxmox {
    /// Begins one, where it was left or anew.
    pub fn new(settings: ProxmoxSettings) -> Result<Self, ProxmoxError> {
        let schema = match &settings.description {
            Some(path) => {
                Schema::read(path).map_err(|error| ProxmoxError::Description(path.clone(), error))?
            }
            None => Schema::small(),
        };
        let state =
            State::load(&settings).map_err(|error| ProxmoxError::State(settings.node.clone(), error))?;
        Ok(Self { lab: Arc::new(Lab::new(settings, schema, state)) })
    }

    async fn call(&self, asked: Asked) -> Outcome {
        let segments = asked.segments();
        let path = match segments.as_slice() {
            [api, format, rest @ ..] if api == "api2" && format == "json" => rest,
            _ => return Err(Refusal::no_such_method(&asked.method, &asked.path)),
        };
        let route = Route::find(&asked.method, path);
        let who = match &route {
            Some((route, _)) if route.is_open() => Caller::default(),
            _ => access::identify(&self.lab.settings, &self.lab.state(), &asked)?,
        };
        self.check_cluster(&asked.method, path).await?;
        let shown = format!("/{}", path.join("/"));
        let (route, places) = route.ok_or_else(|| Refusal::no_such_method(&asked.method, &shown))?;
        let mut params = Params::of(&asked);
        for (name, value) in places {
            params.insert(name, &value);
        }
        self.lab.schema.check(&asked.method, route.path, &params)?;
        let address = self.look(route, &params).await;
        let _held = self.hold(route, &asked, &params).await?;
        let call =
            Call { lab: Arc::clone(&self.lab), asked, who, params, address, stripped: OnceLock::new() };
        let mut state = self.lab.state();
        let outcome = (route.answer)(&call, &mut state);
        if call.asked.method != "GET" {
            self.lab.keep(&state).map_err(Refusal::died)?;
        }
        outcome
    }

    /// One node is alive. Calls to a dead one hang, calls to any other are sent on to nowhere, and beside dead ones nothing
    /// is changed.
    async fn check_cluster(&self, method: &str, path: &[String]) -> Result<(), Refusal> {
        let settings = &self.lab.settings;
        match path {
            [nodes, node, ..] if nodes == "nodes" && settings.dead_nodes.contains(node) => {
                tokio::time::sleep(settings.timings.unreachable).await;
                Err(Refusal::unreachable())
            }
            [nodes, node, ..] if nodes == "nodes" && *node != settings.node && node != "localhost" => {
                let why = format!("failed to get address info for: {node}: Name or service not known");
                Err(Refusal::died(format!("hostname lookup '{node}' failed - {why}")))
            }
            [access, ticket] if access == "access" && ticket == "ticket" => Ok(()),
            _ if method != "GET" && !settings.dead_nodes.is_empty() => {
                Err(Refusal::died("cluster not ready - no quorum?"))
            }
            _ => Ok(()),
        }
    }

    /// A configuration is changed while nobody else does anything to the machine.
    async fn hold(
        &self,
        route: &Route,
        asked: &Asked,
        params: &Params,
    ) -> Result<Option<OwnedRwLockWriteGuard<()>>, Refusal> {
        if asked.method == "GET" || !route.path.ends_with("/config") {
            return Ok(None);
        }
        let kind = if route.path.contains("/lxc/") { Kind::Lxc } else { Kind::Qemu };
        let file = kind.lock_file(params.id("vmid")?);
        if asked.method == "PUT" && self.lab.settings.faults.strike(Fault::LockTimeout, asked) {
            return Err(Refusal::died(lab::got_timeout(&file)));
        }
        self.lab.hold(&file, self.lab.settings.timings.lock).await.map(Some).map_err(Refusal::died)
    }

    /// Looks at the machines that a call is about, and asks for an address where the call will.
    async fn look(&self, route: &Route, params: &Params) -> Option<std::net::IpAddr> {
        let vmid = params.get("vmid").and_then(|vmid| vmid.parse::<u32>().ok());
        if route.is_about_guests() {
            self.lab.look_at(vmid).await;
        }
        match vmid {
            Some(vmid) if route.path.ends_with("interfaces") => {
                self.lab.settings.machines.address(&vmid.to_string()).await
            }
            _ => None,
        }
    }
}

#[async_trait]
impl Api for Proxmox {
    async fn answer(&self, asked: Asked) -> Answer {
        match self.call(asked).await {
            Ok(reply) => reply.answer(),
            Err(refusal) => {
                if refusal.is_unknown_caller() {
                    tokio::time::sleep(self.lab.settings.timings.refused).await;
                }
                refusal.answer()
            }
        }
    }
}

/// The files at the top of a disc that a machine is given: for those who feed it what is no disc.
#[doc(hidden)]
pub fn files_of_disc(image: &[u8]) -> Option<BTreeMap<String, Vec<u8>>> {
    Some(iso::Iso::read(image)?.files)
}
