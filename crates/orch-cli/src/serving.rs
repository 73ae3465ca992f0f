//! A server beside whatever else a command does: for nodes of this computer it listens in their own network, and comes and
//! goes with it.

use std::collections::BTreeMap;
use std::time::Duration;

use orch_model::HostName;
use orch_providers::local::Local;
use orch_server::{InOffice, Limits, OfficeError, ServerFolder, SitePlace, Tell, system_clock};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::failure::Failure;
use crate::output;

/// How often the networks of hosts are looked at by a run, which is waited for, and by a server that stays: nodes ask again for
/// three seconds where nobody listens yet.
pub(crate) const SOON: Duration = Duration::from_millis(50);
pub(crate) const NOW_AND_THEN: Duration = Duration::from_millis(500);
/// How often is asked whether the server that another command runs has ended.
const ASK_EVERY: Duration = Duration::from_millis(200);

/// What is served, and to whom.
#[derive(Clone)]
pub(crate) struct Service {
    pub(crate) folder: ServerFolder,
    pub(crate) place: SitePlace,
    pub(crate) locals: BTreeMap<HostName, Local>,
    pub(crate) limits: Limits,
    pub(crate) tell: Tell,
    /// How often the networks of hosts are looked at.
    pub(crate) look_every: Duration,
}

/// A server that runs for as long as a command does. Where another command has one for this site, that one serves, and this
/// takes over when it ends.
pub(crate) struct Serving {
    end: watch::Sender<bool>,
    task: JoinHandle<()>,
}

impl Serving {
    /// Begins to serve.
    pub(crate) fn begin(service: Service) -> Result<Self, Failure> {
        let office = service.enter()?;
        let (end, mut ended) = watch::channel(false);
        let task = tokio::spawn(async move {
            if let Some(office) = service.wait_for_office(office, &mut ended).await {
                service.attend(&office, &mut ended).await;
                office.end().await;
            }
        });
        Ok(Self { end, task })
    }

    /// Lets what is under way come to its end.
    pub(crate) async fn end(self) {
        self.end.send_replace(true);
        let _ = self.task.await;
    }
}

impl Service {
    /// Takes the office, if nobody has it.
    pub(crate) fn enter(&self) -> Result<Option<InOffice>, Failure> {
        let (place, limits, tell) = (self.place.clone(), self.limits.clone(), self.tell.clone());
        Ok(InOffice::enter(&self.folder, place, limits, system_clock(), tell).map_err(Box::new)?)
    }

    async fn wait_for_office(
        &self,
        mut office: Option<InOffice>,
        ended: &mut watch::Receiver<bool>,
    ) -> Option<InOffice> {
        let mut is_told = false;
        while office.is_none() {
            tokio::select! {
                () = is_over(ended) => return None,
                () = tokio::time::sleep(ASK_EVERY) => {}
            }
            // What stands in the way now may not later; whoever waits for a node has a limit.
            office = match self.enter() {
                Ok(office) => office,
                Err(error) => {
                    if !std::mem::replace(&mut is_told, true) {
                        output::note(&format!("warning: nodes cannot be served: {}\n", error.chain()));
                    }
                    None
                }
            };
        }
        office
    }

    /// Listens wherever nodes of this computer are, until it is over.
    pub(crate) async fn attend(&self, office: &InOffice, ended: &mut watch::Receiver<bool>) {
        let mut troubles: BTreeMap<&HostName, String> = BTreeMap::new();
        loop {
            for (host, local) in &self.locals {
                match listen(office, host, local).await {
                    Ok(()) => drop(troubles.remove(host)),
                    // Said once, and not twenty times a second.
                    Err(why) if troubles.get(host) != Some(&why) => {
                        output::note(&format!("warning: nodes of `{host}` cannot be listened to: {why}\n"));
                        troubles.insert(host, why);
                    }
                    Err(_) => {}
                }
            }
            tokio::select! {
                () = is_over(ended) => return,
                () = tokio::time::sleep(self.look_every) => {}
            }
        }
    }
}

/// Makes sure that the nodes of a host are listened to where they are now.
async fn listen(office: &InOffice, host: &HostName, local: &Local) -> Result<(), String> {
    let network = local.network().await.map_err(|error| error.to_string())?;
    let Some(network) = network else {
        office.leave(host.as_str());
        return Ok(());
    };
    if office.listens_in(host.as_str()) == Some(network) {
        return Ok(());
    }
    office.leave(host.as_str());
    let listener = local.listen().await.map_err(|error| error.to_string())?;
    office.listen_in(host.as_str(), network, listener).map_err(|error| error.to_string())
}

/// Waits until it is to end.
pub(crate) async fn is_over(ended: &mut watch::Receiver<bool>) {
    let _ = ended.wait_for(|ended| *ended).await;
}

impl From<Box<OfficeError>> for Failure {
    fn from(error: Box<OfficeError>) -> Self {
        Self::Office(error)
    }
}
