//! systemd on the node, where it runs.

use std::time::Duration;

use crate::error::ApplyError;
use crate::node::Node;
use crate::tool::Tool;

const QUERY_LIMIT: Duration = Duration::from_secs(20);
const CHANGE_LIMIT: Duration = Duration::from_mins(2);

/// The program that speaks to systemd.
pub(crate) struct Systemd(Tool);

/// How a unit is, in systemd's words.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct UnitState {
    load: String,
    active: String,
    file: String,
    kind: String,
    result: String,
    left_rest: String,
    outdated: String,
}

impl Systemd {
    /// The one of the node, where it runs.
    pub(crate) fn of(node: &Node) -> Option<Self> {
        if node.has("/run/systemd/system") { node.tool("systemctl").map(Self) } else { None }
    }

    pub(crate) fn state(&self, unit: &str) -> Result<UnitState, ApplyError> {
        let properties = "--property=LoadState,ActiveState,UnitFileState,Type,Result,\
                          InactiveExitTimestampMonotonic,NeedDaemonReload";
        let ended = self.0.need(&["show", properties, "--", unit], &[], QUERY_LIMIT)?;
        Ok(UnitState::of(&String::from_utf8_lossy(&ended.stdout)))
    }

    /// Has it read the files of all units again. What runs goes on as it is.
    pub(crate) fn read_units_again(&self) -> Result<(), ApplyError> {
        self.0.need(&["daemon-reload"], &[], CHANGE_LIMIT).map(drop)
    }

    /// Asks for a change of a unit: `enable --now`, `reload`, …
    pub(crate) fn change(&self, verb: &[&str], unit: &str) -> Result<(), ApplyError> {
        let args: Vec<&str> = verb.iter().copied().chain(["--", unit]).collect();
        self.0.need(&args, &[], CHANGE_LIMIT).map(drop)
    }
}

impl UnitState {
    fn of(said: &str) -> Self {
        let mut state = Self::default();
        for (key, value) in said.lines().filter_map(|line| line.split_once('=')) {
            let field = match key {
                "LoadState" => &mut state.load,
                "ActiveState" => &mut state.active,
                "UnitFileState" => &mut state.file,
                "Type" => &mut state.kind,
                "Result" => &mut state.result,
                "InactiveExitTimestampMonotonic" => &mut state.left_rest,
                "NeedDaemonReload" => &mut state.outdated,
                _ => continue,
            };
            *field = value.into();
        }
        state
    }

    pub(crate) fn is_known(&self) -> bool {
        self.load != "not-found"
    }

    /// Runs, or has run and done all that it does.
    pub(crate) fn runs(&self) -> bool {
        let has_run = !matches!(self.left_rest.as_str(), "" | "0");
        self.is_active() || (has_run && self.has_nothing_to_do())
    }

    pub(crate) fn is_active(&self) -> bool {
        matches!(self.active.as_str(), "active" | "reloading" | "activating")
    }

    /// Is one that does something once, and did not fail in it. systemd may have forgotten whether it ever ran.
    pub(crate) fn has_nothing_to_do(&self) -> bool {
        self.kind == "oneshot" && self.active == "inactive" && self.result == "success"
    }

    /// Its file is another than the one that systemd has read.
    pub(crate) fn is_outdated(&self) -> bool {
        self.outdated == "yes"
    }

    pub(crate) fn is_stopped(&self) -> bool {
        matches!(self.active.as_str(), "inactive" | "failed")
    }

    /// Starts at boot, or is of a kind that others start.
    pub(crate) fn is_enabled(&self) -> bool {
        let of_others =
            matches!(self.file.as_str(), "static" | "alias" | "indirect" | "generated" | "transient");
        matches!(self.file.as_str(), "enabled" | "linked") || of_others
    }

    pub(crate) fn starts_at_boot(&self) -> bool {
        matches!(self.file.as_str(), "enabled" | "enabled-runtime" | "linked" | "linked-runtime")
    }

    /// In words, for reports.
    pub(crate) fn words(&self) -> String {
        let file = if self.file.is_empty() { "without a file" } else { &self.file };
        format!("it is {} and {file}", self.active)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(active: &str, file: &str, kind: &str) -> UnitState {
        UnitState::of(&format!(
            "Type={kind}\nResult=success\nLoadState=loaded\nActiveState={active}\nUnitFileState={file}\n\
             InactiveExitTimestampMonotonic=17\nNeedDaemonReload=no\n"
        ))
    }

    #[test]
    fn what_systemd_says_of_a_unit_is_understood() {
        let cases = [
            (state("active", "enabled", "simple"), (true, true, true, false)),
            (state("inactive", "enabled", "simple"), (false, true, true, true)),
            (state("inactive", "enabled", "oneshot"), (true, true, true, true)),
            (state("active", "static", "notify"), (true, true, false, false)),
            (state("failed", "disabled", "simple"), (false, false, false, true)),
            (state("active", "enabled-runtime", "simple"), (true, false, true, false)),
        ];
        for (state, wanted) in cases {
            let is = (state.runs(), state.is_enabled(), state.starts_at_boot(), state.is_stopped());
            assert_eq!(is, wanted, "{state:?}");
            assert!(!state.is_outdated());
        }
        assert!(!UnitState::of("LoadState=not-found\n").is_known());
        assert!(UnitState::of("NeedDaemonReload=yes\n").is_outdated());
    }

    #[test]
    fn what_is_done_once_and_never_was_does_not_run() {
        for never in ["0", ""] {
            let state = UnitState { left_rest: never.into(), ..state("inactive", "enabled", "oneshot") };
            assert!(!state.runs() && state.has_nothing_to_do());
        }
    }
}
