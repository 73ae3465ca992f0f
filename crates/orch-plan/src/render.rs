//! A plan in words that a person can review.

use alloc::string::String;
use core::fmt::{self, Display, Formatter};

use orch_model::{Size, printable};

use crate::action::{Action, MachineSpec};
use crate::plan::{NodePlan, Plan, Verdict};
use crate::staging::Stages;

/// `+ create`, `~ change`, `- destroy`, `= unchanged`, each with the why; then the counts and the digest.
impl Display for Plan {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} on ", self.verb, self.manifest)?;
        for (index, host) in self.hosts.iter().enumerate() {
            write!(f, "{}{host}", if index > 0 { ", " } else { "" })?;
        }
        writeln!(f, " (site {})\n", self.site)?;
        let names = self.nodes.iter().map(|node| node.name().as_str());
        let names = names.chain(self.leftovers.iter().map(|leftover| leftover.identity.node.as_str()));
        let width = names.map(str::len).max().unwrap_or(0);
        let several_hosts = self.hosts.len() > 1;
        for node in &self.nodes {
            write_node(f, node, width, several_hosts)?;
        }
        for leftover in &self.leftovers {
            let node = leftover.identity.node.as_str();
            write!(f, "  ? left over     {node:width$}  `{}` ", printable(&leftover.machine.name))?;
            if self.nodes.iter().any(|other| other.name().as_str() == node) {
                writeln!(f, "stayed on {} when the node moved", leftover.identity.host)?;
            } else {
                writeln!(f, "is no longer described; `destroy --only {node}` removes it")?;
            }
        }
        if let Some(stages) = &self.stages {
            write_stages(f, self, stages)?;
        }
        write_counts(f, self)?;
        write!(f, "plan {}", self.digest.short())
    }
}

fn write_node(f: &mut Formatter<'_>, node: &NodePlan, width: usize, several_hosts: bool) -> fmt::Result {
    let (symbol, word) = match node.verdict {
        Verdict::Create => ('+', "create"),
        Verdict::Change => ('~', "change"),
        Verdict::Replace => ('±', "replace"),
        Verdict::Destroy => ('-', "destroy"),
        Verdict::Unchanged => ('=', "unchanged"),
        Verdict::NeedsReplace => ('!', "needs replace"),
        Verdict::Refused => ('!', "refused"),
    };
    let host = several_hosts.then(|| alloc::format!("on {}", node.identity.host));
    let mend = (node.verdict == Verdict::NeedsReplace).then_some("this needs --replace");
    let mut about = host.as_deref().into_iter().chain(node.why.iter().map(String::as_str)).chain(mend);
    let name = node.name();
    match about.next() {
        None => writeln!(f, "  {symbol} {word:13} {name}")?,
        Some(first) => {
            write!(f, "  {symbol} {word:13} {:width$}  {}", name.as_str(), printable(first))?;
            about.try_for_each(|more| write!(f, "; {}", printable(more)))?;
            writeln!(f)?;
        }
    }
    for action in node.down.iter().chain(&node.up) {
        write_action(f, action)?;
    }
    Ok(())
}

fn write_action(f: &mut Formatter<'_>, action: &Action) -> fmt::Result {
    write!(f, "      {:12}", action.verb())?;
    match action {
        Action::Create { machine } | Action::Adopt { machine, .. } => write_machine(f, machine)?,
        Action::Resize { from, to, .. } => {
            write_size(f, *from)?;
            f.write_str(" -> ")?;
            write_size(f, *to)?;
        }
        Action::Start { machine } | Action::Destroy { machine } => {
            let (name, id) = (printable(&machine.name), printable(&machine.id));
            write!(f, "`{name}` (id {id}, mark {})", machine.uuid)?;
        }
        Action::Configure { config, mode, .. } => {
            write!(f, "as {}, by {mode} ({})", config.spec, config.digest().short())?;
            if !config.role.secrets.is_empty() {
                f.write_str(", secrets")?;
            }
            for (index, secret) in config.role.secrets.iter().enumerate() {
                write!(f, "{} {}", if index > 0 { "," } else { "" }, secret.name)?;
            }
        }
    }
    writeln!(f)
}

fn write_machine(f: &mut Formatter<'_>, machine: &MachineSpec) -> fmt::Result {
    let (name, image) = (printable(&machine.name), printable(&machine.image));
    write!(f, "`{name}`: {} from {image}, ", machine.kind)?;
    write_size(f, machine.size)?;
    if let Some(vmid) = machine.vmid {
        write!(f, ", VMID {vmid}")?;
    }
    match &machine.parent {
        Some(parent) => write!(f, ", inside {parent}"),
        None => Ok(()),
    }
}

fn write_size(f: &mut Formatter<'_>, size: Size) -> fmt::Result {
    let plural = if size.cores == 1 { "" } else { "s" };
    write!(f, "{} core{plural}, {} MB, {} GB", size.cores, size.memory, size.disk)
}

fn write_stages(f: &mut Formatter<'_>, plan: &Plan, stages: &Stages) -> fmt::Result {
    let plural = if stages.batches.len() == 1 { "" } else { "es" };
    write!(f, "\nin {} batch{plural} ({})", stages.batches.len(), stages.strategy)?;
    match stages.max_fail {
        0 => write!(f, ", none may fail")?,
        several => write!(f, ", {several} may fail")?,
    }
    writeln!(f, "{}:", if stages.rollback_succeeded { ", else those before are taken back" } else { "" })?;
    for (number, batch) in (1..).zip(&stages.batches) {
        write!(f, "  {number}.")?;
        for (index, place) in batch.iter().enumerate() {
            write!(f, "{} {}", if index > 0 { "," } else { "" }, plan.nodes[*place].name())?;
        }
        writeln!(f)?;
    }
    Ok(())
}

fn write_counts(f: &mut Formatter<'_>, plan: &Plan) -> fmt::Result {
    let counts = plan.counts();
    let plural = if plan.nodes.len() == 1 { "" } else { "s" };
    write!(f, "\n{} node{plural}:", plan.nodes.len())?;
    let shown = [
        (counts.create, "to create"),
        (counts.change, "to change"),
        (counts.replace, "to replace"),
        (counts.destroy, "to destroy"),
        (counts.unchanged, "unchanged"),
        (counts.needs_replace, "in need of --replace"),
        (counts.refused, "refused"),
    ];
    let mut separator = " ";
    for (count, word) in shown.into_iter().filter(|(count, _)| *count > 0) {
        write!(f, "{separator}{count} {word}")?;
        separator = ", ";
    }
    writeln!(f)
}
