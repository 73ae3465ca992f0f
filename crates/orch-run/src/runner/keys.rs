//! By what nodes are known: what a node says of its own keys is written on its machine, before it puts away the key that it
//! was made with; and a node that reads sops files itself is let in, and later shown out.

use std::sync::Arc;

use orch_model::{AgeRecipient, Config, Identity, NodeKeys};
use orch_plan::{Applied, Keys, Machine};
use uuid::Uuid;

use super::carry_out::Work;
use super::step_error::StepError;
use crate::provider::Pin;
use crate::transport::{Target, TransportError};
use crate::treasury::{Treasury, TreasuryError};

/// What is to be written on a machine.
#[derive(Clone, Default)]
struct Words {
    keys: Option<NodeKeys>,
    applied: Option<Applied>,
    ssh_port: Option<u16>,
}

impl Work {
    /// Writes on a machine what its node became and by what it is known; in words, what else is worth telling. Where a look
    /// shows both already, nothing is written.
    pub(super) async fn write_down(
        &self,
        target: &Target,
        config: &Config,
        keys: Option<&NodeKeys>,
    ) -> Result<Vec<String>, StepError> {
        let Some(machine) = self.machine_of(&target.identity, target.uuid).await? else {
            return Ok(Vec::new());
        };
        let applied = Some(Applied::Digest(config.digest())).filter(|applied| machine.applied != *applied);
        let words = Words { applied, ssh_port: Some(config.role.ssh.port), ..Words::default() };
        match keys {
            Some(keys) => self.know(target, config, machine.keys, keys, words).await,
            None if applied.is_some() => {
                self.pin(target, words).await?;
                Ok(Vec::new())
            }
            None => Ok(Vec::new()),
        }
    }

    /// Takes the claim off a machine that it has a configuration, before it is given another one: whoever is cut off in between
    /// leaves a machine of which nobody says what it is, and not one of which something wrong is said.
    pub(super) async fn take_back(&self, target: &Target, config: &Config) -> Result<(), StepError> {
        if !self.place(&target.identity)?.provider.is_told() {
            return Ok(());
        }
        let machine = self.machine_of(&target.identity, target.uuid).await?;
        let claims = |machine: &Machine| matches!(machine.applied, Applied::Digest(applied) if applied != config.digest());
        if machine.as_ref().is_some_and(claims) {
            self.pin(target, Words { applied: Some(Applied::Never), ..Words::default() }).await?;
        }
        Ok(())
    }

    /// Makes a node known by its own keys. Until the keys are on its machine, the one that it was made with must stay: whoever
    /// is cut off in between finds the way to it by that.
    async fn know(
        &self,
        target: &Target,
        config: &Config,
        known: Keys,
        keys: &NodeKeys,
        words: Words,
    ) -> Result<Vec<String>, StepError> {
        let mut notes = Vec::new();
        match known {
            Keys::Unknown if config.role.enroll_recipient => return Err(unmarkable(target).into()),
            Keys::Unknown => return Ok(notes),
            Keys::Known(known) if known == *keys && keys.settled => {
                if words.applied.is_some() {
                    self.pin(target, Words { keys: Some(keys.clone()), ..words }).await?;
                }
                return Ok(notes);
            }
            Keys::Known(known) if known.age != keys.age => {
                self.must_be_its_own(target, keys).await?;
                notes.push("it has another age key than before".to_owned());
                // Nobody would know the old one any more.
                notes.extend(self.show_out(&target.identity, known.age).await?);
            }
            Keys::Awaited => self.must_be_its_own(target, keys).await?,
            Keys::Known(_) => {}
        }
        target.progress.say("writing down its keys");
        if config.role.enroll_recipient {
            // Known before it is let in: whoever destroys it must know whom to show out. Not settled before that is done:
            // whoever is cut off in between would find nothing left to do.
            let unsettled = NodeKeys { settled: false, ..keys.clone() };
            self.pin(target, Words { keys: Some(unsettled), applied: None, ..words.clone() }).await?;
            notes.extend(self.admit(config, keys).await?);
        }
        // Where its SSH server answers now must be known before it is connected to again.
        let applied = words.applied.filter(|_| keys.settled);
        self.pin(target, Words { keys: Some(keys.clone()), applied, ..words.clone() }).await?;
        if !keys.settled {
            let settled = self.settle(target).await?;
            if (&settled.age, &settled.host_key, settled.settled) != (&keys.age, &keys.host_key, true) {
                let why = "it said other keys than a moment before".into();
                return Err(TransportError::Impostor { node: target.identity.clone(), why }.into());
            }
            self.pin(target, Words { keys: Some(settled), ..words }).await?;
        }
        Ok(notes)
    }

    /// Recipients are public, so a node could say that it is somebody else: it would be shown secrets that it cannot open, and
    /// whoever it said it was would be shown out with it. A key that is new is nobody's yet.
    async fn must_be_its_own(&self, target: &Target, keys: &NodeKeys) -> Result<(), StepError> {
        let age = keys.age.clone();
        let is_taken =
            self.treasury.has_files() && self.ask_treasury(move |treasury| treasury.is_known(&age)).await?;
        let view = self.look(&target.identity).await?;
        let others = view
            .machines()
            .iter()
            .filter(|machine| machine.marks.as_ref().is_none_or(|marks| marks.uuid != target.uuid));
        let is_anothers =
            others.filter_map(|machine| machine.keys.known()).any(|known| known.age == keys.age);
        if is_taken || is_anothers {
            let why = format!("it says that its key is `{}`, which is somebody else's", keys.age);
            return Err(TransportError::Impostor { node: target.identity.clone(), why }.into());
        }
        Ok(())
    }

