//! Secrets, in memory: bytes that cannot be shown, files that are sealed with age, and sops files.
//!
//! Nothing here writes a file. What is to be kept is handed back as text or bytes, and the caller decides where it goes.
//! Without the feature `sops` there are only [`Secret`], [`seal`] and [`Bundle`], which is all that a program on a node needs.

mod bundle;
mod secret;

pub mod seal;

pub use bundle::{Bundle, BundleError, Held};
pub use secret::Secret;
