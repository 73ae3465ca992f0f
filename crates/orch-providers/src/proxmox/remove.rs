//! Taking a machine down, with everything that was made for it.

use orch_run::{Done, Progress};
use uuid::Uuid;

use super::config::Config;
use super::guest::{GuestKind, Listed, Spot, Status};
use super::maker::Maker;
use super::mark::Bears;
use super::trouble::Trouble;

impl Maker {
    /// Destroys the machine that bears the mark, and no other, whatever its number.
    pub(super) async fn destroy(&self, id: &str, uuid: Uuid, progress: &Progress) -> Result<Done, Trouble> {
        let (mut done, mut marks) = (Done::Unchanged, None);
        let mut seed = Ok(());
        let mut tries = self.tries();
        while let Some((spot, config)) = self.locate(id, uuid).await? {
            if config.bears().uuid() != Some(uuid) {
                // After it was destroyed here, others may have taken its number.
                let not_ours = Trouble::NotOurs { machine: id.to_owned(), expected: uuid };
                return if done == Done::Changed { Ok(done) } else { Err(not_ours) };
            }
            if config.word("protection") == Some("1") {
                return Err(Trouble::Refused(format!(
                    "machine `{id}` is protected against being removed: `qm set {} --protection 0` on the host ends that",
                    spot.id.vmid
                )));
            }
            done = Done::Changed;
            marks = config.bears().marks().cloned();
            let stopped;
            // While it has a mark it can be found again, so what was made for it goes first.
            (stopped, seed) =
                tokio::join!(self.stop_for_good(&spot, progress), self.remove_seed_of(&spot, &config, uuid));
            let removed = async {
                stopped?;
                progress.say("removing");
                // Stopping may have taken long, and a number that is free is given to others.
                if !self.still_bears(&spot, uuid).await? {
                    return Err(Trouble::NotOurs { machine: id.to_owned(), expected: uuid });
                }
                // Not with disks that it does not refer to: they may be somebody's who had the number before.
                let path = spot.path("?purge=1");
                let answer = self.caller.delete(&path).await?;
                self.done(&answer, &format!("removing `{id}`")).await
            };
            match removed.await {
                Ok(()) => break,
                Err(trouble) if trouble.is_gone() => break,
                Err(trouble) => tries.again(trouble).await?,
            }
        }
        if let (Some(marks), Ok(id)) = (marks, id.parse::<super::guest::GuestId>()) {
            self.destroyed.lock().expect("nobody panics while holding this").insert(id.vmid, marks);
        }
        self.forget(uuid);
        seed.map(|()| done)
    }

    /// Whether a machine is there and bears the mark at this moment; one that is gone is not somebody else's.
    async fn still_bears(&self, spot: &Spot, uuid: Uuid) -> Result<bool, Trouble> {
        Ok(self.config(spot).await?.is_none_or(|config| config.bears().uuid() == Some(uuid)))
    }

    async fn stop_for_good(&self, spot: &Spot, progress: &Progress) -> Result<(), Trouble> {
        match self.current(spot).await? {
            Some(current) if current.status != Status::Stopped => self.switch_off(spot, progress).await,
            _ => Ok(()),
        }
    }

    async fn remove_seed_of(&self, spot: &Spot, config: &Config, uuid: Uuid) -> Result<(), Trouble> {
        if spot.id.kind == GuestKind::Lxc {
            return Ok(());
        }
        // A machine that was copied by hand shares what it was given with the copy.
        let bears_it = |listed: &Listed| Bears::of(&listed.tags, None).uuid() == Some(uuid);
        if self.list().await?.iter().any(|listed| listed.spot.id != spot.id && bears_it(listed)) {
            return Ok(());
        }
        let removed = self.remove_seed(uuid).await;
        // It was taken away when the machine was settled, unless somebody was interrupted just then.
        let is_settled = matches!(config.bears(), Bears::Made(written) if written.first.is_none());
        removed.or_else(|trouble| if is_settled { Ok(()) } else { Err(trouble) })
    }
}

/// The disc that a machine was given, where it is still in it.
pub(super) fn disc_of(config: &Config, uuid: Uuid) -> Option<String> {
    let volume = config.word("ide2")?.split(',').next()?;
    (super::seed::uuid_in(volume) == Some(uuid)).then(|| volume.to_owned())
}
