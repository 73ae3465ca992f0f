//! Secrets, in memory: bytes that cannot be shown, files that are sealed with age, and sops files.
//!
//! Nothing here writes a file. What is to be kept is handed back as text or bytes, and the caller decides where it goes.
//! Without the feature `sops` there are only [`Secret`], [`seal`] and [`Bundle`], which is all that a program on a node needs.

mod bundle;
#[cfg(feature = "sops")]
pub mod keyring;
#[cfg(feature = "sops")]
mod path;
#[cfg(feature = "sops")]
mod reader;
#[cfg(feature = "sops")]
pub mod rules;
pub mod seal;
mod secret;
#[cfg(feature = "sops")]
pub mod sops;
#[cfg(feature = "sops")]
mod vault;

pub use bundle::{Bundle, BundleError, Held};
#[cfg(feature = "sops")]
pub use keyring::{Env, Keyring, ssh_to_age};
#[cfg(feature = "sops")]
pub use path::{KeyPath, PathError, Reference, Step};
#[cfg(feature = "sops")]
pub use reader::{NotAReader, Reader, ReaderKind};
pub use secret::Secret;
#[cfg(feature = "sops")]
pub use sops::{Format, Opened, SopsError, SopsFile};
#[cfg(feature = "sops")]
pub use vault::{FOLDER, Identities, Spot, Vault, VaultError};
