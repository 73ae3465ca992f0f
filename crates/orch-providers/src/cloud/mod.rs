//! What clouds and hypervisors have in common: what is written on a machine of theirs, what it is given when it first starts,
//! and how it is known until it has keys of its own.

mod base32;
mod first_boot;
mod first_key;
mod knock;
mod port;
mod written;

pub use first_boot::{FirstBoot, UserDataError, user_data};
pub use first_key::FirstKey;
pub use knock::knock;
pub use port::port;
pub use written::{NAMES, Written};
