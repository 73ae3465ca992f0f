//! The provider for Proxmox VE against the lab's Proxmox VE, over TLS: every promise of a provider, lost answers, races, and
//! what goes wrong on purpose.

#![allow(clippy::unwrap_used, reason = "a test that cannot set its scene has failed")]
#![allow(clippy::panic, reason = "a test that fails says so")]

mod belongings;
mod calls;
mod conformance;
mod faults;
mod first_boot;
mod races;
mod strangers;
mod sweep;
mod world;
