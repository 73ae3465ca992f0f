//! An API that kills whoever speaks to it at a given question.

use std::future::pending;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use orch_lab::{Answer, Api, Asked};
use rustix::process::{Pid, Signal, kill_process};

/// When a driver is killed, as seen from the question that it is killed at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Moment {
    /// It has asked, and what it asked for is not done. Whatever was answered before has been heard.
    Asked,
    /// It has asked, and what it asked for is done, but it never hears of that.
    Done,
    /// The answer is on its way, and may or may not be heard.
    Answered,
}

impl Moment {
    pub(super) const ALL: [Self; 3] = [Self::Asked, Self::Done, Self::Answered];
}

/// What is to become of the driver that speaks to an API. Copies are the same.
#[derive(Clone, Default)]
pub(super) struct Trap(Arc<Mutex<Set>>);

#[derive(Default)]
struct Set {
    /// How many questions there were since the trap was set.
    asked: usize,
    at: Option<(usize, Moment)>,
    driver: Option<Pid>,
}

impl Trap {
    /// Counts anew, and has the driver that `start` starts killed at a question.
    pub(super) fn set<T>(&self, at: Option<(usize, Moment)>, start: impl FnOnce() -> (T, Pid)) -> T {
        // Nobody is answered before it is known whom to kill.
        let mut set = self.0.lock().unwrap();
        let (started, driver) = start();
        *set = Set { asked: 0, at, driver: Some(driver) };
        started
    }

    /// Kills nobody any more: whoever was to be killed is gone, and another may have its pid.
    pub(super) fn disarm(&self) {
        self.0.lock().unwrap().driver = None;
    }

    /// How many questions there were since it was set.
    pub(super) fn asked(&self) -> usize {
        self.0.lock().unwrap().asked
    }

    /// What is to happen at the question that has just come.
    fn springs(&self) -> Option<Moment> {
        let mut set = self.0.lock().unwrap();
        set.asked += 1;
        let (at, moment) = set.at?;
        (at == set.asked && set.driver.is_some()).then_some(moment)
    }

    fn kill(&self) {
        // Nobody has waited for it as long as it is here, so the pid is still its own.
        if let Some(driver) = self.0.lock().unwrap().driver.take() {
            let _ = kill_process(driver, Signal::KILL);
        }
    }
}

/// An API with a trap before it.
pub(super) struct Snare {
    pub(super) api: Arc<dyn Api>,
    pub(super) trap: Trap,
}

#[async_trait]
impl Api for Snare {
    async fn answer(&self, asked: Asked) -> Answer {
        match self.trap.springs() {
            None => self.api.answer(asked).await,
            Some(Moment::Asked) => {
                self.trap.kill();
                pending().await
            }
            Some(Moment::Done) => {
                self.trap.kill();
                self.api.answer(asked).await;
                pending().await
            }
            Some(Moment::Answered) => {
                let answer = self.api.answer(asked).await;
                let trap = self.trap.clone();
                tokio::spawn(async move { trap.kill() });
                answer
            }
        }
    }
}
