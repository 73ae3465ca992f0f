//! How the tokens of every node stand. Nothing here touches a file.

use std::collections::{BTreeMap, BTreeSet};

use orch_model::token::{Chain, Refusal, TokenId};
use orch_model::{Alarm, Identity, NodeKeys};
use serde::{Deserialize, Serialize};

use super::{Entry, Revoked};

/// How the tokens of a node stand.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokenStanding {
    /// The last token that it showed.
    pub last: TokenId,
    /// When it did so for the first time, in seconds since 1970.
    pub since: u64,
    /// A token that was used up was shown: two have it, and one of them is not the node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alarm: Option<Alarm>,
    /// By what the node is known, as it said with the first token of its chain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keys: Option<NodeKeys>,
}

#[derive(Debug, Clone, Default)]
pub(super) struct Book {
    nodes: BTreeMap<Identity, TokenStanding>,
    revoked_chains: BTreeSet<Chain>,
    revoked_until: BTreeMap<Identity, Chain>,
}

impl Book {
    /// Whether a token would be taken if it were shown now.
    pub(super) fn would_take(&self, node: &Identity, id: TokenId) -> Result<(), Refusal> {
        let is_revoked = self.revoked_chains.contains(&id.chain)
            || self.revoked_until.get(node).is_some_and(|until| id.chain <= *until);
        if is_revoked {
            return Err(Refusal::Revoked);
        }
        // Of another chain the later one counts: the node was enrolled anew.
        let is_used_up = self.nodes.get(node).is_some_and(|standing| id < standing.last);
        if is_used_up { Err(Refusal::UsedUp) } else { Ok(()) }
    }

    /// Whether a token that is shown is taken, and if so, whether that is news.
    pub(super) fn show(&mut self, node: &Identity, id: TokenId, now: u64) -> Result<bool, Refusal> {
        self.would_take(node, id)?;
        let before = self.nodes.get(node);
        if before.is_some_and(|standing| standing.last == id) {
            return Ok(false);
        }
        // Whoever enrolled it anew has seen to the alarm; and it may be another machine, with keys of its own.
        let before = before.filter(|standing| standing.last.chain == id.chain).cloned();
        let (alarm, keys) = before.map_or((None, None), |standing| (standing.alarm, standing.keys));
        self.nodes.insert(node.clone(), TokenStanding { last: id, since: now, alarm, keys });
        Ok(true)
    }

    /// Takes note of the keys that come with a token that was just shown: whether that is news. Keys other than those that
    /// came first are somebody else's. A host key may be there that was not, and be shown that was not; neither goes back.
    pub(super) fn meet(&mut self, node: &Identity, keys: &NodeKeys) -> Result<bool, Refusal> {
        let Some(standing) = self.nodes.get_mut(node) else { return Err(Refusal::OtherKeys) };
        let Some(known) = &mut standing.keys else {
            standing.keys = Some(keys.clone());
            return Ok(true);
        };
        let is_new_host_key = known.host_key.is_none() && keys.host_key.is_some();
        if known.age != keys.age || (known.host_key != keys.host_key && !is_new_host_key) {
            return Err(Refusal::OtherKeys);
        }
        // A host key that was not there before was not shown either.
        let settled = keys.settled || (known.settled && !is_new_host_key);
        let is_news = is_new_host_key || settled != known.settled;
        *known = NodeKeys { settled, ..keys.clone() };
        Ok(is_news)
    }

    /// The same for keys that come with a report: a node is known by what it said when it asked, and not by this.
    pub(super) fn hear(&mut self, node: &Identity, keys: &NodeKeys) -> Result<bool, Refusal> {
        let is_known = self.nodes.get(node).is_some_and(|standing| standing.keys.is_some());
        if is_known { self.meet(node, keys) } else { Ok(false) }
    }

    /// Takes note that somebody else has a token of the node: the last one that was shown.
    pub(super) fn suspect(&mut self, node: &Identity, at: u64) -> Option<TokenId> {
        let id = self.nodes.get(node)?.last;
        self.is_new_misuse(node, id, at).then_some(id)
    }

