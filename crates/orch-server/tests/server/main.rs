//! What the spec server promises, over real TLS on loopback: tokens, answers, reloads, kills, and clients that mean no good.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot set its scene has failed")]
#![allow(clippy::print_stderr, reason = "a test says why it is skipped, and what it measured")]
#![allow(clippy::print_stdout, reason = "a server in a process of its own says where it listens")]

mod answers;
mod client;
mod hostile;
mod keeping;
mod scene;
mod secrecy;
mod secrets;
mod tokens;
