//! Secrets from the sops files of a site to the memory of a node, over whole lives: where they come to be, where they never
//! do, and who can open what.

mod children;
mod delivery;
mod identity;
pub(crate) mod needles;
mod neighbours;
pub(crate) mod places;
mod poison;
mod preflight;
mod readers;
pub(crate) mod scene;
pub(crate) mod watch;

use crate::common::Need;

/// Nodes are looked into from outside, and spoken to over SSH.
const NEEDS: [Need; 2] = [Need::Root, Need::Ssh];

const CREATE: &str = "create -M lab -H father --json";
const CONFIG: &str = "config -M lab -H father --json";
const STATUS: &str = "status -M lab -H father --json";
const DESTROY: &str = "destroy -M lab -H father --yes --json";
