//! Pausing, going on and ending early, said to a driver that is a process of its own.

mod common;

use std::path::Path;
use std::time::{Duration, Instant};

use common::process::{self, HalfWay, Job, Running};
use orch_plan::Verb;
use orch_run::{Report, Runs, Wish, WishError};

/// What becomes of a driver in a process of its own.
#[test]
fn driver_process() {
    process::driver_process();
}

/// A driver that stands still while its first machine is half made.
fn half_way(folder: &Path) -> (Job, Running) {
    let job = Job { half_way: Some((1, HalfWay::Wait)), ..Job::new(folder, Verb::Create) };
    let mut running = job.start();
    running.wait_until_half_way();
    (job, running)
}

fn newest(job: &Job) -> Report {
    let mut runs = Runs::of(job.state()).newest(1).expect("they can be listed");
    runs.remove(0).report.expect("it can be read")
}

fn wish(job: &Job, wish: Wish) -> Result<(), WishError> {
    Runs::of(job.state()).wish(&newest(job).run, wish)
}

fn wait_until(job: &Job, what: &str, holds: impl Fn(&Report) -> bool) -> Report {
    let end = Instant::now() + Duration::from_secs(30);
    loop {
        let report = newest(job);
        if holds(&report) {
            return report;
        }
        assert!(Instant::now() < end, "{what}: {report}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_driver_pauses_before_the_next_step_and_goes_on_when_told() {
    let folder = tempfile::tempdir().expect("a folder");
    let (job, running) = half_way(folder.path());
    wish(&job, Wish::Pause).expect("it runs");
    wait_until(&job, "it pauses", |report| report.paused.is_some());
    // Lets the step that runs go on to its end.
    let ended = std::thread::spawn(move || running.wait());
    let paused = wait_until(&job, "the step ends", |report| report.nodes[0].steps.len() == 1);
    assert!(paused.to_string().contains("paused by "), "{paused}");
    assert_eq!(job.world().world().machines.len(), 1, "nothing else was begun");
    wish(&job, Wish::Resume).expect("it runs");
    assert!(ended.join().expect("it is waited for").success());
    assert_eq!((job.said().exit_code, job.said().machines), (0, 2), "{}", job.said().text);
}

#[test]
fn a_driver_that_is_told_to_end_lets_its_step_end_and_reports() {
    let folder = tempfile::tempdir().expect("a folder");
    let (job, running) = half_way(folder.path());
    wish(&job, Wish::Abort).expect("it runs");
    wait_until(&job, "it heeds", |report| report.aborted.is_some());
    assert!(running.wait().success());
    let said = job.said();
    assert_eq!((said.exit_code, said.machines), (1, 1), "{}", said.text);
    assert!(said.text.contains("ended early: "), "{}", said.text);
    assert!(matches!(wish(&job, Wish::Pause), Err(WishError::Over(_))));
}

#[test]
fn a_driver_that_was_killed_cannot_be_told_anything_and_the_way_out_is_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let (job, running) = half_way(folder.path());
    wish(&job, Wish::Pause).expect("it runs");
    running.kill();
    let error = wish(&job, Wish::Resume).expect_err("nobody is there");
    assert!(matches!(error, WishError::Killed(_)), "{error}");
    assert!(error.hint().contains("run the same command again"));
    let again = Job::new(folder.path(), Verb::Create);
    assert!(again.run().success());
    assert_eq!((again.said().exit_code, again.said().machines), (0, 2), "{}", again.said().text);
}
