//! What is asked of a node about its NixOS system, and how it is answered.

use std::process::ExitCode;
use std::time::Duration;

use orch_model::StorePath;
use serde::Serialize;

use super::args::Words;
use super::config::Origin;
use super::{LIMIT, WRONG, print, with_input};
use crate::error::in_full;
use crate::node::Node;
use crate::system::{self, Patience, Standing, SystemError};
use crate::worker::say;

/// How long fetching and receiving may take where nobody says.
const FETCHING: Duration = Duration::from_hours(1);
/// How long nothing may come from who brings something.
const IDLE: Duration = Duration::from_mins(1);

/// What is asked.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum SystemOrder {
    Look,
    Lease,
    Release { run: String },
    Receive(Patience),
    Substitute { limit: Duration },
    Build { drv: StorePath, limit: Duration },
    Switch,
    Await { id: String, limit: Option<Duration> },
    Confirm { id: String, limit: Option<Duration> },
    Back { id: String, run: Option<String>, limit: Option<Duration> },
    Boot,
    Inventory { path: Option<String> },
    Watch { id: String, standing: Standing },
    Activate { parent: u32, program: String, verb: String },
}

#[derive(Serialize)]
struct Received {
    received: usize,
}

#[derive(Serialize)]
struct Built {
    built: Vec<StorePath>,
}

impl SystemOrder {
    pub(super) fn read(words: &mut Words) -> Result<Self, String> {
        let name = words.text("what to do about the system")?;
        Ok(match name.as_str() {
            "look" => Self::Look,
            "lease" => Self::Lease,
            "release" => Self::Release { run: words.text("a run")? },
            "receive" => Self::Receive(Patience {
                whole: words.seconds("--limit")?.unwrap_or(FETCHING),
                piece: words.seconds("--idle")?.unwrap_or(IDLE),
            }),
            "substitute" => Self::Substitute { limit: words.seconds("--limit")?.unwrap_or(FETCHING) },
            "build" => Self::Build {
                limit: words.seconds("--limit")?.unwrap_or(FETCHING),
                drv: words.text("a derivation")?.parse()?,
            },
            "switch" => Self::Switch,
            "await" => Self::Await { limit: words.seconds("--limit")?, id: words.text("a rollout")? },
            "confirm" => Self::Confirm { limit: words.seconds("--limit")?, id: words.text("a rollout")? },
            "back" => Self::Back {
                limit: words.seconds("--limit")?,
                run: words.value("--run")?,
                id: words.text("a rollout")?,
            },
            "boot" => Self::Boot,
            "inventory" => Self::Inventory { path: words.text("a path").ok() },
            "watch" => Self::Watch { standing: standing(words)?, id: words.text("a rollout")? },
            "activate" => Self::Activate {
                parent: words.text("a process")?.parse().map_err(|_| "it is not a process")?,
                program: words.text("a program")?,
                verb: words.text("a word for it")?,
            },
            _ => return Err(format!("`system {name}` is not something it does")),
        })
    }
}

/// How a watcher was started.
fn standing(words: &mut Words) -> Result<Standing, String> {
    if words.flag("--alone") {
        return Ok(Standing::Alone);
    }
    let Some(process) = words.value::<String>("--after")? else { return Ok(Standing::First) };
    let parsed =
        process.split_once(':').and_then(|(pid, start)| Some((pid.parse().ok()?, start.parse().ok()?)));
    parsed
        .map(|(pid, started)| Standing::After(pid, started))
        .ok_or_else(|| format!("`{process}` is no process"))
}

/// Does it.
pub(super) fn on_node(node: &Node, order: SystemOrder) -> ExitCode {
    match order {
        SystemOrder::Look => with_input(&Origin::Input, |question| ended(system::look(node, question))),
        SystemOrder::Lease => with_input(&Origin::Input, |claim| ended(system::lease(node, claim))),
        SystemOrder::Release { run } => ended(system::release(node, &run)),
        SystemOrder::Receive(patience) => {
            ended(system::receive(node, patience).map(|paths| Received { received: paths.len() }))
        }
        SystemOrder::Substitute { limit } => {
            with_input(&Origin::Input, |question| ended(system::substitute(node, question, limit)))
        }
        SystemOrder::Build { drv, limit } => {
            ended(system::build(node, &drv, limit).map(|built| Built { built }))
        }
        SystemOrder::Switch => with_input(&Origin::Input, |order| ended(system::switch(node, order))),
        SystemOrder::Await { id, limit } => ended(system::activated(node, &id, limit)),
        SystemOrder::Confirm { id, limit } => ended(system::confirm(node, &id, limit)),
        SystemOrder::Back { id, run, limit } => ended(system::back(node, &id, run.as_deref(), limit)),
        SystemOrder::Boot => ended(system::boot(node)),
        SystemOrder::Inventory { path } => ended(system::inventory(node, path.as_deref())),
        SystemOrder::Watch { id, standing } => match system::watch(node, &id, standing) {
            Ok(code) => code,
            Err(error) => failed(&error),
        },
        SystemOrder::Activate { parent, program, verb } => {
            ended(system::activate(node, parent, &program, &verb))
        }
    }
}

fn ended<T: Serialize>(result: Result<T, SystemError>) -> ExitCode {
    match result {
        Ok(answer) => print(&answer),
        Err(error) => failed(&error),
    }
}

fn failed(error: &SystemError) -> ExitCode {
    say(&in_full(error));
    if let Some(hint) = error.hint() {
        say(&format!("hint: {hint}"));
    }
    match error {
        SystemError::Late(_) => ExitCode::from(LIMIT),
        SystemError::Wrong(_) => ExitCode::from(WRONG),
        _ => ExitCode::FAILURE,
    }
}
