//! Who is connected. Where there is no room, the one goes that has been there longest without showing anything good: so
//! whoever only holds places loses them to those who have something to ask.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard};

use tokio::sync::Notify;

#[derive(Debug)]
pub(crate) struct Crowd {
    room: usize,
    inside: Mutex<Inside>,
}

#[derive(Debug, Default)]
struct Inside {
    next: u64,
    /// Those who have not shown anything good yet, the first one first.
    strangers: BTreeMap<u64, Arc<Notify>>,
    known: BTreeSet<u64>,
}

/// A place in the crowd, given up when this goes.
#[derive(Debug)]
pub(crate) struct Guest {
    crowd: Arc<Crowd>,
    number: u64,
    sent_away: Arc<Notify>,
}

impl Crowd {
    pub(crate) fn with_room_for(room: usize) -> Arc<Self> {
        Arc::new(Self { room, inside: Mutex::default() })
    }

    /// Lets somebody in; nothing where everybody inside is worth more.
    pub(crate) fn enter(self: &Arc<Self>) -> Option<Guest> {
        let mut inside = self.inside();
        if inside.strangers.len() + inside.known.len() >= self.room {
            let (_, oldest) = inside.strangers.pop_first()?;
            oldest.notify_one();
        }
        let (number, sent_away) = (inside.next, Arc::new(Notify::new()));
        inside.next += 1;
        inside.strangers.insert(number, Arc::clone(&sent_away));
        Some(Guest { crowd: Arc::clone(self), number, sent_away })
    }

    fn inside(&self) -> MutexGuard<'_, Inside> {
        self.inside.lock().expect("nobody panics while holding this")
    }
}

impl Guest {
    /// It has shown something good, and is not sent away any more.
    pub(crate) fn is_known(&self) {
        let mut inside = self.crowd.inside();
        if inside.strangers.remove(&self.number).is_some() {
            inside.known.insert(self.number);
        }
    }

    /// Waits until it is sent away.
    pub(crate) async fn is_sent_away(&self) {
        self.sent_away.notified().await;
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        let mut inside = self.crowd.inside();
        inside.strangers.remove(&self.number);
        inside.known.remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_stranger_that_came_first_goes_first_and_those_who_are_known_stay() {
        let crowd = Crowd::with_room_for(2);
        let (known, stranger) = (crowd.enter().unwrap(), crowd.enter().unwrap());
        known.is_known();
        let next = crowd.enter().unwrap();
        stranger.is_sent_away().await;
        drop(stranger);
        next.is_known();
        assert!(crowd.enter().is_none(), "everybody inside is known");
        drop(known);
        assert!(crowd.enter().is_some());
    }
}
