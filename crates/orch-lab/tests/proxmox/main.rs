//! What the lab's Proxmox VE promises: to behave as the real one was seen to.

#![allow(clippy::unwrap_used, reason = "a test that cannot set its scene has failed")]
#![allow(clippy::print_stderr, reason = "a test says why it is skipped")]

mod access;
mod containers;
mod description;
mod faults;
mod hostile;
mod kept;
mod lifecycle;
mod locks;
mod real;
mod seed;
mod storage;
mod world;
