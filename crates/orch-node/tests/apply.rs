//! What applying a configuration promises, on a tree of files.

#![allow(clippy::unwrap_used, reason = "a test that cannot set its scene has failed")]

mod common;

use common::{Tree, file, of, role, user};
use orch_model::ApplyStatus;

#[test]
fn a_second_apply_changes_nothing_and_says_so() {
    let tree = Tree::new();
    let mut role = role();
    role.users = vec![user("ops"), user("root")];
    role.files = vec![file("/etc/motd", "hello\n"), file("/opt/a/b/c", "deep")];
    let first = tree.apply(&role);
    assert_eq!(first.status, ApplyStatus::Complete, "{first:?}");
    assert!(first.changed());
    let before = tree.snapshot();
    let second = tree.apply(&role);
    assert_eq!(second.status, ApplyStatus::Complete);
    assert!(!second.changed(), "{second:?}");
    assert_eq!((first.attempts, second.attempts), (1, 2));
    let is_config = |line: &&String| !line.contains("/var/lib/orch");
    let after = tree.snapshot();
    let config = |lines: &[String]| lines.iter().filter(is_config).cloned().collect::<Vec<_>>();
    assert_eq!(config(&before), config(&after));
    let seen = tree.inspect(&role);
    assert_eq!(seen.drift().count(), 0, "{seen:?}");
    assert_eq!(of(&second.resources, "file", "/opt/a/b/c").detail, None);
}

#[test]
fn push_applies_too() {
    let tree = Tree::new();
    let mut role = role();
    role.files = vec![file("/etc/motd", "hello\n")];
    let first = tree.push(&role);
    assert_eq!(first.status, ApplyStatus::Complete, "{first:?}");
    assert_eq!(tree.read("/etc/motd"), "hello\n");
    assert!(!tree.push(&role).changed());
}
