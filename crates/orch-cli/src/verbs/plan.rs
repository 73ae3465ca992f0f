//! `orch plan`: the flow up to the plan, and a print.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::Path;

use orch_model::{Fleet, HostName, Scope, parse, resolve};
use orch_plan::{Goal, HostView, Observed, Selection, Verb, plan};
use orch_run::ExitCode;

use crate::args::{self, Cli, PlanArgs};
use crate::failure::Failure;
use crate::output::{self, Output};
use crate::site;

pub(crate) fn run(cli: &Cli, args: &PlanArgs, output: &Output) -> Result<ExitCode, Failure> {
    let (sources, name) = site::with_manifest(cli, &args.manifest)?;
    let scope = Scope::Manifest { name: &name, host: args.placement.host.as_ref() };
    let catalog = parse(&sources, scope)?;
    output::warn(catalog.warnings());
    site::warn_of_no_name(&catalog);
    let fleet = resolve(&catalog, &args.placement.request(name))?;
    let observed = match &args.observed {
        Some(file) => read_observed(file)?,
        None => nothing_on(&fleet),
    };
    let goal = Goal {
        verb: match args.goal {
            args::Goal::Create => Verb::Create,
            args::Goal::Config => Verb::Config,
            args::Goal::Destroy => Verb::Destroy,
        },
        only: Selection::of(args.only.clone()),
        replace: args.replace,
    };
    let plan = plan(&fleet, &observed, &goal)?;
    if args.observed.is_none() {
        output::note(&assumption(&fleet));
    }
    output.answer(&plan, &plan);
    Ok(ExitCode::Done)
}

/// No provider can look at a host yet, so nothing is assumed to be there, and that is said.
fn assumption(fleet: &Fleet) -> String {
    let hosts: Vec<&str> = fleet.hosts.keys().map(HostName::as_str).collect();
    let hosts = hosts.join(", ");
    format!(
        "note: no provider can look at a host yet, so this plan assumes that nothing is on {hosts}; plan against a \
         recorded state with --observed FILE\n"
    )
}

fn nothing_on(fleet: &Fleet) -> Observed {
    Observed { hosts: fleet.hosts.keys().map(|host| (host.clone(), HostView::empty())).collect() }
}

fn read_observed(path: &Path) -> Result<Observed, Failure> {
    let reader: Box<dyn Read> = if path == Path::new("-") {
        Box::new(io::stdin().lock())
    } else {
        let unread = |source| Failure::Unread { path: path.to_owned(), source };
        Box::new(BufReader::new(File::open(path).map_err(unread)?))
    };
    serde_json::from_reader(reader).map_err(|source| Failure::Observed { path: path.to_owned(), source })
}
