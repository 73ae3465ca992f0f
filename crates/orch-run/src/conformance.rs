//! What every provider and every transport promises, as a suite that each of them is put through.
//!
//! A provider's tests implement [`Subject`] and call [`every_promise`]. A broken promise panics with its name.

use std::sync::Arc;

use async_trait::async_trait;
use orch_model::{
    Config, HostName, Identity, Mode, NodeKeys, NodeName, Request, Size, Sources, parse, resolve,
};
use orch_plan::{Action, Applied, HostView, Keys, Machine, MachineRef, MachineSpec, MachineState};
use uuid::Uuid;

use crate::memory::{Fault, FaultKind, Faulty};
use crate::permit::Permit;
use crate::progress::Progress;
use crate::provider::{Done, Order, Pin, Provider, ProviderError, Scope};
use crate::transport::{Configured, Target, Transport};

/// A host that a provider is tried out on. Each promise gets a fresh one, empty of our machines.
#[async_trait]
pub trait Subject: Send + Sync {
    /// The provider under test.
    type Provider: Provider + 'static;

    /// The provider under test.
    fn provider(&self) -> Arc<Self::Provider>;

    /// The way to the host's nodes.
    fn transport(&self) -> Arc<dyn Transport>;

    /// The host's name.
    fn host(&self) -> HostName;

    /// Leave to change the host.
    fn permit(&self) -> Permit;

    /// The smallest machine of this name that the host can make.
    fn smallest(&self, name: &str) -> MachineSpec;

    /// Puts a machine of this name there that is not ours.
    async fn put_stranger(&self, name: &str);

    /// Leaves behind what a driver leaves that was killed while it carried out this `create`: a machine that bears the
    /// order's mark and is not finished.
    async fn leave_half_made(&self, order: &Order);

    /// Switches a machine off behind the provider's back.
    async fn switch_off(&self, machine: &MachineRef);
}

/// Puts a provider through every promise, each on a fresh host.
pub async fn every_promise<S: Subject>(fresh: impl AsyncFn() -> S) {
    looking_changes_nothing(&fresh().await).await;
    what_was_made_is_seen_with_its_marks_and_runs(&fresh().await).await;
    making_twice_is_making_once(&fresh().await).await;
    making_again_after_a_lost_answer_makes_no_second_machine(&fresh().await).await;
    a_failure_before_the_effect_leaves_nothing(&fresh().await).await;
    destroying_what_is_gone_changes_nothing(&fresh().await).await;
    destroying_after_a_lost_answer_is_no_failure(&fresh().await).await;
    a_machine_with_another_mark_is_neither_changed_nor_destroyed(&fresh().await).await;
    a_strangers_machine_is_never_touched(&fresh().await).await;
    a_machine_that_was_switched_off_is_started(&fresh().await).await;
    a_machine_is_resized_in_place_and_keeps_its_mark(&fresh().await).await;
    what_was_half_made_is_seen_as_such_and_finished(&fresh().await).await;
    slowness_changes_nothing_but_the_time(&fresh().await).await;
    configuring_twice_changes_nothing(&fresh().await).await;
    keys_are_written_on_the_marked_machine_alone(&fresh().await).await;
}

/// `observe` is free of effects.
pub async fn looking_changes_nothing<S: Subject>(subject: &S) {
    subject.put_stranger("stranger").await;
    apply(subject, &create(subject, "web")).await.expect("looking_changes_nothing: a machine can be made");
    let first = look(subject).await;
    let second = look(subject).await;
    assert_eq!(first, second, "looking_changes_nothing");
}

/// `apply` of `create` makes a running machine of the right size under our marks.
pub async fn what_was_made_is_seen_with_its_marks_and_runs<S: Subject>(subject: &S) {
    let order = create(subject, "web");
    let done = apply(subject, &order).await;
    assert!(matches!(done, Ok(Done::Changed)), "what_was_made_is_seen: {done:?}");
    let machine = only_ours(subject, &order).await;
    assert_eq!(machine.marks, Some(order.marks()), "what_was_made_is_seen_with_its_marks");
    assert_eq!(machine.state, MachineState::Running, "what_was_made_runs");
    assert_eq!(machine.size, subject.smallest("web").size, "what_was_made_has_its_size");
}

/// Asked twice, there is one machine, and the second time nothing changes.
pub async fn making_twice_is_making_once<S: Subject>(subject: &S) {
    let order = create(subject, "web");
    apply(subject, &order).await.expect("making_twice: the first time");
    let before = look(subject).await;
    let again = apply(subject, &order).await;
    assert!(matches!(again, Ok(Done::Unchanged)), "making_twice_is_making_once: {again:?}");
    assert_eq!(before, look(subject).await, "making_twice_is_making_once");
}

