//! Going over to another system, on whole machines: namespaces of their own with our init, a store of their own with the
//! real Nix, and stand-ins for systems that can be told to go wrong.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot set its scene has failed")]
#![allow(clippy::print_stdout, reason = "a test that is skipped says so")]

mod awaits;
mod cuts;
mod ends;
mod leases;
mod machine;
mod reboots;
mod stand_in;
mod store;
mod systemd;
