//! Two runs of one driver never interleave on a host: the second leaves at once and says who is there. A lock is gone
//! the moment its holder is, and reading needs none.

mod common;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use common::process::{HalfWay, Job, Running, driver_process as drive};
use common::{assert_as_wanted, host};
use orch_model::SiteName;
use orch_plan::Verb;
use orch_run::{ExitCode, Holder, HostLocks, LockError, RunId, RunState, Runs, StateDir};
use tempfile::TempDir;

#[test]
fn driver_process() {
    drive();
}

fn folder() -> TempDir {
    tempfile::tempdir().expect("a temporary folder can be made")
}

fn state_in(folder: &TempDir) -> StateDir {
    StateDir::locate(Some(folder.path())).expect("a folder that is given is taken")
}

fn site() -> SiteName {
    "home".parse().expect("a site has a name")
}

fn take(state: &StateDir, hosts: &[&str]) -> Result<HostLocks, LockError> {
    let hosts: BTreeSet<_> = hosts.iter().map(|name| host(name)).collect();
    HostLocks::take(state, &site(), &hosts, &RunId::new(), "create nested-test")
}

/// A driver that holds the lock of `father` and has made half a machine.
fn half_way(folder: &Path) -> (Job, Running) {
    let mut job = Job::new(folder, Verb::Create);
    job.half_way = Some((1, HalfWay::Wait));
    let mut running = job.start();
    running.wait_until_half_way();
    (job, running)
}

#[test]
fn a_second_driver_leaves_at_once_and_names_the_first() {
    let folder = folder();
    let (job, first) = half_way(folder.path());
    let began = Instant::now();
    let second = Job { half_way: None, ..job.clone() };
    assert!(second.run().success());
    let said = second.said();
    assert!(began.elapsed() < Duration::from_secs(20), "it does not wait");
    let run = Runs::of(job.state()).newest(1).expect("runs can be listed")[0].run.to_string();
    let expected = format!(
        "host `father` is in use by create nested-test (run {run}, process {}, running, since ",
        first.pid()
    );
    assert!(said.text.starts_with(&expected), "{}", said.text);
    assert!(said.text.contains("hint: wait until it is done"), "{}", said.text);
    assert_eq!((said.exit_code, said.effects), (1, 0));
    assert!(first.wait().success(), "the first one is not disturbed");
    assert_as_wanted(&job.fleet(), &job.world().world().machines);
}

#[tokio::test]
async fn after_a_kill_the_next_driver_proceeds_by_itself() {
    let folder = folder();
    let (job, first) = half_way(folder.path());
    first.kill();
    let (world, driver) = job.healthy();
    let report = driver.create(&job.fleet()).await;
    assert_eq!((report.exit_code, world.world().made), (Some(ExitCode::Done), 2), "{report}");
    assert_as_wanted(&job.fleet(), &world.world().machines);
}

#[tokio::test]
async fn looking_planning_and_listing_runs_work_while_a_lock_is_held() {
    let folder = folder();
    let (job, first) = half_way(folder.path());
    let (_, driver) = job.healthy();
    let plan = driver.planned(&job.fleet(), Verb::Destroy).await;
    assert_eq!(plan.counts().destroy, 1, "the half-made machine is seen: {plan}");
    let runs = Runs::of(job.state()).newest(10).expect("runs can be listed");
    let report = runs[0].report.as_ref().expect("the journal of a run under way can be read");
    assert_eq!(report.state, RunState::Running, "{report}");
    assert!(report.to_string().ends_with("still running"), "{report}");
    first.kill();
    let report = Runs::of(job.state()).show(&runs[0].run).expect("the journal of a killed run can be read");
    assert_eq!(report.state, RunState::Killed, "{report}");
}

