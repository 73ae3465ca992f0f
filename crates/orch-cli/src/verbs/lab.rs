//! `orch lab`: Proxmox VE and Hetzner Cloud on this computer.

use std::fmt;
use std::path::Path;
use std::time::Duration;

use orch_lab::{LabHost, LabSettings, LabStatus, Request, Rule};
use orch_model::{Host, Scope, parse, survey};
use orch_run::{ExitCode, load};
use serde::Serialize;

use crate::args::{Cli, FaultArgs, LabArgs, LabUpArgs};
use crate::failure::Failure;
use crate::output::Output;
use crate::runtime::block_on;
use crate::{output, scene, site};

pub(crate) fn run(cli: &Cli, what: &LabArgs, output: &Output) -> Result<ExitCode, Failure> {
    let folder = scene::own_state(cli)?.lab();
    match what {
        LabArgs::Up(args) => up(cli, args, &folder, output),
        LabArgs::Down => {
            block_on(async { Ok(orch_lab::down(&folder).await?) })?;
            output.answer(&"the lab is down, and nothing of it is left", &serde_json::json!({ "up": false }));
            Ok(ExitCode::Done)
        }
        LabArgs::Status => show(&folder, output),
        LabArgs::Fault(args) => fault(args, &folder, output),
    }
}

fn up(cli: &Cli, args: &LabUpArgs, folder: &Path, output: &Output) -> Result<ExitCode, Failure> {
    let sources = load::site(&site::root(cli)?)?;
    let catalog = parse(&sources, Scope::Site)?;
    let survey = survey(&catalog);
    let images = |host: &Host| survey.images.get(&host.name).cloned().unwrap_or_default();
    let hosts: Vec<LabHost> =
        survey.hosts.values().filter_map(|host| LabHost::of(host, images(host))).collect();
    if hosts.is_empty() {
        return Err(Failure::NothingForTheLab);
    }
    let settings = LabSettings {
        hosts,
        latency: Duration::from_millis(args.latency),
        paper: args.paper,
        quick: args.quick,
        descriptions: args.descriptions.clone(),
        ..LabSettings::new(folder.to_owned(), scene::program()?)
    };
    let up = block_on(async { Ok(orch_lab::up(&settings).await?) })?;
    if up.was_up {
        output::note(&"note: the lab was up already, and is as it was");
    }
    for host in &up.lacking {
        output::note(&format_args!(
            "note: host `{host}` is new, and the lab does not have it: `orch lab down`, then `orch lab up`"
        ));
    }
    for host in &up.left_over {
        output::note(&format_args!(
            "note: the lab still keeps what it had of host `{host}`, which it does not stand in for any more: `orch lab down` removes it"
        ));
    }
    show(folder, output)
}

fn show(folder: &Path, output: &Output) -> Result<ExitCode, Failure> {
    let status = block_on(async { Ok(orch_lab::status(folder).await?) })?;
    let code = if status.is_up { ExitCode::Done } else { ExitCode::Failed };
    let shown = Shown(status);
    output.answer(&shown, &shown);
    Ok(code)
}

fn fault(args: &FaultArgs, folder: &Path, output: &Output) -> Result<ExitCode, Failure> {
    let host = args.host.clone();
    let request = match args.fault {
        Some(fault) => {
            let (method, path) = (args.method.clone(), args.path.clone());
            let rule = Rule { fault, method, path, after: args.after, times: args.times };
            Some(Request::AddFault { host, rule })
        }
        None if args.clear => Some(Request::ClearFaults { host: Some(host) }),
        None => None,
    };
    if let Some(request) = request {
        block_on(async { Ok(orch_lab::ask(folder, &request).await?) })?;
    }
    show(folder, output)
}

/// A lab for people; as JSON without what opens it.
struct Shown(LabStatus);

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(status) = self;
        writeln!(
            f,
            "the lab is {}\n",
            if status.is_up { "up" } else { "down; `orch lab up` brings it up again" }
        )?;
        for (name, host) in &status.file.hosts {
            writeln!(f, "  {name}  {} at {}", host.kind.word(), host.address())?;
            let live = status.hosts.get(name);
            for rule in live.into_iter().flat_map(|live| &live.faults) {
                writeln!(f, "      goes wrong  {}", in_words(rule))?;
            }
        }
        write!(f, "\n`orch --lab` speaks to these in the stead of the hosts themselves")
    }
}

impl Serialize for Shown {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(status) = self;
        let host = |(name, host): (&orch_model::HostName, &orch_lab::LabFileHost)| {
            let live = status.hosts.get(name);
            let shown = serde_json::json!({
                "kind": host.kind,
                "endpoint": host.address(),
                "fingerprint": host.fingerprint,
                "calls": live.map(|live| live.calls),
                "faults": live.map(|live| &live.faults),
            });
            (name.to_string(), shown)
        };
        let hosts: serde_json::Map<_, _> = status.file.hosts.iter().map(host).collect();
        serde_json::json!({ "up": status.is_up, "hosts": hosts }).serialize(serializer)
    }
}

fn in_words(rule: &Rule) -> String {
    let Rule { fault, method, path, after, times } = rule;
    let mut words = vec![fault.word().to_owned()];
    words.extend(method.clone());
    words.extend(path.as_ref().map(|path| format!("`{path}`")));
    words.extend((*after > 0).then(|| format!("after {after}")));
    words.push(times.map_or("always".to_owned(), |times| format!("{times} times")));
    words.join(", ")
}
