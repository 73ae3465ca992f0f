//! What a configuration can ask for and this program does not do yet. It is said, and never passed over in silence.

use orch_model::Config;
use orch_model::config::Network;

use super::{Look, Resource};
use crate::error::ApplyError;
use crate::node::Node;

/// Where this exists, the node is one whose children live inside it.
const HOSTS_CHILDREN: &str = "/run/orch/hosts-children";

/// Something that is not done yet.
struct Absent {
    kind: &'static str,
    name: String,
    answer: Answer,
}

enum Answer {
    /// Nobody is misled when the rest is called complete.
    Skipped(&'static str),
    /// It is had where children live inside, and not done elsewhere.
    Hypervisor,
}

/// Everything of that kind that a configuration asks for.
pub(super) fn all(config: &Config) -> Vec<Box<dyn Resource>> {
    let role = &config.role;
    let mut all = Vec::new();
    let mut add = |kind, name: &str, answer| {
        all.push(Box::new(Absent { kind, name: name.into(), answer }) as Box<dyn Resource>);
    };
    if let Some(hypervisor) = &role.hypervisor {
        add("hypervisor", hypervisor.as_str(), Answer::Hypervisor);
    }
    if let Network::Static { ip, .. } = &role.network {
        let why = "the address of a node is set where it is made, not by its configuration yet";
        add("network", &ip.to_string(), Answer::Skipped(why));
    }
    all
}

/// The system of a NixOS node whose configuration names none: nobody here can say what it would be.
pub(super) fn system() -> Box<dyn Resource> {
    let why = "the configuration names no system; `orch rollout` evaluates one and brings it";
    Box::new(Absent { kind: "nixos", name: "system".into(), answer: Answer::Skipped(why) })
}

impl Resource for Absent {
    fn kind(&self) -> &'static str {
        self.kind
    }

    fn name(&self) -> String {
        self.name.clone()
    }

    fn look(&self, node: &Node) -> Result<Look, ApplyError> {
        match self.answer {
            Answer::Skipped(why) => Ok(Look::skip(why)),
            // Its children live inside.
            Answer::Hypervisor if node.has(HOSTS_CHILDREN) => Ok(Look::AsWanted),
            Answer::Hypervisor => Ok(Look::skip("installing a hypervisor is not part of a push yet")),
        }
    }

    fn change(&self, _node: &Node) -> Result<(), ApplyError> {
        Err(ApplyError::Impossible("this is not done yet".into()))
    }
}
