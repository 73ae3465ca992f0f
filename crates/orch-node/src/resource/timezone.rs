//! The time zone: `/etc/localtime` as a link into the tz database, and its name in `/etc/timezone`.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use orch_model::TimeZone;

use super::{Look, Resource, SHARES_PROGRAMS};
use crate::error::ApplyError;
use crate::node::{Found, Node};
use crate::settings_file::SettingsFile;

const DATABASE: &str = "/usr/share/zoneinfo";

pub(super) struct Timezone(TimeZone);

impl Timezone {
    pub(super) const fn new(zone: TimeZone) -> Self {
        Self(zone)
    }

    fn zone(&self) -> PathBuf {
        Path::new(DATABASE).join(self.0.as_str())
    }

    fn file(&self) -> SettingsFile<'static> {
        SettingsFile::new("/etc/timezone", format!("{}\n", self.0))
    }

    /// The zone that a machine without the tz database is in.
    fn is_default(&self) -> bool {
        matches!(self.0.as_str(), "UTC" | "Etc/UTC")
    }

    fn is_installed(&self, node: &Node) -> bool {
        node.is_file(&self.zone())
    }

    fn link(node: &Node) -> Result<Found, ApplyError> {
        match node.folder(Path::new("/etc"))? {
            Some(etc) => etc.find(OsStr::new("localtime"), 0),
            None => Ok(Found::Nothing),
        }
    }

    fn link_difference(&self, node: &Node) -> Result<Option<String>, ApplyError> {
        let is_it =
            |target: &Path| Path::new("/etc").join(target) == self.zone() || is_same(target, &self.zone());
        Ok(match Self::link(node)? {
            Found::Link(target) if is_it(&target) => None,
            Found::Link(target) => Some(format!("it is `{}`", target.display())),
            Found::Nothing if self.is_default() && !self.is_installed(node) => None,
            Found::Nothing => Some("there is none".into()),
            Found::File { .. } => Some("it is a copy of some zone".into()),
            Found::Folder | Found::Other => {
                return Err(ApplyError::refused(Path::new("/etc/localtime"), "it is not a file"));
            }
        })
    }
}

/// Distributions write the link as an absolute path or as one relative to `/etc`.
fn is_same(target: &Path, zone: &Path) -> bool {
    target.strip_prefix("..").is_ok_and(|rest| Path::new("/").join(rest) == zone)
}

impl Resource for Timezone {
    fn kind(&self) -> &'static str {
        "timezone"
    }

    fn name(&self) -> String {
        self.0.to_string()
    }

    fn look(&self, node: &Node) -> Result<Look, ApplyError> {
        if !self.is_installed(node) && !self.is_default() {
            if node.has(SHARES_PROGRAMS) {
                return Ok(Look::skip("not installable here"));
            }
            let why =
                format!("the zone `{}` is not installed: there is no `{}`", self.0, self.zone().display());
            return Err(ApplyError::Impossible(why));
        }
        let link = self.link_difference(node)?;
        let file = self.file().difference(node)?.map(|how| format!("/etc/timezone: {how}"));
        Ok(Look::of(link.or(file)))
    }

    fn change(&self, node: &Node) -> Result<(), ApplyError> {
        if self.link_difference(node)?.is_some() {
            node.make_folder(Path::new("/etc"), 0o755)?.link(OsStr::new("localtime"), &self.zone())?;
        }
        self.file().write(node)
    }
}
