//! What the API answers, as far as it matters here. What is new in it is passed over: neither a field nor a word that nobody
//! here knows keeps the rest from being read.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value as Json;

use super::decode::or_default;
use super::trouble::{CallError, short};

/// Why the API said no.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Failure {
    #[serde(default, deserialize_with = "or_default")]
    pub(super) code: String,
    #[serde(default, deserialize_with = "or_default")]
    pub(super) message: String,
}

impl Failure {
    /// Reads it; what is none says nothing.
    pub(super) fn read(body: &[u8]) -> Self {
        let answer: Json = serde_json::from_slice(body).unwrap_or_default();
        answer.get("error").and_then(|error| Self::deserialize(error).ok()).unwrap_or_default()
    }
}

/// Something that takes its time.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Action {
    pub(super) id: u64,
    #[serde(default, deserialize_with = "or_default")]
    pub(super) command: String,
    #[serde(default, deserialize_with = "or_default")]
    pub(super) status: String,
    #[serde(default, deserialize_with = "or_default")]
    pub(super) error: Option<Json>,
}

impl Action {
    /// How it ended, if it did.
    pub(super) fn end(&self) -> Option<Result<(), CallError>> {
        match self.status.as_str() {
            "success" => Some(Ok(())),
            "error" => {
                let error = self.error.as_ref().and_then(|error| Failure::deserialize(error).ok());
                let Failure { code, message } = error.unwrap_or_default();
                let command = short(&self.command);
                Some(Err(CallError::Action { command, code: short(&code), message: short(&message) }))
            }
            _ => None,
        }
    }
}

/// An answer with an action in it.
#[derive(Debug, Deserialize)]
pub(super) struct Begun {
    pub(super) action: Action,
}

/// A server that is being made.
#[derive(Debug, Deserialize)]
pub(super) struct Made {
    pub(super) server: Server,
    pub(super) action: Action,
    #[serde(default, deserialize_with = "or_default")]
    pub(super) next_actions: Vec<Action>,
}

/// An answer with one server in it.
#[derive(Debug, Deserialize)]
pub(super) struct OneServer {
    pub(super) server: Server,
}

/// Labels, by their names.
pub(super) type Labels = BTreeMap<String, String>;

/// A server.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Server {
    pub(super) id: u64,
    pub(super) name: String,
    #[serde(default, deserialize_with = "or_default")]
    pub(super) status: String,
    #[serde(default, deserialize_with = "or_default")]
    pub(super) labels: Labels,
    #[serde(rename = "server_type")]
    pub(super) kind: ServerType,
    /// In GB; what it has, whatever its type would have.
    #[serde(default, rename = "primary_disk_size", deserialize_with = "or_default")]
    pub(super) disk: f64,
    #[serde(default, deserialize_with = "or_default")]
    pub(super) public_net: PublicNet,
    #[serde(default, deserialize_with = "or_default")]
    pub(super) private_net: Vec<PrivateNet>,
    #[serde(default, deserialize_with = "or_default")]
    pub(super) protection: Protection,
    #[serde(default, deserialize_with = "or_default")]
    pub(super) placement_group: Option<Thing>,
}

/// A size that is sold.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct ServerType {
    pub(super) name: String,
    pub(super) cores: u32,
    /// In GB, and not always a whole number of them.
    pub(super) memory: f64,
    /// In GB.
    pub(super) disk: f64,
    #[serde(default, deserialize_with = "or_default")]
    pub(super) architecture: String,
    #[serde(default, deserialize_with = "or_default")]
    pub(super) deprecation: Option<Json>,
    #[serde(default, deserialize_with = "or_default")]
    pub(super) locations: Vec<Offer>,
    #[serde(default, deserialize_with = "or_default")]
    pub(super) prices: Vec<Price>,
}

/// Where a type can be had.
#[derive(Debug, Clone, Default, Deserialize)]
pub(super) struct Offer {
    #[serde(default, deserialize_with = "or_default")]
    pub(super) name: String,
    #[serde(default, deserialize_with = "or_default")]
    pub(super) deprecation: Option<Json>,
}

/// What a thing costs at a location.
#[derive(Debug, Clone, Default, Deserialize)]
pub(super) struct Price {
    #[serde(default, deserialize_with = "or_default")]
    pub(super) location: String,
    #[serde(default, rename = "price_hourly", deserialize_with = "or_default")]
    pub(super) hourly: Amount,
    #[serde(default, rename = "price_monthly", deserialize_with = "or_default")]
    pub(super) monthly: Amount,
}

/// An amount of money, as the API writes it.
#[derive(Debug, Clone, Default, Deserialize)]
pub(super) struct Amount {
    #[serde(default, deserialize_with = "or_default")]
    pub(super) net: String,
    #[serde(default, deserialize_with = "or_default")]
    pub(super) gross: String,
}

#[derive(Debug, Clone, Default, Deserialize)]
pub(super) struct PublicNet {
    #[serde(default, deserialize_with = "or_default")]
    pub(super) ipv4: Option<Address>,
}

#[derive(Debug, Clone, Default, Deserialize)]
pub(super) struct Address {
    #[serde(default, deserialize_with = "or_default")]
    pub(super) ip: String,
}

#[derive(Debug, Clone, Default, Deserialize)]
pub(super) struct PrivateNet {
    #[serde(default, deserialize_with = "or_default")]
    pub(super) ip: String,
}

#[derive(Debug, Clone, Default, Deserialize)]
pub(super) struct Protection {
    #[serde(default, deserialize_with = "or_default")]
    pub(super) delete: bool,
}

/// Anything that has an id; what else it has depends on what it is.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Thing {
    pub(super) id: u64,
    #[serde(default, deserialize_with = "or_default")]
    pub(super) name: String,
    #[serde(default, deserialize_with = "or_default")]
    pub(super) description: String,
    #[serde(default, deserialize_with = "or_default")]
    pub(super) labels: Labels,
    #[serde(default, deserialize_with = "or_default")]
    pub(super) public_key: String,
    #[serde(default, deserialize_with = "or_default")]
    pub(super) ip_range: String,
    #[serde(default, deserialize_with = "or_default")]
    pub(super) subnets: Vec<Subnet>,
    #[serde(default, deserialize_with = "or_default")]
    pub(super) rules: Vec<Json>,
    /// Ids of servers, where the thing is a group of them.
    #[serde(default, deserialize_with = "or_default")]
    pub(super) servers: Vec<Json>,
    #[serde(default, deserialize_with = "or_default")]
    pub(super) network_zone: String,
    #[serde(default, deserialize_with = "or_default")]
    pub(super) architecture: String,
}

#[derive(Debug, Clone, Default, Deserialize)]
pub(super) struct Subnet {
    #[serde(default, deserialize_with = "or_default")]
    pub(super) ip_range: String,
    #[serde(default, deserialize_with = "or_default")]
    pub(super) network_zone: String,
}

/// What things cost.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Pricing {
    #[serde(default, deserialize_with = "or_default")]
    pub(super) currency: String,
    #[serde(default, deserialize_with = "or_default")]
    pub(super) server_types: Vec<Priced>,
    #[serde(default, deserialize_with = "or_default")]
    pub(super) primary_ips: Vec<Priced>,
}

/// A kind of thing that costs something.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Priced {
    #[serde(default, deserialize_with = "or_default")]
    pub(super) name: String,
    #[serde(default, rename = "type", deserialize_with = "or_default")]
    pub(super) kind: String,
    #[serde(default, deserialize_with = "or_default")]
    pub(super) prices: Vec<Price>,
}