/// A create whose answer was lost is found, not doubled.
pub async fn making_again_after_a_lost_answer_makes_no_second_machine<S: Subject>(subject: &S) {
    let order = create(subject, "web");
    let faulty = faulty(subject, FaultKind::LoseAnswer);
    let lost = faulty.apply(&order, &subject.permit()).await;
    assert!(lost.is_err_and(|error| error.is_passing()), "the answer is lost");
    faulty.apply(&order, &subject.permit()).await.expect("making_again_after_a_lost_answer");
    only_ours(subject, &order).await;
}

/// A create that failed before it did anything left nothing behind, and works the second time.
pub async fn a_failure_before_the_effect_leaves_nothing<S: Subject>(subject: &S) {
    let order = create(subject, "web");
    let before = look(subject).await;
    let faulty = faulty(subject, FaultKind::FailBefore);
    assert!(faulty.apply(&order, &subject.permit()).await.is_err(), "it fails");
    assert_eq!(before, look(subject).await, "a_failure_before_the_effect_leaves_nothing");
    faulty.apply(&order, &subject.permit()).await.expect("the second time it works");
    only_ours(subject, &order).await;
}

/// Destroying twice is clean.
pub async fn destroying_what_is_gone_changes_nothing<S: Subject>(subject: &S) {
    let made = create(subject, "web");
    apply(subject, &made).await.expect("destroying: it is made");
    let order = destroy(&made, &only_ours(subject, &made).await);
    let done = apply(subject, &order).await;
    assert!(matches!(done, Ok(Done::Changed)), "destroying_what_is_there: {done:?}");
    assert!(ours(subject, &made).await.is_empty(), "what was destroyed is gone");
    let again = apply(subject, &order).await;
    assert!(matches!(again, Ok(Done::Unchanged)), "destroying_what_is_gone_changes_nothing: {again:?}");
}

/// A destroy whose answer was lost can be repeated.
pub async fn destroying_after_a_lost_answer_is_no_failure<S: Subject>(subject: &S) {
    let made = create(subject, "web");
    apply(subject, &made).await.expect("destroying: it is made");
    let order = destroy(&made, &only_ours(subject, &made).await);
    let faulty = faulty(subject, FaultKind::LoseAnswer);
    assert!(faulty.apply(&order, &subject.permit()).await.is_err(), "the answer is lost");
    faulty.apply(&order, &subject.permit()).await.expect("destroying_after_a_lost_answer_is_no_failure");
    assert!(ours(subject, &made).await.is_empty(), "what was destroyed is gone");
}

/// A stale id with another machine behind it: nothing happens to that machine.
pub async fn a_machine_with_another_mark_is_neither_changed_nor_destroyed<S: Subject>(subject: &S) {
    let made = create(subject, "web");
    apply(subject, &made).await.expect("another mark: it is made");
    let machine = only_ours(subject, &made).await;
    let stale = MachineRef { uuid: Uuid::new_v4(), ..reference(&made, &machine) };
    let before = look(subject).await;
    let larger = Size { memory: machine.size.memory * 2, ..machine.size };
    let actions = [
        Action::Destroy { machine: stale.clone() },
        Action::Start { machine: stale.clone() },
        Action::Resize { machine: stale.clone(), from: machine.size, to: larger },
    ];
    for action in actions {
        let order = Order { uuid: stale.uuid, action, ..made.clone() };
        let refused = apply(subject, &order).await;
        assert!(
            matches!(refused, Err(ProviderError::NotOurs { .. })),
            "a_machine_with_another_mark_is_left_alone: {} gave {refused:?}",
            order.action.verb()
        );
    }
    assert_eq!(before, look(subject).await, "a_machine_with_another_mark_is_neither_changed_nor_destroyed");
}

/// A machine without our mark stays as it is, even where it has the name that ours would get.
pub async fn a_strangers_machine_is_never_touched<S: Subject>(subject: &S) {
    subject.put_stranger("orch-conformance-web").await;
    let before = look(subject).await;
    let refused = apply(subject, &create(subject, "web")).await;
    assert!(refused.is_err(), "a name that is taken is refused: {refused:?}");
    let strangers: Vec<Machine> = before.machines().to_vec();
    for stranger in &strangers {
        let machine =
            MachineRef { id: stranger.id.clone(), name: stranger.name.clone(), uuid: Uuid::new_v4() };
        let order = Order { action: Action::Destroy { machine: machine.clone() }, ..create(subject, "web") };
        let refused = apply(subject, &Order { uuid: machine.uuid, ..order }).await;
        assert!(
            matches!(refused, Err(ProviderError::NotOurs { .. })),
            "a stranger is not destroyed: {refused:?}"
        );
    }
    assert_eq!(before, look(subject).await, "a_strangers_machine_is_never_touched");
}

