//! What an API was asked: when, what, and with what end. Never what was said, which is full of secrets.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// How many questions are told apart; older ones are counted alone.
const KEPT: usize = 20_000;

/// One question.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Call {
    /// When it came.
    pub at: Timestamp,
    /// Its method.
    pub method: String,
    /// Its path, without what stands behind the `?`.
    pub path: String,
    /// The status of the answer, also where that was not sent.
    pub status: u16,
}

/// The questions that an API was asked. Copies are the same.
#[derive(Debug, Clone, Default)]
pub struct Calls {
    asked: Arc<Mutex<(u64, VecDeque<Call>)>>,
}

impl Calls {
    /// How many there were.
    pub fn count(&self) -> u64 {
        self.asked.lock().expect("nobody panics while holding this").0
    }

    /// The latest of them, oldest first.
    pub fn list(&self) -> Vec<Call> {
        self.asked.lock().expect("nobody panics while holding this").1.iter().cloned().collect()
    }

    /// Forgets them all.
    pub fn reset(&self) {
        *self.asked.lock().expect("nobody panics while holding this") = (0, VecDeque::new());
    }

    pub(super) fn note(&self, call: Call) {
        let mut asked = self.asked.lock().expect("nobody panics while holding this");
        asked.0 += 1;
        if asked.1.len() == KEPT {
            asked.1.pop_front();
        }
        asked.1.push_back(call);
    }
}
