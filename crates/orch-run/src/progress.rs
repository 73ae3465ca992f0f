//! What a step is doing, told while it does it. For people who watch; nothing is decided by it.

use std::fmt;
use std::sync::Arc;

/// Whom to tell what is being done to one node.
#[derive(Clone)]
pub struct Progress(Arc<dyn Fn(&str) + Send + Sync>);

impl Progress {
    /// Tells it to `listener`, which must be quick.
    pub fn to(listener: impl Fn(&str) + Send + Sync + 'static) -> Self {
        Self(Arc::new(listener))
    }

    /// Tells it to nobody.
    pub fn to_nobody() -> Self {
        Self::to(|_| {})
    }

    /// Says what is being done now, in a few words: `waiting for ssh`.
    pub fn say(&self, doing: &str) {
        (self.0)(doing);
    }
}

impl fmt::Debug for Progress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Progress")
    }
}
