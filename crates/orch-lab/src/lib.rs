//! Proxmox VE and Hetzner Cloud on one computer: their APIs over TLS on loopback, and behind them machines that are made of
//! this one. For trying out a site, and for running it in tests, without an account anywhere.
//!
//! An API ([`Api`]) turns questions into answers and orders machines ([`Machines`]) about. What stands around it speaks
//! HTTP, waits, counts, and goes wrong on purpose ([`Faults`]). No real run needs any of this.

mod certificate;
mod exchange;
mod faults;
mod machines;
mod serve;

pub use certificate::{Certificate, CertificateError};
pub use exchange::{Answer, Api, Asked};
pub use faults::{Fault, Faults, Rule};
pub use machines::{FirstBoot, Machines, Paper, Power, Size, Trouble, Wanted};
pub use serve::{Call, Calls, ServeError, ServeSettings, Serving};
