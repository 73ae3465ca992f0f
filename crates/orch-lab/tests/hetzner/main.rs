//! The promises of the Hetzner Cloud API of the lab. Where the published description is at hand, every answer in these tests is
//! held against it: one that it does not allow is a 500.

#![allow(clippy::unwrap_used, clippy::panic, reason = "also the helpers of a test may fail it")]

mod errors;
mod faults;
mod lab;
mod life;
mod lists;
mod random;
mod things;
mod time;
