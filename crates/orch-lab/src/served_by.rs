//! Whether the very process that served a lab still has anything of it.
//!
//! One that was killed is seen to be dead before its last thread is gone, and until then its sockets and locks are held.

use std::fs;
use std::path::Path;

/// Whether the process of this pid and start lives, or one of its threads does.
pub(crate) fn lives(pid: u32, started: u64) -> bool {
    let folder = Path::new("/proc").join(pid.to_string());
    let Some((is_dead, since)) = look(&folder.join("stat")) else { return false };
    if since != started {
        return false;
    }
    let threads = fs::read_dir(folder.join("task")).into_iter().flatten().flatten();
    !is_dead
        || threads
            .into_iter()
            .any(|thread| look(&thread.path().join("stat")).is_some_and(|(is_dead, _)| !is_dead))
}

/// Whether it is dead, and when it started.
fn look(stat: &Path) -> Option<(bool, u64)> {
    let stat = fs::read_to_string(stat).ok()?;
    // The second field is the program's name in parentheses, and may itself hold any character.
    let (_, after_name) = stat.rsplit_once(')')?;
    let mut fields = after_name.split_whitespace();
    let is_dead = matches!(fields.next()?, "Z" | "X");
    Some((is_dead, fields.nth(18)?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use orch_run::start_of;

    use super::*;

    #[test]
    fn a_process_lives_under_its_own_start_alone_and_not_when_it_is_dead() {
        let (own, started) = (std::process::id(), start_of(std::process::id()).expect("this one lives"));
        assert!(lives(own, started) && !lives(own, started + 1));
        let mut child = std::process::Command::new("sleep").arg("60").spawn().expect("`sleep` runs");
        let started = start_of(child.id()).expect("it lives");
        assert!(lives(child.id(), started));
        child.kill().expect("it is ours");
        child.wait().expect("it can be buried");
        assert!(!lives(child.id(), started));
    }
}
