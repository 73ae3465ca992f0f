//! Only a fresh look is believed: lost answers, late answers, and answers that are not true.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use orch_model::Config;
use orch_plan::HostView;
use orch_run::memory::{Fault, FaultKind, Faulty, MemoryProvider};
use orch_run::{
    Configured, Done, ExitCode, NodeStatus, Order, Permit, Pin, Place, Provider, ProviderError, Scope,
    Target, Transport, TransportError,
};
use tokio::time::Instant;

use crate::common::{
    Around, Driver, Effect, Gate, assert_as_wanted, faulty, fleet, host, memory, notes, own_fleet, place,
    statuses, why,
};

const ONE: &str = "  - { name: web, type: vm, spec: base, preset: small, image: i }";

#[tokio::test]
async fn a_lost_answer_to_what_happened_is_a_success_with_a_note_and_doubles_nothing() {
    let fleet = fleet("nested-test");
    for nth in 1..=4 {
        let (world, host) = faulty(vec![Fault::nth(nth, FaultKind::LoseAnswer)]);
        let driver = Driver::of(&host).retrying(3);
        let report = driver.create(&fleet).await;
        assert_eq!(
            (report.exit_code, statuses(&report).as_str()),
            (Some(ExitCode::Done), "inner-pve changed, test-vm changed")
        );
        let notes = notes(&report);
        assert!(notes.len() == 1 && notes[0].starts_with("read back as done, although:"), "{nth}: {notes:?}");
        assert_eq!((world.world().made, host.effects()), (2, 4), "effect {nth}");
        assert_as_wanted(&fleet, &world.world().machines);
    }
}