    /// Takes note of a token that was used up and shown all the same. Whether that is news: one of a chain that the node
    /// does not use any more is not, and neither is the same one again.
    pub(super) fn is_new_misuse(&mut self, node: &Identity, id: TokenId, at: u64) -> bool {
        let Some(standing) = self.nodes.get_mut(node) else { return false };
        let is_known = standing.alarm.is_some_and(|alarm| alarm.id == id);
        if is_known || id.chain != standing.last.chain {
            return false;
        }
        standing.alarm = Some(Alarm { id, at });
        true
    }

    pub(super) fn revoke(&mut self, what: &Revoked) {
        match what {
            Revoked::Chain(chain) => drop(self.revoked_chains.insert(*chain)),
            Revoked::Node(node, until) => {
                let latest = self.revoked_until.get(node).copied().max(Some(*until));
                self.revoked_until.extend(latest.map(|latest| (node.clone(), latest)));
            }
        }
    }

    pub(super) fn standing(&self, node: &Identity) -> Option<&TokenStanding> {
        self.nodes.get(node)
    }

    pub(super) fn len(&self) -> usize {
        self.nodes.len()
    }

    pub(super) fn into_standings(self) -> BTreeMap<Identity, TokenStanding> {
        self.nodes
    }

    /// The shortest file that says all this.
    pub(super) fn text(&self) -> Vec<u8> {
        let mut entries = Vec::new();
        for (node, standing) in &self.nodes {
            entries.push(Entry::Used { node: node.clone(), id: standing.last, at: standing.since });
            let misused = |alarm: &Alarm| Entry::Misused { node: node.clone(), id: alarm.id, at: alarm.at };
            entries.extend(standing.alarm.as_ref().map(misused));
            let met = |keys: &NodeKeys| Entry::Met { node: node.clone(), keys: keys.clone() };
            entries.extend(standing.keys.as_ref().map(met));
        }
        let chains = self.revoked_chains.iter().map(|chain| Revoked::Chain(*chain));
        let nodes = self.revoked_until.iter().map(|(node, until)| Revoked::Node(node.clone(), *until));
        entries.extend(chains.chain(nodes).map(|what| Entry::Revoked { what, at: 0 }));
        entries.iter().flat_map(Entry::line).collect()
    }

    /// How many lines that file has.
    pub(super) fn lines(&self) -> usize {
        let lines_of = |standing: &TokenStanding| {
            1 + usize::from(standing.alarm.is_some()) + usize::from(standing.keys.is_some())
        };
        self.nodes.values().map(lines_of).sum::<usize>()
            + self.revoked_chains.len()
            + self.revoked_until.len()
    }

