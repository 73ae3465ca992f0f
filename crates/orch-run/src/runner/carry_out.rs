//! One step: the mark, the effect within its time, the fresh look.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use jiff::Timestamp;
use orch_dag::{Outcome, TaskError};
use orch_model::pull::Enrolment;
use orch_model::system::SwitchAnswer;
use orch_model::{Config, Identity, Mode, SiteName, SpecName, Timeouts};
use orch_plan::{Action, HostView, NodePlan, Plan, confirm};
use uuid::Uuid;

use super::pull::Pull;
use super::step_error::StepError;
use super::{Means, Patience, Watch};
use crate::journal::{Entry, RunJournal, StepValue};
use crate::permit::Permit;
use crate::progress::Progress;
use crate::provider::{Done, Order, Place, Places, ProviderError, Scope};
use crate::registry::{Registry, RegistryError};
use crate::transport::{Configured, Target};
use crate::treasury::Treasury;

/// Everything that steps share.
pub(crate) struct Work {
    pub(super) site: SiteName,
    timeouts: Timeouts,
    places: Places,
    pub(super) permit: Permit,
    registry: Option<Arc<dyn Registry>>,
    pub(super) treasury: Arc<dyn Treasury>,
    /// Nodes that fetch their configuration themselves: what they become, and how.
    pulling: BTreeMap<Identity, (SpecName, Mode)>,
    /// Nodes that this run enrolled when it made them, with how many results they had given until then.
    enrolled: Mutex<BTreeMap<Identity, u64>>,
    journal: Arc<RunJournal>,
    patience: Patience,
    watch: Watch,
    /// The marks of machines that this run makes, or finishes making.
    marks: Mutex<BTreeMap<Identity, Mark>>,
}

/// The mark of a machine that is not there, or not whole, when the run begins.
#[derive(Clone, Copy)]
struct Mark {
    uuid: Uuid,
    begun_by: BegunBy,
}

/// Which run began to make a machine.
#[derive(Clone, Copy, PartialEq, Eq)]
enum BegunBy {
    /// This one, so a rollback takes it down.
    ThisRun,
    /// One before it, so a rollback leaves it.
    AnEarlierRun,
}

impl Work {
    pub(crate) fn new(plan: &Plan, means: &Means) -> Self {
        Self {
            site: plan.site.clone(),
            timeouts: plan.timeouts,
            places: means.places.clone(),
            permit: if plan.reboot { means.permit.clone().with_reboots() } else { means.permit.clone() },
            registry: means.registry.clone(),
            treasury: Arc::clone(&means.treasury),
            pulling: plan.nodes.iter().filter_map(pulls).collect(),
            enrolled: Mutex::default(),
            journal: Arc::clone(&means.journal),
            patience: means.patience.clone(),
            watch: Arc::clone(&means.watch),
            marks: Mutex::default(),
        }
    }

    /// A node, for those who speak to it.
    pub(super) fn target(&self, identity: &Identity, uuid: Uuid, mode: Mode) -> Target {
        let (watch, node) = (Arc::clone(&self.watch), identity.clone());
        let progress = Progress::to(move |doing| watch(&node, doing));
        Target { identity: identity.clone(), uuid, mode, progress }
    }

    /// Has a node go back to the system before, within the time of a configuration.
    pub(super) async fn go_back(&self, target: &Target) -> Result<SwitchAnswer, StepError> {
        let reverter = self.place(&target.identity)?.reverter.clone().ok_or(StepError::NoWayBack)?;
        let limit = self.timeouts.config.duration();
        let late = || StepError::TimedOut { limit, seen: "it did not say how it stands".to_owned() };
        Ok(tokio::time::timeout(limit, reverter.back(target, &self.permit)).await.map_err(|_| late())??)
    }

    /// Writes down what to try for nodes on which nothing was begun.
    pub(super) async fn advise_all(&self, nodes: impl Iterator<Item = &Identity>, hint: &str) {
        for node in nodes {
            self.advise(node, hint.to_owned(), Vec::new()).await;
        }
    }

    async fn advise(&self, node: &Identity, hint: String, evidence: Vec<String>) {
        let advice = Entry::Advice { at: Timestamp::now(), node: node.clone(), hint, evidence };
        // A journal that cannot be written stops the engine by itself; the advice alone is no reason to.
        let _ = self.journal.append(advice).await;
    }

    pub(crate) fn journal(&self) -> Arc<RunJournal> {
        Arc::clone(&self.journal)
    }

    pub(crate) const fn places(&self) -> &Places {
        &self.places
    }

    pub(crate) fn patience(&self) -> &Patience {
        &self.patience
    }

    /// The marks of machines that this run began to make.
    pub(crate) fn made(&self) -> BTreeMap<Identity, Uuid> {
        let marks = self.marks.lock().expect("nobody panics while holding this");
        let made = marks.iter().filter(|(_, mark)| mark.begun_by == BegunBy::ThisRun);
        made.map(|(identity, mark)| (identity.clone(), mark.uuid)).collect()
    }

