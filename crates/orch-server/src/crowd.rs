//! Who is connected. Where there is no room, one goes that has not shown anything good: the first that came from where most
//! of them come from. So whoever only holds places takes them from itself, and not from those who have something to ask.
//! Those who have are not sent away for strangers, but none of them holds more than a few places either.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard};

use orch_model::Identity;
use tokio::sync::Notify;

/// A node waits on one connection, and fetches and reports on another. So many let it forget a few of them.
const PLACES_OF_A_NODE: usize = 8;

#[derive(Debug)]
pub(crate) struct Crowd {
    room: usize,
    inside: Mutex<Inside>,
}

#[derive(Debug, Default)]
struct Inside {
    next: u64,
    guests: BTreeMap<u64, Place>,
    /// Those who have not shown anything good yet, by where they come from.
    strangers: BTreeMap<IpAddr, BTreeSet<u64>>,
    /// The others, by who they are.
    known: BTreeMap<Identity, BTreeSet<u64>>,
}

#[derive(Debug)]
struct Place {
    who: Who,
    sent_away: Arc<Notify>,
}

#[derive(Debug, Clone)]
enum Who {
    Stranger(IpAddr),
    Node(Identity),
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
    pub(crate) fn enter(self: &Arc<Self>, from: IpAddr) -> Option<Guest> {
        let mut inside = self.inside();
        if inside.guests.len() >= self.room {
            let first = inside.first_of_the_most()?;
            inside.send_away(first);
        }
        let (number, sent_away) = (inside.next, Arc::new(Notify::new()));
        inside.next += 1;
        let who = Who::Stranger(network(from));
        inside.add(number, Place { who, sent_away: Arc::clone(&sent_away) });
        Some(Guest { crowd: Arc::clone(self), number, sent_away })
    }

    fn inside(&self) -> MutexGuard<'_, Inside> {
        self.inside.lock().expect("nobody panics while holding this")
    }
}

impl Inside {
    /// Of the strangers that come from where most of them do, the one that came first.
    fn first_of_the_most(&self) -> Option<u64> {
        self.strangers.values().max_by_key(|numbers| numbers.len())?.first().copied()
    }

    fn add(&mut self, number: u64, place: Place) {
        match &place.who {
            Who::Stranger(from) => self.strangers.entry(*from).or_default().insert(number),
            Who::Node(node) => self.known.entry(node.clone()).or_default().insert(number),
        };
        self.guests.insert(number, place);
    }

    fn remove(&mut self, number: u64) -> Option<Place> {
        let place = self.guests.remove(&number)?;
        match &place.who {
            Who::Stranger(from) => leave(&mut self.strangers, from, number),
            Who::Node(node) => leave(&mut self.known, node, number),
        }
        Some(place)
    }

    fn send_away(&mut self, number: u64) {
        if let Some(place) = self.remove(number) {
            place.sent_away.notify_one();
        }
    }
}

impl Guest {
    /// It has shown that it is this node, and is not sent away for strangers any more. Where the node has too many places,
    /// it gives up the one that it has had for longest.
    pub(crate) fn is_known(&self, node: &Identity) {
        let mut inside = self.crowd.inside();
        if !inside.guests.get(&self.number).is_some_and(|place| matches!(place.who, Who::Stranger(_))) {
            return;
        }
        let Some(place) = inside.remove(self.number) else { return };
        inside.add(self.number, Place { who: Who::Node(node.clone()), ..place });
        let too_old = inside.known.get(node).filter(|numbers| numbers.len() > PLACES_OF_A_NODE);
        if let Some(oldest) = too_old.and_then(BTreeSet::first).copied() {
            inside.send_away(oldest);
        }
    }

    /// Waits until it is sent away.
    pub(crate) async fn is_sent_away(&self) {
        self.sent_away.notified().await;
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        self.crowd.inside().remove(self.number);
    }
}

fn leave<K: Ord>(places: &mut BTreeMap<K, BTreeSet<u64>>, key: &K, number: u64) {
    if let Some(numbers) = places.get_mut(key) {
        numbers.remove(&number);
        if numbers.is_empty() {
            places.remove(key);
        }
    }
}

/// Where somebody comes from. Of IPv6 everybody has a whole network of addresses.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() >> 64 << 64).into(),
        address @ IpAddr::V4(_) => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn from(last: u8) -> IpAddr {
        [127, 0, 0, last].into()
    }

    fn is_sent_away(guest: &Guest) -> bool {
        !guest.crowd.inside().guests.contains_key(&guest.number)
    }

    #[tokio::test]
    async fn the_stranger_that_came_first_goes_first_and_those_who_are_known_stay() {
        let crowd = Crowd::with_room_for(2);
        let node: Identity = "m.a@h".parse().unwrap();
        let (known, stranger) = (crowd.enter(from(1)).unwrap(), crowd.enter(from(1)).unwrap());
        known.is_known(&node);
        let next = crowd.enter(from(1)).unwrap();
        stranger.is_sent_away().await;
        drop(stranger);
        next.is_known(&node);
        assert!(crowd.enter(from(1)).is_none(), "everybody inside is known");
        drop(known);
        assert!(crowd.enter(from(1)).is_some());
    }

    #[test]
    fn whoever_comes_most_often_is_sent_away_and_not_who_came_first() {
        let crowd = Crowd::with_room_for(4);
        let quiet = crowd.enter(from(1)).unwrap();
        let many: Vec<Guest> = (0..10).map(|_| crowd.enter(from(2)).unwrap()).collect();
        assert!(!is_sent_away(&quiet));
        assert_eq!(many.iter().filter(|guest| !is_sent_away(guest)).count(), 3);
        let network = ["fd00::1", "fd00::2", "fd00::3"].map(|address| address.parse().unwrap());
        let crowd = Crowd::with_room_for(3);
        let quiet = crowd.enter("fd00:0:0:1::1".parse().unwrap()).unwrap();
        let many = network.map(|address| crowd.enter(address).unwrap());
        assert!(
            !is_sent_away(&quiet) && is_sent_away(&many[0]),
            "a network of IPv6 is one place to come from"
        );
    }

    #[test]
    fn a_node_holds_a_few_places_and_gives_up_the_oldest() {
        let crowd = Crowd::with_room_for(100);
        let (a, b): (Identity, Identity) = ("m.a@h".parse().unwrap(), "m.b@h".parse().unwrap());
        let guests: Vec<Guest> = (0..PLACES_OF_A_NODE + 2).map(|_| crowd.enter(from(1)).unwrap()).collect();
        let other = crowd.enter(from(1)).unwrap();
        other.is_known(&b);
        for guest in &guests {
            guest.is_known(&a);
            guest.is_known(&a);
        }
        let gone: Vec<bool> = guests.iter().map(is_sent_away).collect();
        assert_eq!(gone.iter().filter(|gone| **gone).count(), 2);
        assert!(gone[0] && gone[1] && !is_sent_away(&other));
        drop(guests);
        assert_eq!(crowd.inside().guests.len(), 1);
        drop(other);
        assert!(crowd.inside().known.is_empty() && crowd.inside().strangers.is_empty());
    }
}