    /// Takes over what a line says.
    pub(super) fn take_over(&mut self, entry: &Entry) {
        match entry {
            Entry::Used { node, id, at } => drop(self.show(node, *id, *at)),
            Entry::Met { node, keys } => drop(self.meet(node, keys)),
            Entry::Misused { node, id, at } => drop(self.is_new_misuse(node, *id, *at)),
            Entry::Revoked { what, .. } => self.revoke(what),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(chain: u128, generation: u64) -> TokenId {
        TokenId { chain: Chain(chain), generation }
    }

    #[test]
    fn a_token_may_be_repeated_until_its_successor_was_shown() {
        let node: Identity = "m.a@h".parse().unwrap();
        let mut book = Book::default();
        for (shown, taken) in [
            (id(1, 0), Ok(true)),
            (id(1, 0), Ok(false)),
            (id(1, 1), Ok(true)),
            (id(1, 0), Err(Refusal::UsedUp)),
            (id(1, 1), Ok(false)),
            // An answer was lost with the disk: what we have signed is believed.
            (id(1, 5), Ok(true)),
            (id(2, 0), Ok(true)),
            (id(1, 6), Err(Refusal::UsedUp)),
        ] {
            assert_eq!(book.would_take(&node, shown), taken.map(|_| ()), "{shown}");
            assert_eq!(book.show(&node, shown, 0), taken, "{shown}");
        }
        assert!(!book.is_new_misuse(&node, id(1, 6), 0), "the node was enrolled anew since");
        assert_eq!(book.show(&node, id(2, 1), 0), Ok(true));
        assert!(book.is_new_misuse(&node, id(2, 0), 7) && !book.is_new_misuse(&node, id(2, 0), 8));
        assert_eq!(book.standing(&node).unwrap().alarm, Some(Alarm { id: id(2, 0), at: 7 }));
        book.show(&node, id(3, 0), 9).unwrap();
        assert_eq!(book.standing(&node).unwrap().alarm, None, "whoever enrols it anew has seen to it");
    }

    const AGES: [&str; 2] = [
        "age1zvkyg2lqzraa2lnjvqej32nkuu0ues2s82hzrye869xeexvn73equnujwj",
        "age1fmfmc0l6k84rwux53d7y8l8pw76acmwtkc9jyz5xewy4h4yukeysmjyeqh",
    ];

    fn keys(age: usize, host_key: Option<u8>, settled: bool) -> NodeKeys {
        const KEYS: [&str; 2] = [
            "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f",
            "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4g",
        ];
        let host_key = host_key.map(|number| KEYS[usize::from(number)].parse().unwrap());
        NodeKeys { age: AGES[age].parse().unwrap(), host_key, settled }
    }

    #[test]
    fn a_node_stays_who_it_said_it_was_and_what_is_known_of_it_only_becomes_more() {
        let node: Identity = "m.a@h".parse().unwrap();
        let mut book = Book::default();
        assert_eq!(book.meet(&node, &keys(0, None, true)), Err(Refusal::OtherKeys), "it showed no token");
        book.show(&node, id(1, 0), 0).unwrap();
        assert_eq!(book.hear(&node, &keys(1, None, true)), Ok(false), "a report pins nothing");
        assert_eq!(book.standing(&node).unwrap().keys, None);
        assert_eq!(book.meet(&node, &keys(0, None, true)), Ok(true));
        for (said, verdict, known) in [
            (keys(0, None, true), Ok(false), keys(0, None, true)),
            (keys(0, None, false), Ok(false), keys(0, None, true)),
            (keys(1, None, true), Err(Refusal::OtherKeys), keys(0, None, true)),
            (keys(0, Some(0), false), Ok(true), keys(0, Some(0), false)),
            (keys(0, Some(0), false), Ok(false), keys(0, Some(0), false)),
            (keys(0, Some(1), true), Err(Refusal::OtherKeys), keys(0, Some(0), false)),
            (keys(0, None, true), Err(Refusal::OtherKeys), keys(0, Some(0), false)),
            (keys(1, Some(0), true), Err(Refusal::OtherKeys), keys(0, Some(0), false)),
            (keys(0, Some(0), true), Ok(true), keys(0, Some(0), true)),
            (keys(0, Some(0), false), Ok(false), keys(0, Some(0), true)),
        ] {
            let mut other = book.clone();
            assert_eq!(other.hear(&node, &said), verdict, "told with a report: {said:?}");
            assert_eq!(book.meet(&node, &said), verdict, "{said:?}");
            for book in [&book, &other] {
                assert_eq!(book.standing(&node).unwrap().keys.as_ref(), Some(&known), "{said:?}");
            }
        }
        // Of another chain it may be another machine.
        book.show(&node, id(2, 0), 0).unwrap();
        assert_eq!(book.meet(&node, &keys(1, Some(1), false)), Ok(true));
    }

    #[test]
    fn somebody_else_with_a_token_of_a_node_is_an_alarm_once() {
        let node: Identity = "m.a@h".parse().unwrap();
        let mut book = Book::default();
        assert_eq!(book.suspect(&node, 5), None, "there is no token that he could have");
        book.show(&node, id(1, 3), 0).unwrap();
        assert_eq!(book.suspect(&node, 5), Some(id(1, 3)));
        assert_eq!(book.suspect(&node, 6), None, "the same one again is no news");
        assert_eq!(book.standing(&node).unwrap().alarm, Some(Alarm { id: id(1, 3), at: 5 }));
    }

    #[test]
    fn what_is_revoked_stays_so_and_only_that() {
        let (a, b): (Identity, Identity) = ("m.a@h".parse().unwrap(), "m.b@h".parse().unwrap());
        let mut book = Book::default();
        book.revoke(&Revoked::Chain(Chain(5)));
        book.revoke(&Revoked::Node(a.clone(), Chain(10)));
        book.revoke(&Revoked::Node(a.clone(), Chain(3)));
        assert_eq!(book.show(&b, id(5, 0), 0), Err(Refusal::Revoked));
        assert_eq!(book.show(&b, id(6, 0), 0), Ok(true));
        assert_eq!(book.show(&a, id(10, 4), 0), Err(Refusal::Revoked));
        assert_eq!(book.show(&a, id(11, 0), 0), Ok(true));
    }
}
