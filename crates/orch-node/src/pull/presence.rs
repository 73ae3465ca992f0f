//! What a node that asks for its configuration says of itself: whom its secrets can be sealed for, by what it is known, and
//! what it has already. The same, but for what it has, is said with whatever it tells.

use orch_model::pull::{AGE_HEADER, HOLDS_DIGITS, HOLDS_HEADER, HOST_KEY_HEADER, MOST_HOLDS, SETTLED_HEADER};
use orch_model::{NodeKeys, SecretDigest};

/// What is said in the head of a request.
pub(super) type Headers = Vec<(&'static str, String)>;

/// What a node that asks says of itself.
pub(super) struct Presence {
    pub(super) keys: NodeKeys,
    /// By what the values are known that it holds.
    pub(super) holds: Vec<SecretDigest>,
}

impl Presence {
    pub(super) fn headers(&self) -> Headers {
        let mut headers = known_by(&self.keys);
        if !self.holds.is_empty() {
            // So many digits tell them apart. Whether it has what it was sent is known here by all of them.
            let first = |digest: &SecretDigest| digest.as_str().chars().take(HOLDS_DIGITS).collect();
            let holds: Vec<String> = self.holds.iter().take(MOST_HOLDS).map(first).collect();
            headers.push((HOLDS_HEADER, holds.join(",")));
        }
        headers
    }
}

/// By what a node is known.
pub(super) fn known_by(keys: &NodeKeys) -> Headers {
    let mut headers = vec![(AGE_HEADER, keys.age.to_string()), (SETTLED_HEADER, keys.settled.to_string())];
    headers.extend(keys.host_key.iter().map(|key| (HOST_KEY_HEADER, key.to_string())));
    headers
}
