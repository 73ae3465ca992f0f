//! Machines on and off.

use orch_run::{Done, Progress};

use super::guest::{Spot, Status};
use super::maker::Maker;
use super::trouble::Trouble;

impl Maker {
    /// Has a machine run. One that runs goes on.
    pub(super) async fn ensure_running(&self, spot: &Spot, progress: &Progress) -> Result<Done, Trouble> {
        if self.status(spot).await? == Status::Running {
            return Ok(Done::Unchanged);
        }
        self.switch_on(spot, progress).await?;
        Ok(Done::Changed)
    }

    /// Starts a machine that is off.
    pub(super) async fn switch_on(&self, spot: &Spot, progress: &Progress) -> Result<(), Trouble> {
        progress.say("starting");
        self.switch(spot, "/status/start", "starting it", Status::Running).await
    }

    /// Switches a machine off at once.
    pub(super) async fn switch_off(&self, spot: &Spot, progress: &Progress) -> Result<(), Trouble> {
        progress.say("stopping");
        self.switch(spot, "/status/stop", "stopping it", Status::Stopped).await
    }

    /// Has a machine come down by itself and start again, so that what it was given takes effect.
    pub(super) async fn restart(&self, spot: &Spot, progress: &Progress) -> Result<(), Trouble> {
        progress.say("restarting, for the change takes effect only then");
        let timeout = vec![("timeout", self.pace().shutdown.as_secs().max(1).to_string())];
        let mut tries = self.tries();
        loop {
            let shut = async {
                let answer = self.caller.post(&spot.path("/status/shutdown"), &timeout).await?;
                self.done(&answer, "shutting it down").await
            };
            match shut.await {
                Ok(()) => break,
                Err(trouble) => tries.again(trouble).await?,
            }
            if self.status(spot).await? != Status::Running {
                break;
            }
        }
        self.switch_on(spot, progress).await
    }

    /// Has it done, and again where the answer was lost and it is not so.
    async fn switch(&self, spot: &Spot, path: &str, what: &str, wanted: Status) -> Result<(), Trouble> {
        let mut tries = self.tries();
        loop {
            let switched = async {
                let answer = self.caller.post(&spot.path(path), &Vec::new()).await?;
                self.done(&answer, what).await
            };
            let Err(trouble) = switched.await else { return Ok(()) };
            // A task may have failed for the very reason that it is so already.
            if matches!(trouble, Trouble::Task { .. }) || trouble.is_uncertain() {
                match self.status(spot).await {
                    Ok(status) if status == wanted => return Ok(()),
                    Err(_) if !trouble.is_uncertain() => return Err(trouble),
                    _ => {}
                }
            }
            tries.again(trouble).await?;
        }
    }

    async fn status(&self, spot: &Spot) -> Result<Status, Trouble> {
        let gone = || Trouble::Refused(format!("machine `{}` is gone", spot.id));
        Ok(self.current(spot).await?.ok_or_else(gone)?.status)
    }
}
