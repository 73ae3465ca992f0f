//! What a site says, and what it means.
//!
//! Text goes in, a [`Fleet`] comes out: [`parse`] turns the files of a site into a [`Catalog`] in which every
//! reference is known to hold, and [`resolve`] turns a catalog and a request into a fleet in which every node has
//! its place, size, mode and configuration. Every problem of every file is told at once.
//!
//! The crate is `no_std`: it cannot reach a file, an environment variable, a clock or a network, so the same text
//! always means the same fleet.

#![no_std]

extern crate alloc;

mod applied;
mod catalog;
mod check;
pub mod config;
mod decode;
mod delivery;
mod digest;
mod files;
mod fleet;
mod graph;
mod identity;
mod nearest;
mod node_record;
mod printable;
mod problem;
pub mod pull;
mod resolve;
mod schema;
mod source;
pub mod system;
mod text;
pub mod token;
mod unit;
mod value;
mod word;

pub use applied::{ApplyReport, ApplyStatus, HealthReport, Inspection, ResourceReport};
pub use catalog::{Catalog, Mention, Outline, Scope, outline, parse};
pub use config::Config;
pub use delivery::{Delivery, Lacking, NodeKeys, Parcel};
pub use digest::Digest;
pub use files::{
    Health, Hypervisor, Install, Mode, NodeKind, OnError, Pattern, ProviderKind, Rollout, RootLogin, Trigger,
    VmidRange, YesNo,
};
pub use fleet::{Fleet, Hetzner, Host, HostSsh, Node, Provider, Proxmox, Settings, Size, Timeouts, Trust};
pub use graph::{Edge, EdgeKind, Graph, GraphNode};
pub use identity::Identity;
pub use node_record::{Alarm, Fetched, NodeRecord, Refused, Reported};
pub use printable::printable;
pub use problem::{Excerpt, Position, Problem, Problems, Severity};
pub use resolve::{HostRequest, Request, Survey, resolve, resolve_hosts, survey};
pub use schema::schemas;
pub use source::{FileKind, Format, MAX_FILE_BYTES, Place, Source, Sources};
pub use unit::{Cidr, SecretRef, Timespan};
pub use value::yaml_value;
pub use word::{
    AgeRecipient, Domain, FileMode, Fingerprint, HostName, KeyName, ManifestName, NodeName, NodePath,
    Package, PostureName, PresetName, PublicKey, SecretDigest, SiteName, SpecName, StorePath, Tag, TimeZone,
    Unit, Url, UserName,
};
