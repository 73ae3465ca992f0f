//! What can be written down of a run, one line each.

use jiff::Timestamp;
use orch_model::Identity;
use orch_plan::Plan;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::RunId;
use crate::leaks::Left;

/// What a step leaves behind for later ones and for the report.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepValue {
    /// Something worth telling though the step succeeded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// One thing that was written down.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Entry {
    /// The run began.
    Begun {
        /// When.
        at: Timestamp,
        /// Its name.
        run: RunId,
        /// Its process.
        pid: u32,
        /// When that process started, in the kernel's ticks.
        started: u64,
        /// What is to be done.
        plan: Box<Plan>,
    },
    /// A machine is about to be made under this mark.
    Marked {
        /// When.
        at: Timestamp,
        /// The node.
        node: Identity,
        /// The mark.
        uuid: Uuid,
    },
    /// A step is about to be tried, or has ended.
    Step {
        /// When.
        at: Timestamp,
        /// What happened.
        entry: orch_dag::Entry<StepValue>,
    },
    /// What to try, after a step of this node did not succeed.
    Advice {
        /// When.
        at: Timestamp,
        /// The node.
        node: Identity,
        /// What to try.
        hint: String,
        /// The last lines of what tells more.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        evidence: Vec<String>,
    },
    /// Somebody asked the run to stop.
    Interrupted {
        /// When.
        at: Timestamp,
        /// Whether running steps were cut off.
        cancelled: bool,
    },
    /// These nodes are the run's alone from now on, until it gives them back or stops to ask for them.
    Leased {
        /// When.
        at: Timestamp,
        /// By what they know the run.
        claim: String,
        /// The nodes.
        nodes: Vec<Identity>,
    },
    /// Nodes were given back.
    Released {
        /// When.
        at: Timestamp,
        /// Those that could not be told so; they are free again when the run's time on them is over.
        untold: Vec<Identity>,
    },
    /// A gate between two batches was come to.
    Gate {
        /// When.
        at: Timestamp,
        /// The batch before it, counted from 1.
        batch: usize,
        /// Nodes of the batch that were done, and are not as they should be now.
        ill: Vec<Ill>,
    },
    /// Somebody asked the run to begin nothing new for now.
    Paused {
        /// When.
        at: Timestamp,
        /// Who.
        by: String,
    },
    /// Somebody asked it to go on.
    Resumed {
        /// When.
        at: Timestamp,
        /// Who.
        by: String,
    },
    /// The run was asked to end early, other than by a signal.
    Aborted {
        /// When.
        at: Timestamp,
        /// By whom, or why.
        why: String,
    },
    /// A node is about to be taken back to the system before.
    Returning {
        /// When.
        at: Timestamp,
        /// The node.
        node: Identity,
    },
    /// A node runs the system before, as was read back, or does not.
    Returned {
        /// When.
        at: Timestamp,
        /// The node.
        node: Identity,
        /// What it was read to run, where it could be read.
        running: Option<String>,
        /// Why it is not back, if it is not.
        error: Option<String>,
    },
    /// What was found after everything was taken down.
    LookedOver {
        /// When.
        at: Timestamp,
        /// What is left.
        left: Left,
    },
    /// What this run made is about to be taken down again.
    RollingBack {
        /// When.
        at: Timestamp,
        /// The node.
        node: Identity,
        /// The mark of its machine.
        uuid: Uuid,
    },
    /// What this run made is gone, as was read back, or is not.
    RolledBack {
        /// When.
        at: Timestamp,
        /// The node.
        node: Identity,
        /// Why it is still there, if it is.
        error: Option<String>,
    },
    /// The run ended, and everything before this line is all of it.
    Finished {
        /// When.
        at: Timestamp,
    },
}

/// A node that was done, and is not as it should be when it is looked at again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ill {
    /// The node.
    pub node: Identity,
    /// What is wrong.
    pub why: String,
}
