//! A way into nodes that answers as a test says.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use orch_model::system::Inventory;
use orch_model::{Config, HealthReport, Inspection, ResourceReport};
use orch_run::{Door, Doors, Ended, Target, TransportError};

use crate::common::host;

/// How a node answers.
#[derive(Clone, Copy)]
pub(crate) enum Answer {
    /// Everything is as configured.
    Well,
    /// A file was changed by hand.
    Drifted,
    /// A health check does not pass.
    Ill,
    /// Something cannot be had there.
    Skipping,
    /// Nobody is there.
    Gone,
    /// It never answers.
    Silent,
    /// Programs end with this code.
    Exit(i32),
}

/// A door behind which each node answers as said; one that nothing is said of is well.
pub(crate) struct Answers(BTreeMap<&'static str, Answer>);

/// The doors of `father`.
pub(crate) fn doors(answers: &[(&'static str, Answer)]) -> Doors {
    [(host("father"), Arc::new(Answers(answers.iter().copied().collect())) as Arc<dyn Door>)].into()
}

impl Answers {
    fn of(&self, target: &Target) -> Answer {
        self.0.get(target.identity.node.as_str()).copied().unwrap_or(Answer::Well)
    }

    async fn reached(&self, target: &Target) -> Result<Answer, TransportError> {
        match self.of(target) {
            Answer::Gone => Err(TransportError::Unreachable {
                node: target.identity.clone(),
                why: "connection refused".to_owned(),
                evidence: vec!["ssh: port 22".to_owned()],
            }),
            Answer::Silent => std::future::pending().await,
            answer => Ok(answer),
        }
    }
}

#[async_trait]
impl Door for Answers {
    async fn inspect(&self, target: &Target, config: &Config) -> Result<Inspection, TransportError> {
        let answer = self.reached(target).await?;
        let resource = |kind: &str, name: &str| ResourceReport {
            kind: kind.to_owned(),
            name: name.to_owned(),
            changed: false,
            skipped: None,
            detail: None,
        };
        let mut motd = resource("file", "/etc/motd");
        let mut package = resource("package", "htop");
        let mut check = HealthReport { check: "tcp 22".to_owned(), healthy: true, why: None };
        match answer {
            Answer::Drifted => (motd.changed, motd.detail) = (true, Some("other content".to_owned())),
            Answer::Ill => (check.healthy, check.why) = (false, Some("refused".to_owned())),
            Answer::Skipping => package.skipped = Some("not installable here".to_owned()),
            _ => {}
        }
        Ok(Inspection { applied: Some(config.digest()), resources: vec![motd, package], health: vec![check] })
    }

    async fn inventory(&self, target: &Target) -> Result<Inventory, TransportError> {
        self.reached(target).await?;
        Ok(Inventory { system: "/nix/store/running".to_owned(), ..Inventory::default() })
    }

    async fn exec(
        &self,
        target: &Target,
        argv: &[String],
        _limit: Duration,
    ) -> Result<Ended, TransportError> {
        let code = match self.reached(target).await? {
            Answer::Exit(code) => code,
            _ => 0,
        };
        let stdout = format!("{}: {}\n", target.identity.node, argv.join(" ")).into_bytes();
        Ok(Ended { code: Some(code), stdout, stderr: Vec::new() })
    }

    fn session(&self, _: &Target, argv: &[String]) -> Result<Vec<OsString>, TransportError> {
        Ok(argv.iter().map(OsString::from).collect())
    }

    fn ssh_config(&self, _: &[Target]) -> Result<Option<String>, TransportError> {
        Ok(None)
    }
}
