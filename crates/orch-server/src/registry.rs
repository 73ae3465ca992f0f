//! The server of a site as a run sees it: mints for nodes, hands them what they need, and asks what became of them.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use async_trait::async_trait;
use orch_model::pull::Enrolment;
use orch_model::{Fetched, HostName, Identity, Mode, NodeRecord, SpecName};
use orch_run::{Enroller, Permit, Registry, RegistryError, Target};
use thiserror::Error;
use tokio::time::{Duration, Instant};

use crate::desk::{Clock, new_chain, system_clock};
use crate::enrol::Minter;
use crate::folder::ServerFolder;
use crate::keys::Keys;
use crate::ledger::{self, Ledger, LedgerError, Revoked};
use crate::operator::{Operator, OperatorError};
use crate::reports::Reports;

/// How long somebody else who is at the ledger is waited for, and how often is looked meanwhile.
const PATIENCE: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(10);

/// The server of a site as a run sees it. It need not be this process that serves.
pub struct SiteRegistry {
    folder: ServerFolder,
    minter: Minter,
    operator: Operator,
    /// Where the nodes of each host find the server.
    addresses: BTreeMap<HostName, String>,
    /// The way to the nodes of each host.
    enrollers: BTreeMap<HostName, Arc<dyn Enroller>>,
}

impl SiteRegistry {
    /// The registry of the server that keeps its things in this folder.
    pub fn new(
        folder: &ServerFolder,
        clock: Clock,
        addresses: BTreeMap<HostName, String>,
        enrollers: BTreeMap<HostName, Arc<dyn Enroller>>,
    ) -> Self {
        let (minter, operator) = (Minter::of(folder, clock), Operator::of(folder.clone()));
        Self { folder: folder.clone(), minter, operator, addresses, enrollers }
    }
}

#[async_trait]
impl Registry for SiteRegistry {
    async fn enrol(&self, node: &Identity, spec: &SpecName, mode: Mode) -> Result<Enrolment, RegistryError> {
        let missing = || RegistryError::NoServer { host: node.host.to_string() };
        let server = self.addresses.get(&node.host).ok_or_else(missing)?.clone();
        let failed = |error: crate::EnrolError| RegistryError::NotEnrolled {
            node: node.clone(),
            why: error.to_string(),
        };
        self.minter.enrol(node, spec, mode, server).map_err(failed)
    }

    async fn hand_over(
        &self,
        target: &Target,
        spec: &SpecName,
        permit: &Permit,
    ) -> Result<(), RegistryError> {
        let host = &target.identity.host;
        let missing = || RegistryError::NoServer { host: host.to_string() };
        let enroller = self.enrollers.get(host).ok_or_else(missing)?;
        let enrolment = self.enrol(&target.identity, spec, target.mode).await?;
        Ok(enroller.enrol(target, &enrolment, permit).await?)
    }

    async fn record(&self, node: &Identity, after: Option<u64>) -> Result<NodeRecord, RegistryError> {
        self.operator.record(node, after).await.map_err(|error| RegistryError::Silent(error.to_string()))
    }

    async fn forget(&self, node: &Identity) -> Result<(), RegistryError> {
        let silent = |error: &dyn std::fmt::Display| RegistryError::Silent(error.to_string());
        // Where no token was ever signed there is none to be taken back.
        if !Keys::of(&self.folder).exist() {
            return Ok(());
        }
        let what = Revoked::Node(node.clone(), new_chain());
        revoke(&self.folder, &what).await.map_err(|error| silent(&error))?;
        Reports::of(&self.folder).forget(node).map_err(|error| silent(&error))
    }

    async fn converge(&self, node: &Identity) -> Result<(), RegistryError> {
        self.operator.converge(node).await.map_err(|error| RegistryError::Silent(error.to_string()))
    }
}

/// Takes tokens back: by the server where one runs, else in its place. Others may be at it at the same time.
pub async fn revoke(folder: &ServerFolder, what: &Revoked) -> Result<(), RevokeError> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        match Operator::of(folder.clone()).revoke(what).await {
            Err(OperatorError::Absent { .. }) => {}
            done => return Ok(done?),
        }
        if let Some(_office) = folder.take_office()? {
            let ledger = Ledger::open(&folder.ledger_path())?;
            return Ok(ledger.revoke(what.clone(), (system_clock())()).await?);
        }
        if Instant::now() >= deadline {
            return Err(RevokeError::Busy);
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// Tokens could not be taken back.
#[derive(Debug, Error)]
pub enum RevokeError {
    /// The server's folder cannot be used.
    #[error("the server's folder cannot be used")]
    Folder(#[from] io::Error),
    /// Somebody else has it all the time.
    #[error("somebody else is at the ledger of tokens all the time")]
    Busy,
    /// The ledger cannot be used.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// The server did not do it.
    #[error(transparent)]
    Operator(#[from] OperatorError),
}

/// What is known of nodes by what their server left on disk; those of which nothing is known are left out.
pub fn remembered(
    folder: &ServerFolder,
    nodes: impl IntoIterator<Item = Identity>,
) -> BTreeMap<Identity, NodeRecord> {
    let (tokens, reports) = (ledger::read(&folder.ledger_path()).unwrap_or_default(), Reports::of(folder));
    let record = |node: Identity| {
        let standing = tokens.get(&node);
        let reported = reports.last(&node).ok().flatten();
        if standing.is_none() && reported.is_none() {
            return None;
        }
        let record = NodeRecord {
            node: node.clone(),
            wanted: None,
            fetched: standing.map(|standing| Fetched { at: standing.since, digest: None }),
            refused: None,
            reported,
            doing: None,
            keys: standing.and_then(|standing| standing.keys.clone()),
            alarm: standing.and_then(|standing| standing.alarm),
            trouble: None,
            server: 0,
            site: String::new(),
            events: 0,
        };
        Some((node, record))
    };
    nodes.into_iter().filter_map(record).collect()
}
