//! A plan as steps that wait for each other. The runner and the report both read this, and so agree.

use std::collections::BTreeMap;

use orch_plan::{Action, NodePlan, Plan, Verb};

/// One step: an action, or the mere statement that a node is where it should be.
pub(crate) struct Step<'p> {
    /// Its name in the journal: the node's identity and the verb.
    pub(crate) name: String,
    /// What it is about.
    pub(crate) subject: Subject,
    /// What is done; nothing for a node that is as wanted or must not be touched.
    pub(crate) action: Option<&'p Action>,
    /// Steps before it, by their place.
    pub(crate) after: Vec<usize>,
}

/// What a step is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Subject {
    /// A node, by its place in the plan.
    Node(usize),
    /// The gate after a batch, by the batch's place among the batches.
    Gate(usize),
}

impl Step<'_> {
    /// The node that it is about, by its place in the plan.
    pub(crate) const fn node(&self) -> Option<usize> {
        match self.subject {
            Subject::Node(place) => Some(place),
            Subject::Gate(_) => None,
        }
    }
}

/// The steps of a plan: what comes down, from the last node to the first, then what goes up.
pub(crate) fn steps(plan: &Plan) -> Vec<Step<'_>> {
    let mut table = Table {
        steps: Vec::new(),
        down: BTreeMap::new(),
        up: BTreeMap::new(),
        names: BTreeMap::new(),
        gate: None,
        gates: 0,
    };
    let mut dependents: Vec<Vec<usize>> = vec![Vec::new(); plan.nodes.len()];
    for (place, node) in plan.nodes.iter().enumerate() {
        for need in &node.needs {
            dependents[*need].push(place);
        }
    }
    for (place, node) in plan.nodes.iter().enumerate().rev() {
        let after =
            dependents[place].iter().filter_map(|dependent| table.down.get(dependent)).copied().collect();
        let last = match plan.verb {
            Verb::Destroy => Some(table.chain_or_ready(place, node, &node.down, after)),
            Verb::Create | Verb::Config => table.chain(place, node, &node.down, after),
        };
        table.down.extend(last.map(|last| (place, last)));
    }
    if plan.verb != Verb::Destroy {
        let batches = plan.stages.as_ref().map_or(&[][..], |stages| &stages.batches);
        let behind = batches_before(batches);
        for (place, node) in plan.nodes.iter().enumerate() {
            let before = behind.get(&place).copied();
            if let Some(batch) = before.filter(|batch| table.gates <= *batch) {
                table.gate(batch, &batches[batch]);
            }
            let needs = node.needs.iter().filter_map(|need| table.up.get(need));
            let gate = table.gate.filter(|_| before.is_some());
            let after = table.down.get(&place).into_iter().chain(needs).copied().chain(gate).collect();
            let last = table.chain_or_ready(place, node, &node.up, after);
            table.up.insert(place, last);
        }
    }
    table.steps
}

/// The batch before the one that each node is in. Nodes of the first batch, and of none, wait for no gate.
fn batches_before(batches: &[Vec<usize>]) -> BTreeMap<usize, usize> {
    let later = batches.iter().skip(1).enumerate();
    later.flat_map(|(before, batch)| batch.iter().map(move |place| (*place, before))).collect()
}

struct Table<'p> {
    steps: Vec<Step<'p>>,
    /// The last step that takes each node down, and that brings it up.
    down: BTreeMap<usize, usize>,
    up: BTreeMap<usize, usize>,
    names: BTreeMap<String, usize>,
    /// The gate that was added last.
    gate: Option<usize>,
    /// How many there are.
    gates: usize,
}

impl<'p> Table<'p> {
    /// Adds actions one after the other, and gives the last one's place.
    fn chain(
        &mut self,
        place: usize,
        node: &NodePlan,
        actions: &'p [Action],
        after: Vec<usize>,
    ) -> Option<usize> {
        let mut after = after;
        let mut last = None;
        for action in actions {
            let step = self.add(place, node, Some(action), after);
            after = vec![step];
            last = Some(step);
        }
        last
    }

    /// The same, with a statement where there is no action, so that what waits for the node waits for what it needs.
    fn chain_or_ready(
        &mut self,
        place: usize,
        node: &NodePlan,
        actions: &'p [Action],
        after: Vec<usize>,
    ) -> usize {
        if actions.is_empty() {
            return self.add(place, node, None, after);
        }
        self.chain(place, node, actions, after).expect("there is an action, so there is a last one")
    }

    fn add(&mut self, place: usize, node: &NodePlan, action: Option<&'p Action>, after: Vec<usize>) -> usize {
        let verb = action.map_or("ready", Action::verb);
        let name = format!("{}/{verb}", node.identity);
        let count = self.names.entry(name.clone()).and_modify(|count| *count += 1).or_insert(1);
        let name = if *count > 1 { format!("{name}-{count}") } else { name };
        self.steps.push(Step { name, subject: Subject::Node(place), action, after });
        self.steps.len() - 1
    }

    /// Adds the gate after a batch: it waits for all of its nodes, and for the gate before.
    fn gate(&mut self, batch: usize, nodes: &[usize]) {
        let nodes = nodes.iter().filter_map(|place| self.up.get(place)).copied();
        let after = nodes.chain(self.gate).collect();
        let name = format!("batch-{}/gate", batch + 1);
        self.steps.push(Step { name, subject: Subject::Gate(batch), action: None, after });
        self.gate = Some(self.steps.len() - 1);
        self.gates += 1;
    }
}