/// A machine that is off is started, and keeps its mark.
pub async fn a_machine_that_was_switched_off_is_started<S: Subject>(subject: &S) {
    let made = create(subject, "web");
    apply(subject, &made).await.expect("switched off: it is made");
    let machine = reference(&made, &only_ours(subject, &made).await);
    subject.switch_off(&machine).await;
    assert_eq!(
        only_ours(subject, &made).await.state,
        MachineState::Stopped,
        "a machine that is off is seen as such"
    );
    let order = Order { action: Action::Start { machine }, ..made.clone() };
    apply(subject, &order).await.expect("a_machine_that_was_switched_off_is_started");
    assert_eq!(only_ours(subject, &made).await.state, MachineState::Running, "it runs again");
}

/// A machine grows without being made anew.
pub async fn a_machine_is_resized_in_place_and_keeps_its_mark<S: Subject>(subject: &S) {
    let made = create(subject, "web");
    apply(subject, &made).await.expect("resized: it is made");
    let machine = only_ours(subject, &made).await;
    let to = Size { memory: machine.size.memory + 512, ..machine.size };
    let action = Action::Resize { machine: reference(&made, &machine), from: machine.size, to };
    apply(subject, &Order { action, ..made.clone() }).await.expect("a_machine_is_resized_in_place");
    let resized = only_ours(subject, &made).await;
    assert_eq!(resized.size, to, "it has its new size");
    assert_eq!(resized.id, machine.id, "it is the same machine");
}

/// A machine that a killed driver left half made is finished under its mark, and not made a second time.
pub async fn what_was_half_made_is_seen_as_such_and_finished<S: Subject>(subject: &S) {
    let begun = create(subject, "web");
    subject.leave_half_made(&begun).await;
    let machine = only_ours(subject, &begun).await;
    assert_eq!(machine.state, MachineState::Partial, "what was half made is seen as such");
    let action =
        Action::Adopt { found: reference(&begun, &machine), machine: subject.smallest(&machine.name) };
    apply(subject, &Order { action, ..begun.clone() }).await.expect("what_was_half_made_is_finished");
    let finished = only_ours(subject, &begun).await;
    assert_eq!(finished.state, MachineState::Running, "what was half made runs");
    assert_eq!(finished.id, machine.id, "it is the same machine");
}

/// A slow provider is a provider.
pub async fn slowness_changes_nothing_but_the_time<S: Subject>(subject: &S) {
    let order = create(subject, "web");
    let faulty = faulty(subject, FaultKind::Slow(std::time::Duration::from_millis(20)));
    faulty.apply(&order, &subject.permit()).await.expect("slowness_changes_nothing_but_the_time");
    only_ours(subject, &order).await;
}

/// A configuration that was brought to a node is seen there, and bringing it once more changes nothing.
pub async fn configuring_twice_changes_nothing<S: Subject>(subject: &S) {
    let made = create(subject, "web");
    apply(subject, &made).await.expect("configuring: it is made");
    let config = config(&made.identity);
    let target = Target {
        identity: made.identity.clone(),
        uuid: made.uuid,
        mode: Mode::Push,
        progress: Progress::to_nobody(),
    };
    let (transport, permit) = (subject.transport(), subject.permit());
    let done = transport.configure(&target, &config, &permit).await;
    assert!(
        matches!(done, Ok(Configured { changed: true, .. })),
        "configuring_once_changes_something: {done:?}"
    );
    let configured = only_ours(subject, &made).await;
    assert_eq!(configured.applied, Applied::Digest(config.digest()), "what was configured is seen as such");
    let before = look(subject).await;
    let again = transport.configure(&target, &config, &permit).await;
    assert!(
        matches!(again, Ok(Configured { changed: false, .. })),
        "configuring_twice_changes_nothing: {again:?}"
    );
    assert_eq!(before, look(subject).await, "configuring_twice_changes_nothing");
}

