//! Proxmox VE and Hetzner Cloud on one computer: their APIs over TLS on loopback, and behind them machines that are made of
//! this one. For trying out a site, and for running it in tests, without an account anywhere.
//!
//! An API ([`Api`]) turns questions into answers and orders machines ([`Machines`]) about. What stands around it speaks
//! HTTP, waits, counts, and goes wrong on purpose ([`Faults`]). No real run needs any of this.

mod addresses;
mod apis;
mod certificate;
mod clearing;
mod daemon;
mod exchange;
mod faults;
mod hetzner;
mod hosting;
mod lab;
mod lab_error;
mod lab_file;
mod listen;
mod local_machines;
mod machines;
mod proxmox;
mod serve;
mod served_by;
mod settings;
mod state;
mod told;

pub use addresses::{AddressError, Addresses};
pub use apis::{ApiParts, MakeApi, api};
pub use certificate::{Certificate, CertificateError};
pub use daemon::{
    HELPER, HostStatus, LabStatus, Request, Up, ask, down, helper, machines_of, read, status, up,
};
pub use exchange::{Answer, Api, Asked};
pub use faults::{Fault, Faults, Rule};
pub use hetzner::{Hetzner, HetznerSettings};
pub use hosting::{is_tool, tool};
pub use lab::Lab;
pub use lab_error::LabError;
pub use lab_file::{LabFile, LabFileHost, Token, driver_folder};
pub use local_machines::{LocalMachines, LocalMachinesSettings};
pub use machines::{FirstBoot, Machines, Paper, Power, Size, Trouble, Wanted};
#[doc(hidden)]
pub use proxmox::files_of_disc;
pub use proxmox::{
    Proxmox, ProxmoxError, ProxmoxSettings, ProxmoxStorage, ProxmoxTemplate, ProxmoxTimings, ProxmoxToken,
};
pub use serve::{Call, Calls, ServeError, ServeSettings, Serving};
pub use settings::{HostKind, LabHost, LabSettings};