    /// Takes one step. A node that is as wanted needs none; one that must not be touched fails here.
    pub(crate) async fn step(
        &self,
        identity: &Identity,
        action: Option<&Action>,
        refused: Option<String>,
        attempt: u32,
    ) -> Result<Outcome<StepValue>, TaskError> {
        let done = match (refused, action) {
            (Some(why), _) => Err(StepError::Refused(why)),
            (None, None) => Ok(Outcome::unchanged().with(StepValue::default())),
            (None, Some(action)) => self.act(identity, action, attempt).await,
        };
        if let Err(error) = &done {
            self.advise(identity, error.hint(), error.evidence().to_vec()).await;
        }
        done.map_err(StepError::into_task_error)
    }

    /// Does it within its time, and believes only a fresh look: a lost answer to a thing that happened is a success,
    /// and an answer without the thing is a failure.
    async fn act(
        &self,
        identity: &Identity,
        action: &Action,
        attempt: u32,
    ) -> Result<Outcome<StepValue>, StepError> {
        let uuid = self.mark(identity, action).await?;
        let limit = self.limit(action);
        let answer = tokio::time::timeout(limit, self.effect(identity, action, uuid)).await;
        let answer = match answer {
            Ok(Err(error)) if !error.is_passing() => return Err(error),
            answer => answer,
        };
        let seen = self.look(identity).await.map_err(|error| error.to_string()).and_then(|view| {
            confirm(action, &self.site, identity, uuid, &view).map_err(|unconfirmed| unconfirmed.0)
        });
        match (answer, seen) {
            // Whether the tries before this one changed something is not known. What waits for a change must not miss
            // one, so it is called changed, and the note says that this is a guess.
            (Ok(Ok(Configured { changed: false, notes, .. })), Ok(())) if attempt > 1 => {
                let guess = "an earlier try may have changed it".to_owned();
                Ok(outcome(true, &[notes, vec![guess]].concat()))
            }
            (Ok(Ok(done)), Ok(())) => Ok(outcome(done.changed, &done.notes)),
            (Ok(Err(error)), Ok(())) => Ok(outcome(true, &[format!("read back as done, although: {error}")])),
            (Err(_), Ok(())) => {
                Ok(outcome(true, &[format!("read back as done, with no answer in {limit:?}")]))
            }
            (Ok(Ok(_)), Err(seen)) => Err(StepError::NotSeen { seen }),
            (Ok(Err(error)), Err(_)) => Err(error),
            (Err(_), Err(seen)) => Err(StepError::TimedOut { limit, seen }),
        }
    }

    /// The mark of the machine in question. A machine that is to be made gets one, written down before anything is
    /// done with it, and keeps it over every attempt: so a lost answer never makes a second machine.
    async fn mark(&self, identity: &Identity, action: &Action) -> Result<Uuid, StepError> {
        if let Action::Adopt { found, .. } = action {
            // What configures the machine afterwards names none: it means this one.
            self.remember(identity, found.uuid, BegunBy::AnEarlierRun);
        }
        if let Some(machine) = action.machine() {
            return Ok(machine.uuid);
        }
        if let Some(uuid) = self.remembered(identity) {
            return Ok(uuid);
        }
        let uuid = Uuid::new_v4();
        self.journal.append(Entry::Marked { at: Timestamp::now(), node: identity.clone(), uuid }).await?;
        self.remember(identity, uuid, BegunBy::ThisRun);
        Ok(uuid)
    }

    fn remember(&self, identity: &Identity, uuid: Uuid, begun_by: BegunBy) {
        let mut marks = self.marks.lock().expect("nobody panics while holding this");
        marks.insert(identity.clone(), Mark { uuid, begun_by });
    }

    fn remembered(&self, identity: &Identity) -> Option<Uuid> {
        let marks = self.marks.lock().expect("nobody panics while holding this");
        marks.get(identity).map(|mark| mark.uuid)
    }

    async fn effect(
        &self,
        identity: &Identity,
        action: &Action,
        uuid: Uuid,
    ) -> Result<Configured, StepError> {
        let place = self.place(identity)?;
        if let Action::Configure { config, mode, machine } = action {
            self.permit.holds(identity).map_err(StepError::Unleased)?;
            let target = self.target(identity, uuid, *mode);
            let mut notes = self.admit_known(&target, config).await?;
            if machine.is_some() {
                self.take_back(&target, config).await?;
            }
            let mut done = match mode {
                Mode::Push => place.transport.configure(&target, config, &self.permit).await?,
                Mode::Pull | Mode::Hybrid => self.have_fetched(&target, config).await?,
            };
            notes.extend(self.write_down(&target, config, done.keys.as_ref()).await?);
            done.notes.extend(notes);
            return Ok(done);
        }
        let enrolment = self.enrolment(identity, action).await?;
        let order = Order {
            enrolment,
            site: self.site.clone(),
            identity: identity.clone(),
            uuid,
            action: action.clone(),
            progress: self.target(identity, uuid, Mode::Push).progress,
        };
        let mut notes = Vec::new();
        if matches!(action, Action::Destroy { .. }) {
            notes.extend(self.dismiss(identity, uuid).await?);
        }
        let done = place.provider.apply(&order, &self.permit).await?;
        if let (Action::Destroy { .. }, Some(registry)) = (action, &self.registry) {
            // It is gone whether or not it is forgotten; but what it was given may be elsewhere too.
            let forgotten = registry.forget(identity).await;
            notes.extend(forgotten.err().map(|error| format!("its tokens could not be revoked: {error}")));
        }
        Ok(Configured { changed: done == Done::Changed, notes, keys: None })
    }