/// A machine is known by the keys that were written on it, once it has put away the one that it was made with; and keys are
/// written on no machine but the one that bears the mark.
pub async fn keys_are_written_on_the_marked_machine_alone<S: Subject>(subject: &S) {
    let made = create(subject, "web");
    apply(subject, &made).await.expect("pinning: it is made");
    let before = only_ours(subject, &made).await;
    if before.keys == Keys::Unknown {
        return;
    }
    assert_eq!(before.keys, Keys::Awaited, "a machine that has said nothing yet is not known");
    let pin = |uuid, settled| Pin {
        identity: made.identity.clone(),
        uuid,
        keys: Some(keys(settled)),
        applied: None,
        ssh_port: None,
    };
    let permit = subject.permit();
    let forged = subject.provider().pin(&pin(Uuid::new_v4(), true), &permit).await;
    assert!(forged.is_err(), "keys_are_written_on_the_marked_machine_alone: {forged:?}");
    assert_eq!(only_ours(subject, &made).await.keys, Keys::Awaited, "nothing was written for another mark");
    for settled in [false, true] {
        let seen = Keys::Known(keys(settled));
        subject.provider().pin(&pin(made.uuid, settled), &permit).await.expect("pinning: it is ours");
        assert_eq!(
            only_ours(subject, &made).await.keys,
            seen,
            "keys_are_written_on_the_marked_machine_alone"
        );
    }
}

fn keys(settled: bool) -> NodeKeys {
    let age = "age1ql3z7hjy54pw3hyww5ayyfg7zqgvc7w3j2elw8zmrj2kg5sfn9aqmcac8p";
    let host_key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIKXbCBlW8b0lPAbv8JhxHjPzA5Jtu7Rk9vJ1X5mT8m1A";
    let host_key = Some(host_key.parse().expect("this is a public key"));
    NodeKeys { age: age.parse().expect("this is a recipient"), host_key, settled }
}

/// The configuration of a node whose spec says nothing.
fn config(node: &Identity) -> Config {
    let Identity { manifest, node, host } = node;
    let text = format!(
        "{{ schema_version: 2, name: {manifest}, pattern: flat,
            nodes: [{{ name: {node}, type: vm, spec: least, preset: least, image: least }}] }}"
    );
    let sources = Sources::from_texts([
        ("site.yaml", "name: conformance"),
        (&format!("hosts/{host}.yaml"), "provider: local"),
        ("presets/least.yaml", "{ cores: 1, memory: 1024, disk: 1 }"),
        ("specs/least.yaml", "schema_version: 1"),
        (&format!("manifests/{manifest}.yaml"), &text),
    ]);
    let scope = orch_model::Scope::Manifest { name: manifest, host: Some(host) };
    let catalog = parse(&sources, scope).expect("the suite's site is a site");
    let request = Request { manifest: manifest.clone(), host: Some(host.clone()), mode: None };
    let fleet = resolve(&catalog, &request).expect("the suite's manifest is a manifest");
    fleet.nodes[0].config.clone().expect("a node with a spec has a configuration")
}

fn faulty<S: Subject>(subject: &S, kind: FaultKind) -> Faulty<S::Provider> {
    Faulty::new(subject.provider(), subject.host(), vec![Fault::nth(1, kind)])
}

fn create<S: Subject>(subject: &S, node: &str) -> Order {
    let node: NodeName = node.parse().expect("the suite's names are names");
    Order {
        site: "conformance".parse().expect("the suite's names are names"),
        identity: Identity {
            manifest: "orch-conformance".parse().expect("the suite's names are names"),
            node: node.clone(),
            host: subject.host(),
        },
        uuid: Uuid::new_v4(),
        action: Action::Create { machine: subject.smallest(&format!("orch-conformance-{node}")) },
        enrolment: None,
        progress: Progress::to_nobody(),
    }
}

fn destroy(made: &Order, machine: &Machine) -> Order {
    Order { action: Action::Destroy { machine: reference(made, machine) }, ..made.clone() }
}

fn reference(made: &Order, machine: &Machine) -> MachineRef {
    MachineRef { id: machine.id.clone(), name: machine.name.clone(), uuid: made.uuid }
}

async fn apply<S: Subject>(subject: &S, order: &Order) -> Result<Done, ProviderError> {
    subject.provider().apply(order, &subject.permit()).await
}

async fn look<S: Subject>(subject: &S) -> HostView {
    let scope = Scope { host: subject.host(), node: None };
    subject.provider().observe(&scope).await.expect("the host can be looked at")
}

async fn ours<S: Subject>(subject: &S, order: &Order) -> Vec<Machine> {
    let wanted = order.marks();
    let view = look(subject).await;
    view.machines().iter().filter(|machine| machine.marks.as_ref() == Some(&wanted)).cloned().collect()
}

async fn only_ours<S: Subject>(subject: &S, order: &Order) -> Machine {
    let mut machines = ours(subject, order).await;
    assert_eq!(machines.len(), 1, "exactly one machine bears the mark");
    machines.remove(0)
}
