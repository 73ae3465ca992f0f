//! What is said of a plan before anything is touched.

use std::fmt;

use orch_model::{HostName, NodeName};
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
}

impl Wanted {
    /// The machines that a plan makes on a host.
    pub(crate) fn on(host: &HostName, plan: &Plan) -> Vec<Self> {
        let on_host = plan.nodes.iter().filter(|node| node.identity.host == *host);
        let made = on_host.flat_map(|node| node.up.iter().map(move |action| (node, action)));
        let made = made.filter_map(|(node, action)| match action {
            Action::Create { machine } | Action::Adopt { machine, .. } => {
                Some(Self { node: node.name().clone(), machine: machine.clone() })
            }
            _ => None,
        });
        made.collect()
    }
}
