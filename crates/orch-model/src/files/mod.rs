//! The files of a site as types, one module for each kind. What a file may say is defined here and nowhere else.

mod conceal;
mod host;
mod legacy;
mod manifest;
mod posture;
mod preset;
mod site;
mod spec;

pub use host::{Install, ProviderKind, Rollout, VmidRange};
pub use manifest::{Mode, NodeKind, OnError, Pattern};
pub use posture::{RootLogin, YesNo};
pub use spec::{Health, Hypervisor, Trigger};

pub(crate) use conceal::{conceal_lines, conceal_secrets};
pub(crate) use host::{Host, HostSsh};
pub(crate) use legacy::bring_up_to_date;
pub(crate) use manifest::{Manifest, ManifestNode};
pub(crate) use posture::Posture;
pub(crate) use preset::Preset;
pub(crate) use site::{Defaults, Site};
pub(crate) use spec::{Spec, SpecFile, SpecSecret, SpecUser};
