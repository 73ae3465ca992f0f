//! `orch status --orphans`: what bears the marks of the site on its hosts, and is wanted by none of its manifests.

use std::fmt;
use std::time::Duration;

use orch_model::{HostName, Problem, Scope, Survey, parse, survey};
use orch_providers::Ground;
use orch_run::{ExitCode, Left, load};
use serde::Serialize;

use crate::args::Cli;
use crate::failure::Failure;
use crate::in_nix;
use crate::output::{self, Output};
use crate::runtime::block_on;
use crate::scene;
use crate::site;

/// How long a host may take to show what is on it.
const DEADLINE: Duration = Duration::from_mins(1);

pub(crate) fn run(cli: &Cli, host: Option<&HostName>, output: &Output) -> Result<ExitCode, Failure> {
    let root = scene::absolute(&site::root(cli)?);
    let sources = in_nix::evaluated(cli, &root, load::site(&root)?, |_| true)?;
    let catalog = parse(&sources, Scope::Site)?;
    output::warn(catalog.warnings());
    let mut survey = survey(&catalog);
    if let Some(host) = host {
        survey.hosts.retain(|name, _| name == host);
        if survey.hosts.is_empty() {
            let unknown = Problem::with_request(format!("there is no host `{host}` that takes nodes"));
            return Err(Failure::Problems(unknown.into()));
        }
    }
    let base = scene::base(cli, &root)?;
    let left = block_on(look(&survey, &base))?;
    let code = match (left.unseen.is_empty(), left.found.is_empty()) {
        (true, true) => ExitCode::Done,
        (false, true) => ExitCode::Failed,
        (_, false) => ExitCode::Partly,
    };
    let shown = Orphans { site: survey.site.to_string(), left };
    output.answer(&shown, &shown);
    Ok(code)
}

async fn look(survey: &Survey, base: &orch_providers::Base) -> Result<Left, Failure> {
    let (ground, mute) = Ground::of(survey, base);
    let mut left = Left::look(&ground.places, &survey.site, None, DEADLINE).await.unwanted(&survey.wanted);
    left.unseen.extend(mute.into_iter().map(|(host, error)| (host, error.why)));
    ground.close().await;
    Ok(left)
}

/// What nobody wants.
#[derive(Serialize)]
struct Orphans {
    site: String,
    #[serde(flatten)]
    left: Left,
}

impl fmt::Display for Orphans {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { site, left } = self;
        if left.found.is_empty() && left.unseen.is_empty() {
            return write!(f, "nothing bears the mark of site {site} that its manifests do not want");
        }
        if !left.found.is_empty() {
            writeln!(f, "these bear the mark of site {site}, and no manifest of it wants them:\n")?;
        }
        write!(f, "{left}")
    }
}
