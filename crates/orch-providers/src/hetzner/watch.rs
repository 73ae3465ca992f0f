//! Waiting for actions: one task asks for all of them at once, however many orders wait.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::{Notify, oneshot};
use tokio::time::{Instant, sleep, timeout_at};

use super::answer::Action;
use super::call::{Caller, PAGE};
use super::trouble::CallError;

/// Per tenth action that is waited for, the least time between two questions grows by its own length: more actions at once
/// are more questions each time.
const CROWD: u32 = 10;
/// An action is asked about again after this part of its age, so that its end is seen soon after, as ends go.
const PART: u32 = 10;

/// Who waits for actions on behalf of all orders.
pub(super) struct Watch {
    caller: Arc<Caller>,
    waiting: Mutex<Waiting>,
    arrived: Notify,
}

#[derive(Default)]
struct Waiting {
    actions: BTreeMap<u64, Awaited>,
    is_watched: bool,
}

struct Awaited {
    since: Instant,
    until: Instant,
    /// Everybody who waits for it.
    tell: Vec<oneshot::Sender<Result<(), CallError>>>,
}

impl Awaited {
    fn tell(self, end: &Result<(), CallError>) {
        for tell in self.tell {
            // Whoever has stopped waiting need not hear it.
            let _ = tell.send(end.clone());
        }
    }
}

impl Watch {
    pub(super) fn new(caller: Arc<Caller>) -> Arc<Self> {
        Arc::new(Self { caller, waiting: Mutex::default(), arrived: Notify::new() })
    }

    /// Waits until all of these have ended; the first that failed is what went wrong.
    pub(super) async fn ended(
        self: &Arc<Self>,
        actions: impl IntoIterator<Item = Action>,
        until: Instant,
    ) -> Result<(), CallError> {
        let mut awaited = Vec::new();
        for action in actions {
            match action.end() {
                Some(end) => end?,
                None => awaited.push((self.register(action.id, until), action.command)),
            }
        }
        for (ended, command) in awaited {
            match timeout_at(until, ended).await {
                Ok(Ok(end)) => end?,
                Ok(Err(_)) => return Err(CallError::Odd(format!("nobody waits for `{command}` any more"))),
                Err(_) => return Err(CallError::Late(format!("`{command}` has not come to its end"))),
            }
        }
        Ok(())
    }

    fn register(self: &Arc<Self>, id: u64, until: Instant) -> oneshot::Receiver<Result<(), CallError>> {
        let (tell, told) = oneshot::channel();
        let is_watched = {
            let mut waiting = self.waiting.lock().expect("nobody panics while holding this");
            let fresh = || Awaited { since: Instant::now(), until, tell: Vec::new() };
            let awaited = waiting.actions.entry(id).or_insert_with(fresh);
            awaited.until = awaited.until.max(until);
            awaited.tell.push(tell);
            std::mem::replace(&mut waiting.is_watched, true)
        };
        if is_watched {
            self.arrived.notify_one();
        } else {
            tokio::spawn(Arc::clone(self).watch());
        }
        told
    }

    /// Asks until nobody waits any more.
    async fn watch(self: Arc<Self>) {
        let mut last = Instant::now();
        loop {
            let Some(interval) = self.interval() else { return };
            let due = last + interval;
            tokio::select! {
                () = tokio::time::sleep_until(due) => {}
                // Somebody new may want to be asked about sooner.
                () = self.arrived.notified() => continue,
            }
            last = Instant::now();
            if let Err(error) = self.ask().await {
                self.give_up(&error);
                // Who comes now finds that it was not long ago.
                sleep(self.caller.pace.first_poll).await;
            }
        }
    }

    /// The time between two questions now; nothing where nobody waits, and then nobody watches.
    fn interval(&self) -> Option<Duration> {
        let mut waiting = self.waiting.lock().expect("nobody panics while holding this");
        waiting.actions.retain(|_, awaited| {
            awaited.tell.retain(|tell| !tell.is_closed());
            !awaited.tell.is_empty()
        });
        let Some(youngest) = waiting.actions.values().map(|awaited| awaited.since).max() else {
            waiting.is_watched = false;
            return None;
        };
        let pace = &self.caller.pace;
        let crowd = u32::try_from(waiting.actions.len()).unwrap_or(u32::MAX) / CROWD;
        let least = pace.first_poll.saturating_mul(crowd.saturating_add(1)).min(pace.longest_poll);
        Some((youngest.elapsed() / PART).clamp(least, pace.longest_poll))
    }

    async fn ask(&self) -> Result<(), CallError> {
        let (ids, until) = {
            let waiting = self.waiting.lock().expect("nobody panics while holding this");
            let ids: Vec<u64> = waiting.actions.keys().copied().collect();
            let until = waiting.actions.values().map(|awaited| awaited.until).max();
            (ids, until.unwrap_or_else(Instant::now))
        };
        for some in ids.chunks(PAGE) {
            let query: Vec<String> = some.iter().map(|id| format!("id={id}")).collect();
            let answered: Vec<Action> =
                self.caller.list("/actions", "actions", &query.join("&"), until).await?;
            self.tell(some, &answered);
        }
        Ok(())
    }

    fn tell(&self, asked: &[u64], answered: &[Action]) {
        let mut waiting = self.waiting.lock().expect("nobody panics while holding this");
        for id in asked {
            let end = match answered.iter().find(|action| action.id == *id) {
                Some(action) => action.end(),
                None => Some(Err(CallError::Odd(format!("GET /actions: action {id} is not known any more")))),
            };
            if let Some(end) = end
                && let Some(awaited) = waiting.actions.remove(id)
            {
                awaited.tell(&end);
            }
        }
    }

    fn give_up(&self, error: &CallError) {
        let mut waiting = self.waiting.lock().expect("nobody panics while holding this");
        for (_, awaited) in std::mem::take(&mut waiting.actions) {
            awaited.tell(&Err(error.clone()));
        }
    }
}