#[tokio::test]
async fn a_lost_answer_to_a_destroy_that_happened_is_a_success() {
    let fleet = fleet("nested-test");
    let (world, host) = faulty(vec![Fault::nth(5, FaultKind::LoseAnswer)]);
    let driver = Driver::of(&host);
    driver.create(&fleet).await;
    let report = driver.destroy(&fleet).await;
    assert_eq!((report.exit_code, notes(&report).len()), (Some(ExitCode::Done), 1), "{report}");
    assert!(world.world().machines.is_empty());
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_never_comes_is_waited_for_no_longer_than_allowed_and_the_thing_is_read_back() {
    let fleet = own_fleet("timeouts: { create: 2m, config: 3m }", ONE);
    for (nth, limit) in [(1, 120), (2, 180)] {
        let (world, host) = faulty(vec![Fault::nth(nth, FaultKind::Hang)]);
        let began = Instant::now();
        let report = Driver::of(&host).create(&fleet).await;
        assert_eq!(
            (report.exit_code, statuses(&report).as_str()),
            (Some(ExitCode::Done), "web changed"),
            "{report}"
        );
        assert!(notes(&report)[0].starts_with("read back as done, with no answer in"), "{report}");
        let waited = began.elapsed();
        assert!(
            waited >= Duration::from_secs(limit) && waited < Duration::from_secs(limit + 10),
            "{waited:?}"
        );
        assert_as_wanted(&fleet, &world.world().machines);
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_not_done_in_its_time_is_a_time_limit_and_is_not_tried_again() {
    let fleet = own_fleet("timeouts: { create: 2m }", ONE);
    let (world, host) = faulty(vec![Fault::nth(1, FaultKind::Slow(Duration::from_hours(1)))]);
    let report = Driver::of(&host).retrying(3).create(&fleet).await;
    assert_eq!(report.exit_code, Some(ExitCode::TimedOut), "{report}");
    assert!(report.nodes[0].timed_out, "{report}");
    assert!(why(&report, "web").contains("not done within 120s: no machine bears its mark"), "{report}");
    assert!(report.nodes[0].hint.as_ref().is_some_and(|hint| hint.contains("timeouts")), "{report}");
    assert_eq!((host.effects(), world.world().made), (1, 0));
}

/// Says that everything is done, and does nothing.
struct Liar;

#[async_trait]
impl Provider for Liar {
    async fn observe(&self, _: &Scope) -> Result<HostView, ProviderError> {
        Ok(HostView::empty())
    }

    async fn apply(&self, _: &Order, _: &Permit) -> Result<Done, ProviderError> {
        Ok(Done::Changed)
    }
}

#[async_trait]
impl Transport for Liar {
    async fn configure(&self, _: &Target, _: &Config, _: &Permit) -> Result<Configured, TransportError> {
        Ok(Configured { changed: true, notes: Vec::new(), keys: None })
    }
}

#[tokio::test]
async fn what_is_said_to_be_done_and_is_not_there_is_a_failure() {
    let report = Driver::of(&Arc::new(Liar)).retrying(2).create(&own_fleet("", ONE)).await;
    assert_eq!((report.exit_code, statuses(&report).as_str()), (Some(ExitCode::Failed), "web failed"));
    assert_eq!(why(&report, "web"), "said to be done, but no machine bears its mark");
    assert_eq!(report.nodes[0].steps[0].attempts, 3, "a look may come too early, so it is tried again");
}

#[tokio::test]
async fn a_configuration_that_is_said_to_be_applied_and_is_not_is_a_failure() {
    let fleet = own_fleet("", ONE);
    let world = memory();
    let liar: Arc<dyn Transport> = Arc::new(Liar);
    let place = Place { transport: liar, ..place(&world) };
    let report = Driver::on([(host("father"), place)].into()).create(&fleet).await;
    assert_eq!(statuses(&report), "web failed");
    assert_eq!(why(&report, "web"), "said to be done, but machine `m1` has no configuration");
}

/// A host that does what it is asked, and whose first answer is lost; some looks after the first see nothing.
struct Blinded {
    inner: Arc<Faulty<MemoryProvider>>,
    looks: AtomicUsize,
    blind: usize,
}

impl Blinded {
    /// The host, and the world behind it.
    fn for_looks(blind: usize) -> (Arc<MemoryProvider>, Driver) {
        let (world, inner) = faulty(vec![Fault::nth(1, FaultKind::LoseAnswer)]);
        let provider = Arc::new(Self { inner, looks: AtomicUsize::new(0), blind });
        let driver = Driver::on([(host("father"), Place { provider, ..place(&world) })].into());
        (world, driver)
    }
}

#[async_trait]
impl Provider for Blinded {
    async fn observe(&self, scope: &Scope) -> Result<HostView, ProviderError> {
        let look = self.looks.fetch_add(1, Ordering::SeqCst);
        if !(1..=self.blind).contains(&look) {
            return self.inner.observe(scope).await;
        }
        Err(ProviderError::NoAnswer { host: scope.host.clone(), why: "the line is cut".into() })
    }

    async fn apply(&self, order: &Order, permit: &Permit) -> Result<Done, ProviderError> {
        self.inner.apply(order, permit).await
    }

    async fn pin(&self, pin: &Pin, permit: &Permit) -> Result<Done, ProviderError> {
        self.inner.pin(pin, permit).await
    }
}

#[tokio::test]
async fn what_cannot_be_read_back_is_not_called_done() {
    let fleet = own_fleet("", "  - { name: web, type: vm, preset: small, image: i }");
    let (world, driver) = Blinded::for_looks(9);
    let report = driver.create(&fleet).await;
    assert_eq!((report.exit_code, statuses(&report).as_str()), (Some(ExitCode::Failed), "web failed"));
    assert!(why(&report, "web").contains("gave no answer"), "{report}");
    let healed = driver.now_of(&world).create(&fleet).await;
    assert_eq!((statuses(&healed).as_str(), world.world().made), ("web unchanged", 1), "{healed}");
}

#[tokio::test]
async fn a_step_that_is_tried_again_asks_for_the_same_machine_and_finds_it() {
    let (world, driver) = Blinded::for_looks(1);
    let report = driver.retrying(1).create(&own_fleet("", ONE)).await;
    assert_eq!(
        (report.exit_code, statuses(&report).as_str()),
        (Some(ExitCode::Done), "web changed"),
        "{report}"
    );
    assert_eq!((world.world().made, report.nodes[0].steps[0].attempts), (1, 2), "{report}");
    assert_eq!(notes(&report), ["an earlier try may have changed it"], "the second try found it made");
}

#[tokio::test(start_paused = true)]
async fn a_passing_failure_is_tried_again_with_growing_waits_until_it_succeeds() {
    let world = memory();
    let left = Arc::new(AtomicUsize::new(3));
    let host = Around::new(&world, move |_: Effect| {
        let is_left =
            left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)).is_ok();
        async move { if is_left { Gate::NoAnswer } else { Gate::Open } }
    });
    let mut driver = Driver::of(&host).retrying(3);
    driver.patience.first_wait = Duration::from_secs(8);
    driver.patience.longest_wait = Duration::from_secs(16);
    let began = Instant::now();
    let report = driver.create(&own_fleet("", ONE)).await;
    let waited = began.elapsed();
    assert_eq!((report.exit_code, report.nodes[0].steps[0].attempts), (Some(ExitCode::Done), 4), "{report}");
    // 8, 16 and 16 seconds, of each of which jitter takes away up to half.
    assert!(waited >= Duration::from_secs(20) && waited <= Duration::from_secs(41), "{waited:?}");
    assert_eq!(report.count(NodeStatus::Changed), 1);
}

#[tokio::test]
async fn a_passing_failure_that_does_not_pass_is_a_failure_after_the_last_try() {
    let (_, host) = faulty(vec![Fault::node("web".parse().unwrap(), FaultKind::FailBefore)]);
    let report = Driver::of(&host).retrying(2).create(&own_fleet("", ONE)).await;
    assert_eq!((report.exit_code, host.effects()), (Some(ExitCode::Failed), 3), "{report}");
    assert_eq!(why(&report, "web"), "`father` gave no answer: injected");
}

#[tokio::test]
async fn a_refusal_is_not_tried_again() {
    let (_, host) = faulty(vec![Fault::node("web".parse().unwrap(), FaultKind::Refuse)]);
    let report = Driver::of(&host).retrying(5).create(&own_fleet("", ONE)).await;
    assert_eq!((report.exit_code, host.effects()), (Some(ExitCode::Failed), 1), "{report}");
}
