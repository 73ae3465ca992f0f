//! The NixOS systems of nodes: evaluated between resolving and looking, so that a plan knows what each node is to run.
//!
//! A fleet without NixOS nodes costs nothing here and needs no Nix.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use orch_model::{Config, Fleet, Identity, Mode, Node};
use orch_nix::{
    BuildOn, EvalError, Evaluated, Evaluator, EvaluatorSettings, ExpectedSecret, Kind, Store, Tools, Wanted,
};
use orch_providers::rollout::{Evaluations, Recipe};

use crate::output;

/// How long evaluating all nodes of a run may take.
const LIMIT: Duration = Duration::from_mins(15);

/// What evaluating needs to know.
pub(crate) struct Evaluation<'e> {
    /// The site's folder.
    pub(crate) site: &'e Path,
    /// Where what was evaluated is remembered.
    pub(crate) cache: PathBuf,
    /// A folder with nixpkgs, where one is named.
    pub(crate) nixpkgs: Option<PathBuf>,
    /// Where systems are built.
    pub(crate) build_on: BuildOn,
    /// Whether the fleet is of nodes, or of hosts themselves.
    pub(crate) kind: Kind,
}

impl Evaluation<'_> {
    /// Has every NixOS node that is meant know its system. One that does not evaluate is unfit by itself, and says why; the
    /// others are none the worse for it. Nothing where there are no such nodes.
    pub(crate) async fn of(
        self,
        fleet: &mut Fleet,
        is_meant: impl Fn(&Identity) -> bool,
    ) -> Option<Arc<Evaluations>> {
        let is_wanted = |node: &Node| is_meant(&node.identity) && is_pushed_nixos(node);
        let wanted: Vec<Wanted> =
            fleet.nodes.iter().filter(|node| is_wanted(node)).filter_map(|node| self.wanted(node)).collect();
        if wanted.is_empty() {
            return None;
        }
        let tools = match Tools::find(None).await {
            Ok(tools) => tools,
            Err(error) => {
                let why = format!("{error} ({})", error.hint());
                for node in fleet.nodes.iter_mut().filter(|node| is_wanted(node)) {
                    node.unfit = Some(why.clone());
                }
                return None;
            }
        };
        let evaluations = Evaluations::new(Store::new(tools.clone()), self.build_on.clone());
        let settings = EvaluatorSettings {
            cache: self.cache,
            nixpkgs: self.nixpkgs,
            memory: None,
            parallel: std::thread::available_parallelism().map_or(1, Into::into),
            limit: LIMIT,
            lib: None,
        };
        let tell = |words: &str| output::note(&format!("orch {words}"));
        let mut found = Evaluator::new(tools, settings).evaluate(self.site, &wanted, &tell).await;
        for node in &mut fleet.nodes {
            match found.remove(&node.identity) {
                Some(Ok(evaluated)) => learn(node, evaluated, &evaluations),
                Some(Err(error)) => node.unfit = Some(told(&node.identity, &error)),
                None => {}
            }
        }
        Some(Arc::new(evaluations))
    }

    fn wanted(&self, node: &Node) -> Option<Wanted> {
        let config = node.config.as_ref()?;
        Some(Wanted {
            identity: node.identity.clone(),
            kind: self.kind,
            modules: config.role.nixos.as_ref()?.modules.clone(),
            platform: None,
            tags: node.tags.iter().cloned().collect(),
            config: serde_json::to_value(config).expect("a configuration can be written as JSON"),
        })
    }
}

/// Whether a node is NixOS, and given its system by the driver. One that fetches its configuration is told no system.
fn is_pushed_nixos(node: &Node) -> bool {
    let is_nixos = |config: &Config| config.role.nixos.is_some();
    node.mode == Mode::Push && node.config.as_ref().is_some_and(is_nixos)
}

fn learn(node: &mut Node, evaluated: Evaluated, evaluations: &Evaluations) {
    let Evaluated { drv, system, platform, health, secrets, disks, .. } = evaluated;
    let given = node.config.as_ref().map(|config| config.role.secrets.as_slice()).unwrap_or_default();
    if let Some(secret) = secrets.iter().find(|secret| !given.iter().any(|given| secret.is_met_by(given))) {
        node.unfit = Some(unmet(secret));
        return;
    }
    evaluations.know(system.clone(), Recipe { drv, platform, disks });
    node.config = node.config.take().map(|config| config.with_health(health).with_system(system));
}

/// What is said of a node that would come up without a secret: only the files of the site say where values are kept, and
/// they are opened before anything is evaluated.
fn unmet(secret: &ExpectedSecret) -> String {
    let (name, path) = (&secret.name, &secret.path);
    format!(
        "its modules expect secret `{name}` at `{path}` in `orch.secrets`, and its spec does not give it so \
         (name it in `secrets` of its spec; a host itself is given none)"
    )
}

/// Why a node has no system, in one clause; everything that Nix said of it goes before.
fn told(node: &Identity, error: &EvalError) -> String {
    if error.evidence().len() > 1 {
        let lines = error.evidence().join("\n  ");
        output::note(&format!("Nix says of `{node}`:\n  {lines}\n"));
    }
    let cause = std::error::Error::source(error).map_or_else(String::new, |cause| format!(": {cause}"));
    format!("{error}{cause} ({})", error.hint())
}
