//! What a node that asks for its configuration says of itself: whom its secrets can be sealed for, by what it is known, and
//! what it has already.

use orch_model::pull::{AGE_HEADER, HOLDS_HEADER, HOST_KEY_HEADER};
use orch_model::{NodeKeys, SecretDigest};

/// What a node that asks says of itself.
pub(super) struct Presence {
    pub(super) keys: NodeKeys,
    /// By what the values are known that it holds.
    pub(super) holds: Vec<SecretDigest>,
}

impl Presence {
    pub(super) fn headers(&self) -> Vec<(&'static str, String)> {
        let mut headers = vec![(AGE_HEADER, self.keys.age.to_string())];
        headers.extend(self.keys.host_key.iter().map(|key| (HOST_KEY_HEADER, key.to_string())));
        if !self.holds.is_empty() {
            let holds: Vec<&str> = self.holds.iter().map(SecretDigest::as_str).collect();
            headers.push((HOLDS_HEADER, holds.join(",")));
        }
        headers
    }
}