#[test]
fn locks_of_different_hosts_and_of_different_sites_do_not_exclude_each_other() {
    let folder = folder();
    let state = state_in(&folder);
    let _father = take(&state, &["father"]).expect("nobody has it");
    let _mother = take(&state, &["mother"]).expect("another host");
    let hosts = BTreeSet::from([host("father")]);
    let elsewhere = "elsewhere".parse().expect("a site has a name");
    HostLocks::take(&state, &elsewhere, &hosts, &RunId::new(), "create").expect("another site");
    assert!(matches!(take(&state, &["father"]), Err(LockError::Held { .. })), "and the same host does");
}

#[test]
fn locks_are_taken_in_the_order_of_names_and_all_or_none_are_kept() {
    let folder = folder();
    let state = state_in(&folder);
    let held = take(&state, &["mother"]).expect("nobody has it");
    let Err(LockError::Held { host: wanted, .. }) = take(&state, &["zoo", "mother", "father"]) else {
        unreachable!("mother is held")
    };
    assert_eq!(wanted, host("mother"));
    assert!(lock_file(&folder, "father").exists(), "father comes before mother, and was taken");
    assert!(!lock_file(&folder, "zoo").exists(), "zoo comes after mother, and was not tried");
    take(&state, &["father"]).expect("what was taken in vain is given back");
    drop(held);
    take(&state, &["zoo", "mother", "father"]).expect("now nobody has any");
}

#[test]
fn many_drivers_at_once_are_let_in_one_at_a_time() {
    let folder = folder();
    let state = state_in(&folder);
    let inside = std::sync::atomic::AtomicUsize::new(0);
    let entered = std::sync::atomic::AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for turn in 0..8 {
            let (state, inside, entered) = (&state, &inside, &entered);
            let hosts: [&str; 2] = if turn % 2 == 0 { ["a", "b"] } else { ["b", "a"] };
            scope.spawn(move || {
                use std::sync::atomic::Ordering::SeqCst;
                for _ in 0..200 {
                    if let Ok(_locks) = take(state, &hosts) {
                        assert_eq!(inside.fetch_add(1, SeqCst), 0, "nobody else is inside");
                        entered.fetch_add(1, SeqCst);
                        inside.fetch_sub(1, SeqCst);
                    }
                }
            });
        }
    });
    assert!(entered.into_inner() > 0, "somebody got in");
}

/// A process that is being started has, for a moment, everything that its parent has open.
#[test]
fn a_lock_that_was_given_back_is_free_at_once_even_while_processes_are_being_started() {
    let folder = folder();
    let state = state_in(&folder);
    let over = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        let starter = scope.spawn(|| {
            for _ in 0..150 {
                std::process::Command::new("true").status().expect("a process can be started");
            }
            over.store(true, std::sync::atomic::Ordering::SeqCst);
        });
        while !over.load(std::sync::atomic::Ordering::SeqCst) && !starter.is_finished() {
            drop(take(&state, &["father"]).expect("it was given back"));
        }
    });
}

fn lock_file(folder: &TempDir, host: &str) -> PathBuf {
    folder.path().join(format!("locks/home.{host}.lock"))
}

/// Holds the lock of `father`, with another text in its file, and gives what a second driver is told.
fn told_with(text: &[u8]) -> (String, String) {
    let folder = folder();
    let state = state_in(&folder);
    let _held = take(&state, &["father"]).expect("nobody has it");
    fs::write(lock_file(&folder, "father"), text).expect("the text can be replaced");
    let error = take(&state, &["father"]).expect_err("it is held");
    (error.to_string(), error.hint())
}

fn holder(pid: u32, started: u64) -> Vec<u8> {
    let holder = Holder {
        run: "20260107-103000-3f9a".parse().expect("a run has a name"),
        doing: "create edge".into(),
        pid,
        started,
        since: "2026-01-07T10:30:00Z".parse().expect("a time is a time"),
    };
    serde_json::to_vec(&holder).expect("a holder is JSON")
}

