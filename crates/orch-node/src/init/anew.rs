//! Starting a local node anew from inside: what tells one boot from the next is taken away, and its first process begins
//! again. What is mounted stays, and so does what others have in `/run`: the machine itself is not made anew.

use std::fs;
use std::os::unix::process::CommandExt;
use std::process::Command;

use super::Settings;
use super::log::Log;

/// What runs and what was booted, and what lasts as long as a rollout's watcher may.
const LINKS: [&str; 2] = ["/run/booted-system", "/run/current-system"];
const ROLLOUT: &str = "/run/orch-rollout";

/// Begins again. Comes back only where that cannot be done.
pub(super) fn begin(settings: &Settings, log: &mut Log) {
    log.say("the node is started anew");
    for link in LINKS {
        // It may not be there.
        let _ = fs::remove_file(link);
    }
    // Files alone, so that nothing is walked into that is mounted there.
    for entry in fs::read_dir(ROLLOUT).into_iter().flatten().flatten() {
        let _ = fs::remove_file(entry.path());
    }
    let Some(program) = settings.node.iter().find(|path| path.is_file()) else { return };
    let error = Command::new(program).arg0("orch-node").arg("init").env_clear().current_dir("/").exec();
    log.say(&format!("`{}` cannot be run: {error}", program.display()));
}