    async fn pin(&self, target: &Target, words: Words) -> Result<(), StepError> {
        let Words { keys, applied, ssh_port } = words;
        let pin = Pin { identity: target.identity.clone(), uuid: target.uuid, keys, applied, ssh_port };
        let answer = self.place(&target.identity)?.provider.pin(&pin, &self.permit).await;
        let error = match answer {
            Err(error) if error.is_passing() => error,
            done => return done.map(drop).map_err(StepError::from),
        };
        // The answer may have been lost, and not what it was about.
        let machine = self.machine_of(&target.identity, target.uuid).await?;
        let is_written = machine.is_some_and(|machine| {
            pin.keys.is_none_or(|keys| machine.keys == Keys::Known(keys))
                && pin.applied.is_none_or(|applied| machine.applied == applied)
        });
        if is_written { Ok(()) } else { Err(error.into()) }
    }

    /// Has a node put away the key that it was made with. Whoever gives no answer is asked once more: it may have done so, and
    /// nobody but itself can say.
    async fn settle(&self, target: &Target) -> Result<NodeKeys, StepError> {
        let transport = &self.place(&target.identity)?.transport;
        match transport.settle(target, &self.permit).await {
            Err(error) if error.is_passing() => Ok(transport.settle(target, &self.permit).await?),
            settled => Ok(settled?),
        }
    }

    /// By what the machine of a node is known.
    async fn keys_of(&self, identity: &Identity, uuid: Uuid) -> Result<Keys, StepError> {
        Ok(self.machine_of(identity, uuid).await?.map(|machine| machine.keys).unwrap_or_default())
    }

    /// The machine of a node as it is now, where it is there.
    async fn machine_of(&self, identity: &Identity, uuid: Uuid) -> Result<Option<Machine>, StepError> {
        let view = self.look(identity).await?;
        let bears = |machine: &&Machine| {
            machine
                .marks
                .as_ref()
                .is_some_and(|marks| marks.uuid == uuid && marks.is_of(&self.site, identity))
        };
        Ok(view.machines().iter().find(bears).cloned())
    }

    /// Lets a node in that is known already, before it is configured: one that is as wanted is not looked at again.
    pub(super) async fn admit_known(
        &self,
        target: &Target,
        config: &Config,
    ) -> Result<Vec<String>, StepError> {
        if !config.role.enroll_recipient {
            return Ok(Vec::new());
        }
        match self.keys_of(&target.identity, target.uuid).await? {
            Keys::Known(keys) => self.admit(config, &keys).await,
            Keys::Unknown | Keys::Awaited => Ok(Vec::new()),
        }
    }

    /// Lets a node read the sops files that hold its secrets, where it is to read them itself.
    async fn admit(&self, config: &Config, keys: &NodeKeys) -> Result<Vec<String>, StepError> {
        if !config.role.enroll_recipient {
            return Ok(Vec::new());
        }
        let (config, recipient) = (config.clone(), keys.age.clone());
        self.ask_treasury(move |treasury| treasury.admit(&config, &recipient)).await
    }

    /// Takes a node that is to be destroyed off every sops file. Before it is gone: afterwards nobody would know its key.
    pub(super) async fn dismiss(&self, identity: &Identity, uuid: Uuid) -> Result<Vec<String>, StepError> {
        if !self.treasury.has_files() {
            return Ok(Vec::new());
        }
        let Keys::Known(keys) = self.keys_of(identity, uuid).await? else { return Ok(Vec::new()) };
        self.show_out(identity, keys.age).await
    }

    /// Takes whoever has this key off every sops file.
    async fn show_out(&self, identity: &Identity, age: AgeRecipient) -> Result<Vec<String>, StepError> {
        if !self.treasury.has_files() {
            return Ok(Vec::new());
        }
        let node = identity.clone();
        self.ask_treasury(move |treasury| treasury.dismiss(&node, &age)).await
    }

    /// Files are read and keys are tried, so others are not kept waiting meanwhile.
    async fn ask_treasury<T: Send + 'static>(
        &self,
        ask: impl FnOnce(&dyn Treasury) -> Result<T, TreasuryError> + Send + 'static,
    ) -> Result<T, StepError> {
        let treasury = Arc::clone(&self.treasury);
        let asked = tokio::task::spawn_blocking(move || ask(&*treasury)).await;
        let ended = |error: tokio::task::JoinError| TreasuryError {
            what: format!("the secrets could not be worked on: {error}"),
            hint: "run again".into(),
        };
        asked.map_err(ended).and_then(|answer| answer).map_err(StepError::Treasury)
    }
}

/// A machine on which nothing can be written could not be shown out again.
fn unmarkable(target: &Target) -> TransportError {
    let why = "its host does not keep what it is known by, so it cannot be let in to sops files".into();
    TransportError::Unasked { node: target.identity.clone(), why }
}
