//! What the way by SSH promises, kept against real servers on this machine's own address. Where there is no server to be
//! had, each test says so and promises nothing.

#![allow(clippy::unwrap_used, reason = "a test that cannot set its scene has failed")]
#![allow(clippy::print_stdout, reason = "a test that is skipped says so")]

mod hops;
mod hosts;
mod keeping;
mod node;
mod people;
mod pushing;
mod reaching;
mod scene;
mod sharing;
mod sshd;
mod trust;
mod words;