    /// What a machine that is made needs to fetch its configuration, where that is how it gets it.
    async fn enrolment(&self, identity: &Identity, action: &Action) -> Result<Option<Enrolment>, StepError> {
        let is_made = matches!(action, Action::Create { .. } | Action::Adopt { .. });
        let Some((spec, mode)) = self.pulling.get(identity).filter(|_| is_made) else { return Ok(None) };
        let registry = self.registry(identity)?;
        let before = registry.record(identity, None).await?.results();
        let enrolment = registry.enrol(identity, spec, *mode).await?;
        // Asked for again, it may have reported since the first time.
        self.enrolled
            .lock()
            .expect("nobody panics while holding this")
            .entry(identity.clone())
            .or_insert(before);
        Ok(Some(enrolment))
    }

    /// Waits until a node has fetched its configuration and made it true.
    async fn have_fetched(&self, target: &Target, config: &Config) -> Result<Configured, StepError> {
        // Asked for again, it was enrolled too long ago to be waited for without a word.
        let enrolled =
            self.enrolled.lock().expect("nobody panics while holding this").remove(&target.identity);
        let pull = Pull {
            registry: self.registry(&target.identity)?,
            target,
            config,
            permit: &self.permit,
            limit: self.timeouts.config.duration(),
        };
        pull.configure(enrolled).await
    }

    fn registry(&self, identity: &Identity) -> Result<&dyn Registry, StepError> {
        let missing = || RegistryError::NoServer { host: identity.host.to_string() }.into();
        self.registry.as_deref().ok_or_else(missing)
    }

    /// Looks at a node's host, within its time. A host that shows nothing is not an empty one, so that is an error.
    pub(super) async fn look(&self, identity: &Identity) -> Result<HostView, ProviderError> {
        let scope = Scope { host: identity.host.clone(), node: Some(identity.clone()) };
        let look = self.place(identity)?.provider.observe(&scope);
        let unseen = |why| ProviderError::NoAnswer { host: identity.host.clone(), why };
        match tokio::time::timeout(self.patience.look, look).await {
            Ok(Ok(HostView::Unreachable { why })) => Err(unseen(why)),
            Ok(view) => view,
            Err(_) => Err(unseen(format!("nothing was shown within {:?}", self.patience.look))),
        }
    }

    pub(super) fn place(&self, identity: &Identity) -> Result<&Place, ProviderError> {
        let host = &identity.host;
        let refused = |why: &str| ProviderError::Refused { host: host.clone(), why: why.into() };
        if !self.permit.covers(host) {
            return Err(refused("its lock is not held"));
        }
        self.places.get(host).ok_or_else(|| refused("it is not part of this run"))
    }

    fn limit(&self, action: &Action) -> Duration {
        if let Action::Configure { config, .. } = action
            && config.system().is_some()
        {
            return self.timeouts.config.duration() + self.patience.prepare;
        }
        let limit = match action {
            Action::Create { .. } | Action::Adopt { .. } | Action::Resize { .. } => self.timeouts.create,
            Action::Start { .. } => self.timeouts.boot,
            Action::Configure { .. } => self.timeouts.config,
            Action::Destroy { .. } => self.timeouts.destroy,
        };
        limit.duration()
    }

    /// Takes a machine down that this run made, if it is there, and reads back that it is gone.
    pub(crate) async fn unmake(&self, identity: &Identity, uuid: Uuid) -> Result<(), StepError> {
        let view = self.look(identity).await?;
        let is_it = |machine: &&orch_plan::Machine| {
            machine
                .marks
                .as_ref()
                .is_some_and(|marks| marks.uuid == uuid && marks.is_of(&self.site, identity))
        };
        let Some(machine) = view.machines().iter().find(is_it) else {
            return Ok(());
        };
        let machine = orch_plan::MachineRef { id: machine.id.clone(), name: machine.name.clone(), uuid };
        let action = Action::Destroy { machine };
        self.act(identity, &action, 1).await.map(|_| ())
    }
}

/// What a node becomes that fetches its configuration itself, and how.
fn pulls(node: &NodePlan) -> Option<(Identity, (SpecName, Mode))> {
    node.up.iter().find_map(|action| match action {
        Action::Configure { config, mode: mode @ (Mode::Pull | Mode::Hybrid), .. } => {
            Some((node.identity.clone(), (config.spec.clone(), *mode)))
        }
        _ => None,
    })
}

fn outcome(changed: bool, notes: &[String]) -> Outcome<StepValue> {
    let outcome = if changed { Outcome::changed() } else { Outcome::unchanged() };
    outcome.with(StepValue { note: (!notes.is_empty()).then(|| notes.join("; ")) })
}
