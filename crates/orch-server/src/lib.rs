//! The spec server: hands nodes that fetch their configuration what the site says of them now, and keeps what they report.
//!
//! [`Desk`] decides, [`Server`] speaks TLS and HTTP, [`Operator`] asks a running one. A server knows no provider, and a node's
//! token opens that node's configuration alone.

mod answer;
mod certificate;
mod crowd;
mod desk;
mod enrol;
mod events;
mod files;
mod folder;
mod holds;
mod keys;
mod ledger;
mod limits;
mod metrics;
mod office;
mod operator;
mod patience;
mod pieces;
mod question;
mod registry;
mod reports;
mod server;
mod socket;
mod specs;
mod tell;

pub use certificate::{CertificateError, Certificates};
pub use desk::{Clock, Desk, DeskError, system_clock};
pub use enrol::{EnrolError, Minter};
pub use folder::{Office, ServerFolder};
pub use keys::{KeyError, Keys, new_key};
pub use ledger::{Ledger, LedgerError, Revoked, TokenStanding, judge as judge_token, read as read_ledger};
pub use limits::Limits;
pub use office::{InOffice, Listening, OfficeError};
pub use operator::{Operator, OperatorError};
pub use registry::{RevokeError, SiteRegistry, remembered, revoke};
pub use reports::Reports;
pub use server::Server;
pub use specs::{SiteError, SitePlace, SpecError, Specs};
pub use tell::{Tell, nobody};
