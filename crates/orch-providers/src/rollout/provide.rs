//! How a node comes to have all of its system: it fetches what it can, and is sent the rest.

use orch_model::StorePath;
use orch_model::system::{SystemQuestion, SystemView};
use orch_nix::Member;
use orch_run::TransportError;
use serde::Deserialize;

use super::{Rollout, copy, judge, question, seconds};
use crate::remote::{Bridge, Remote};

/// What a node says that it built.
#[derive(Deserialize)]
struct Built {
    built: Vec<StorePath>,
}

impl Rollout<'_> {
    /// Sees to it that the node has all of its system. Nothing that runs there is changed by it.
    pub(super) async fn provide(
        &self,
        node: &dyn Bridge,
        view: &SystemView,
        closure: &[Member],
    ) -> Result<(), TransportError> {
        let missing = judge::missing(view, closure);
        if !view.substitutes || missing.is_empty() {
            return self.copy(node, &missing).await;
        }
        self.say("fetching what it can");
        match self.substitute(node, &question(closure)).await {
            Ok(view) => self.copy(node, &judge::missing(&view, closure)).await,
            // Whatever it could not fetch is sent to it, and what it has by now is not taken twice.
            Err(error) => {
                self.say(&format!("copying, since it could not fetch: {error}"));
                self.copy(node, &missing).await
            }
        }
    }

    /// Has the node build its system itself, from what it is sent for that. Nothing is to be copied to it afterwards.
    pub(super) async fn build_there(
        &self,
        node: &dyn Bridge,
        system: &StorePath,
        (drv, parts): (StorePath, Vec<Member>),
    ) -> Result<(SystemView, Vec<Member>), TransportError> {
        let view = self.look(node, &question(&parts)).await?;
        let missing = judge::missing(&view, &parts);
        self.preflight(&view, system, &missing)?;
        self.copy(node, &missing).await?;
        self.say("building there");
        let limit = self.settings.limits.build;
        let args = ["system", "build", "--limit", &seconds(limit), drv.as_str()];
        let Built { built } = self.asking(node).ask(&args, &[], limit + self.settings.limits.answer).await?;
        if !built.contains(system) {
            let why = format!("it built another system than `{system}`");
            return Err(self.failed(why, built.iter().map(ToString::to_string).collect()));
        }
        Ok((self.look(node, &SystemQuestion { closure: vec![system.clone()] }).await?, Vec::new()))
    }

    async fn substitute(
        &self,
        node: &dyn Remote,
        question: &SystemQuestion,
    ) -> Result<SystemView, TransportError> {
        // Two thirds are left for sending what it could not fetch.
        let limit = self.settings.limits.copy / 3;
        let args = ["system", "substitute", "--limit", &seconds(limit)];
        self.asking(node).about(&args, question, limit + self.settings.limits.answer).await
    }

    async fn copy(&self, node: &dyn Bridge, missing: &[&Member]) -> Result<(), TransportError> {
        if missing.is_empty() {
            return Ok(());
        }
        let paths: Vec<StorePath> = missing.iter().map(|member| member.path.clone()).collect();
        let limit = self.settings.limits.copy * 2 / 3;
        let args = ["system", "receive", "--limit", &seconds(limit)];
        let receive = node.bridge(&self.road.program().argv(&args))?;
        let stream = copy::Stream {
            export: self.settings.systems.export(&paths),
            receive,
            of: missing.iter().map(|member| member.bytes).sum(),
            progress: &self.target.progress,
        };
        stream.flow(limit).await.map_err(|(why, evidence)| self.failed(why, evidence))
    }
}