#[test]
fn a_holder_that_has_ended_or_whose_pid_belongs_to_another_now_is_told_as_ended() {
    let mut gone = std::process::Command::new("true").spawn().expect("a process can be started");
    gone.wait().expect("it ends");
    for (pid, why) in
        [(gone.id(), "it has ended"), (std::process::id(), "that process began at another time")]
    {
        let (error, hint) = told_with(&holder(pid, 1));
        let expected = format!(
            "host `father` is in use by create edge (run 20260107-103000-3f9a, process {pid}, ended, since \
             2026-01-07T10:30:00Z)"
        );
        assert_eq!(error, expected, "{why}");
        assert!(hint.contains("has ended, but one that it started still holds the lock"), "{why}: {hint}");
    }
}

#[test]
fn a_process_that_ended_and_was_not_waited_for_is_told_as_ended() {
    let mut zombie = std::process::Command::new("true").stdout(std::process::Stdio::piped()).spawn();
    let zombie = zombie.as_mut().expect("a process can be started");
    // Its output ends when it does; it stays a zombie until somebody waits for it.
    let mut output = zombie.stdout.take().expect("its output is ours");
    std::io::copy(&mut output, &mut std::io::sink()).expect("it can be read");
    let stat = format!("/proc/{}/stat", zombie.id());
    let began = Instant::now();
    let started = loop {
        let text = fs::read_to_string(&stat).expect("a zombie is still listed");
        let (_, fields) = text.rsplit_once(')').expect("a name stands in parentheses");
        let fields: Vec<&str> = fields.split_whitespace().collect();
        if fields[0] == "Z" {
            break fields[19].parse().expect("a start is a number");
        }
        assert!(began.elapsed() < Duration::from_secs(30), "it ends");
        std::thread::yield_now();
    };
    let (error, _) = told_with(&holder(zombie.id(), started));
    assert!(error.contains(", ended, since"), "{error}");
    zombie.wait().expect("it ends");
}

#[test]
fn a_text_that_names_nobody_does_not_keep_the_lock_from_being_told_or_taken() {
    let long = vec![b'x'; 100_000];
    let texts: [&[u8]; 5] = [b"", b"{", b"\xff\xfe\0", b"[1,2,3]", &long];
    for text in texts {
        let (error, hint) = told_with(text);
        assert_eq!(error, "host `father` is in use");
        assert!(hint.starts_with("wait until it is done"), "{hint}");
        let folder = folder();
        let state = state_in(&folder);
        fs::create_dir_all(folder.path().join("locks")).expect("a folder can be made");
        fs::write(lock_file(&folder, "father"), text).expect("a file can be written");
        let _held = take(&state, &["father"]).expect("a text is not a lock");
        let error = take(&state, &["father"]).expect_err("it is held now").to_string();
        assert!(error.contains(&format!("process {}, running", std::process::id())), "{error}");
    }
}

#[test]
fn a_lock_file_that_cannot_be_opened_is_an_error_with_its_cause_and_nothing_is_taken() {
    let folder = folder();
    let state = state_in(&folder);
    fs::create_dir_all(lock_file(&folder, "father")).expect("a folder can be made");
    let error = take(&state, &["father"]).expect_err("a folder is no lock file");
    assert_eq!(error.to_string(), "the lock of host `father` cannot be taken");
    assert!(std::error::Error::source(&error).is_some(), "the cause is kept");
}

#[test]
fn the_state_directory_is_for_its_user_alone() {
    use std::os::unix::fs::PermissionsExt;
    let folder = folder();
    let state =
        StateDir::locate(Some(&folder.path().join("deep/state"))).expect("a folder that is given is taken");
    let _held = take(&state, &["father"]).expect("nobody has it");
    let mode = |path: &str| {
        let found = fs::metadata(folder.path().join(path)).expect("it was made");
        found.permissions().mode() & 0o777
    };
    assert_eq!(mode("deep/state"), 0o700);
    assert_eq!(mode("deep/state/locks"), 0o700);
    assert_eq!(mode("deep/state/locks/home.father.lock"), 0o600);
}
