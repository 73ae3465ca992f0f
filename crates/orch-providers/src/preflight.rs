//! What is said of a plan before anything is touched.

use std::fmt;

use orch_model::config::Network;
use orch_model::{Config, HostName, Mode, NodeName};
use orch_plan::{Action, MachineSpec, Plan};
use serde::Serialize;

/// What is said of a plan before anything is touched.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Preflight {
    /// What stands in the way.
    pub obstacles: Vec<Obstacle>,
    /// What will be less than was asked for, though it works: a disk without a limit.
    pub caveats: Vec<String>,
    /// What machines that are made will cost.
    pub costs: Vec<Cost>,
}

impl Preflight {
    pub(crate) fn extend(&mut self, other: Self) {
        self.obstacles.extend(other.obstacles);
        self.caveats.extend(other.caveats);
        self.costs.extend(other.costs);
    }
}

/// One thing that stands in the way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Obstacle {
    /// What it is.
    pub what: String,
    /// The way out.
    pub hint: String,
}

/// What machines of one kind cost, as the provider's own prices say now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Cost {
    /// The host.
    pub host: HostName,
    /// What is paid for, such as `cx22 in nbg1`.
    pub what: String,
    /// How many of them.
    pub count: usize,
    /// What all of them cost in a month, in the currency, with taxes.
    pub monthly: String,
    /// The same for an hour.
    pub hourly: String,
    /// What all of them cost in a month, without taxes.
    pub monthly_net: String,
    /// The currency.
    pub currency: String,
}

impl fmt::Display for Cost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { host, what, count, monthly, hourly, monthly_net, currency } = self;
        write!(f, "{count} x {what}: {monthly} {currency} a month ({hourly} an hour), ")?;
        if monthly_net != monthly {
            write!(f, "{monthly_net} without tax, ")?;
        }
        write!(f, "as the prices of `{host}` say now")
    }
}

/// A machine that a plan makes.
#[derive(Debug, Clone, PartialEq)]
pub struct Wanted {
    /// The node that it is to be.
    pub node: NodeName,
    /// What it is to be.
    pub machine: MachineSpec,
    /// What it becomes then, and who brings that there; nothing where it is only made.
    pub becomes: Option<(Mode, Config)>,
}

impl Wanted {
    /// The machines that a plan makes on a host.
    pub(crate) fn on(host: &HostName, plan: &Plan) -> Vec<Self> {
        let on_host = plan.nodes.iter().filter(|node| node.identity.host == *host);
        let made = on_host.flat_map(|node| node.up.iter().map(move |action| (node, action)));
        let made = made.filter_map(|(node, action)| match action {
            Action::Create { machine } | Action::Adopt { machine, .. } => {
                let becomes = node.up.iter().find_map(|action| match action {
                    Action::Configure { mode, config, .. } => Some((*mode, config.clone())),
                    _ => None,
                });
                Some(Self { node: node.name().clone(), machine: machine.clone(), becomes })
            }
            _ => None,
        });
        made.collect()
    }

    /// What stands in the way on any host elsewhere: a node that is to fetch its configuration needs the program for that in its
    /// image, and addresses are given out by whoever runs the network.
    pub(crate) fn stands_elsewhere(&self, host: &HostName, node_program: Option<&str>) -> Vec<Obstacle> {
        let Some((mode, config)) = &self.becomes else { return Vec::new() };
        let node = &self.node;
        let mut obstacles = Vec::new();
        if *mode != Mode::Push && node_program.is_none() {
            obstacles.push(Obstacle {
                what: format!(
                    "node `{node}` is to fetch its configuration, and nothing says where images of `{host}` have the program for that"
                ),
                hint: format!("name it as `node_program` in hosts/{host}.yaml, or use `--mode push`"),
            });
        }
        if matches!(config.role.network, Network::Static { .. }) {
            obstacles.push(Obstacle {
                what: format!("node `{node}` is to have a fixed address, which machines of `{host}` cannot be given"),
                hint: "leave `network` out of its spec, and have the DHCP server of that network give it the address".into(),
            });
        }
        obstacles
    }
}
