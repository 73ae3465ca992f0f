//! Every provider of this crate keeps every promise, and the suite that says so can fail: for each promise there is a
//! provider that breaks it and is caught.

mod common;

use std::collections::BTreeSet;
use std::sync::Arc;

use async_trait::async_trait;
use common::{host, stranger};
use orch_model::{Config, HostName, NodeKind, Size};
use orch_plan::{Action, Applied, HostView, Keys, Machine, MachineRef, MachineSpec, MachineState, Marks};
use orch_run::conformance::{self, Subject};
use orch_run::memory::MemoryProvider;
use orch_run::{
    Configured, Done, HostLocks, Order, Permit, Pin, Provider, ProviderError, RunId, Scope, StateDir, Target,
    Transport, TransportError,
};
use tempfile::TempDir;
use uuid::Uuid;

/// What a provider does wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Flaw {
    None,
    LookingRenames,
    ForgetsMarks,
    NeverStarts,
    MakesItTooSmall,
    DoublesOnSecondCreate,
    SaysChangedForNothing,
    RefusesToCreate,
    FailsWhenGone,
    DestroysNothing,
    DestroysByIdAlone,
    ChangesByIdAlone,
    TakesOverByName,
    DoesNotStart,
    DoesNotResize,
    ResizesByMakingAnew,
    FinishesByMakingAnew,
    FinishesNothing,
    ConfiguresNothing,
    ConfiguresEveryTime,
    ConfiguresByRestarting,
    PinsNothing,
    PinsByNameAlone,
}

/// A host in memory, with one flaw.
struct Flawed {
    inner: MemoryProvider,
    flaw: Flaw,
}

#[async_trait]
impl Provider for Flawed {
    async fn observe(&self, scope: &Scope) -> Result<HostView, ProviderError> {
        if self.flaw == Flaw::LookingRenames {
            self.inner.tamper("orch-conformance-web", |machine| machine.id.push('x'));
        }
        self.inner.observe(scope).await
    }

    async fn apply(&self, order: &Order, permit: &Permit) -> Result<Done, ProviderError> {
        match &order.action {
            Action::Create { machine } => self.create(order, machine, permit).await,
            Action::Destroy { machine } => self.destroy(order, machine, permit).await,
            Action::Start { .. } if self.flaw == Flaw::DoesNotStart => Ok(Done::Changed),
            Action::Resize { .. } if self.flaw == Flaw::DoesNotResize => Ok(Done::Changed),
            Action::Adopt { .. } if self.flaw == Flaw::FinishesNothing => Ok(Done::Changed),
            action => {
                let order = match action.machine() {
                    Some(machine) if self.flaw == Flaw::ChangesByIdAlone => self.forged(order, machine),
                    _ => order.clone(),
                };
                let done = self.inner.apply(&order, permit).await;
                let makes_anew = match action {
                    Action::Resize { .. } => self.flaw == Flaw::ResizesByMakingAnew,
                    Action::Adopt { .. } => self.flaw == Flaw::FinishesByMakingAnew,
                    _ => false,
                };
                if makes_anew {
                    self.inner.tamper("orch-conformance-web", |machine| machine.id = "anew".into());
                }
                done
            }
        }
    }

    async fn pin(&self, pin: &Pin, permit: &Permit) -> Result<Done, ProviderError> {
        match self.flaw {
            Flaw::PinsNothing => Ok(Done::Changed),
            Flaw::PinsByNameAlone => {
                self.inner.tamper("orch-conformance-web", |machine| {
                    machine.keys = pin.keys.clone().map_or(Keys::Awaited, Keys::Known);
                });
                Ok(Done::Changed)
            }
            _ => self.inner.pin(pin, permit).await,
        }
    }
}

#[async_trait]
impl Transport for Flawed {
    async fn configure(
        &self,
        target: &Target,
        config: &Config,
        permit: &Permit,
    ) -> Result<Configured, TransportError> {
        if self.flaw == Flaw::ConfiguresNothing {
            return Ok(Configured { changed: true, notes: Vec::new(), keys: None });
        }
        let done = self.inner.configure(target, config, permit).await?;
        match (self.flaw, done.changed) {
            (Flaw::ConfiguresEveryTime, _) => {
                return Ok(Configured { changed: true, notes: Vec::new(), keys: None });
            }
            (Flaw::ConfiguresByRestarting, false) => {
                self.inner.tamper("orch-conformance-web", |machine| machine.state = MachineState::Stopped);
            }
            _ => {}
        }
        Ok(done)
    }
}

impl Flawed {
    async fn create(
        &self,
        order: &Order,
        spec: &MachineSpec,
        permit: &Permit,
    ) -> Result<Done, ProviderError> {
        if self.flaw == Flaw::RefusesToCreate {
            return Err(ProviderError::Refused { host: host("father"), why: "it never does".into() });
        }
        let world = self.inner.world();
        match (self.flaw, world.machines.iter().find(|machine| machine.name == spec.name)) {
            (Flaw::DoublesOnSecondCreate, Some(first)) => {
                self.inner.put(Machine { id: "second".into(), ..first.clone() });
                return Ok(Done::Changed);
            }
            (Flaw::TakesOverByName, Some(_)) => {
                self.inner.tamper(&spec.name, |machine| machine.state = MachineState::Stopped);
                return Ok(Done::Changed);
            }
            _ => {}
        }
        let done = self.inner.apply(order, permit).await?;
        self.inner.tamper(&spec.name, |machine| match self.flaw {
            Flaw::ForgetsMarks => machine.marks = None,
            Flaw::NeverStarts => machine.state = MachineState::Stopped,
            Flaw::MakesItTooSmall => machine.size.memory /= 2,
            _ => {}
        });
        Ok(if self.flaw == Flaw::SaysChangedForNothing { Done::Changed } else { done })
    }

    async fn destroy(
        &self,
        order: &Order,
        machine: &MachineRef,
        permit: &Permit,
    ) -> Result<Done, ProviderError> {
        let is_gone = !self.inner.world().machines.iter().any(|found| found.id == machine.id);
        match self.flaw {
            Flaw::FailsWhenGone if is_gone => {
                Err(ProviderError::Refused { host: host("father"), why: "404".into() })
            }
            Flaw::SaysChangedForNothing if is_gone => Ok(Done::Changed),
            Flaw::DestroysNothing => Ok(Done::Changed),
            Flaw::DestroysByIdAlone => self.inner.apply(&self.forged(order, machine), permit).await,
            _ => self.inner.apply(order, permit).await,
        }
    }

    /// The order with the mark that the machine really bears; one without any is given the mark that was asked for.
    fn forged(&self, order: &Order, machine: &MachineRef) -> Order {
        let found = self.inner.world().machines.into_iter().find(|found| found.id == machine.id);
        let mark = found.as_ref().and_then(|found| found.marks.as_ref()).map(|marks| marks.uuid);
        if mark.is_none() {
            self.inner.tamper(&machine.name, |stranger| {
                stranger.marks = Some(Marks {
                    site: order.site.clone(),
                    manifest: order.identity.manifest.clone(),
                    node: order.identity.node.clone(),
                    host: order.identity.host.clone(),
                    uuid: machine.uuid,
                });
            });
        }
        let real = MachineRef { uuid: mark.unwrap_or(machine.uuid), ..machine.clone() };
        let action = match order.action.clone() {
            Action::Destroy { .. } => Action::Destroy { machine: real },
            Action::Start { .. } => Action::Start { machine: real },
            Action::Resize { from, to, .. } => Action::Resize { machine: real, from, to },
            action => action,
        };
        Order { action, ..order.clone() }
    }
}

struct Trial {
    provider: Arc<Flawed>,
    permit: Permit,
    _folder: TempDir,
}

impl Trial {
    fn of(flaw: Flaw) -> Self {
        Self::on(
            MemoryProvider::new(host("father")),
            flaw,
            tempfile::tempdir().expect("a folder can be made"),
        )
    }

    fn in_file() -> Self {
        let folder = tempfile::tempdir().expect("a folder can be made");
        let inner = MemoryProvider::in_file(host("father"), &folder.path().join("world.json"));
        Self::on(inner.expect("an absent file is an empty host"), Flaw::None, folder)
    }

    fn on(inner: MemoryProvider, flaw: Flaw, folder: TempDir) -> Self {
        let state = StateDir::locate(Some(folder.path())).expect("a folder that is given is taken");
        let site = "conformance".parse().expect("a site has a name");
        let hosts = BTreeSet::from([host("father")]);
        let locks =
            HostLocks::take(&state, &site, &hosts, &RunId::new(), "conformance").expect("nobody has them");
        Self { provider: Arc::new(Flawed { inner, flaw }), permit: Permit::under(locks), _folder: folder }
    }
}

#[async_trait]
impl Subject for Trial {
    type Provider = Flawed;

    fn provider(&self) -> Arc<Flawed> {
        Arc::clone(&self.provider)
    }

    fn transport(&self) -> Arc<dyn Transport> {
        Arc::clone(&self.provider) as Arc<dyn Transport>
    }

    fn host(&self) -> HostName {
        host("father")
    }

    fn permit(&self) -> Permit {
        self.permit.clone()
    }

    fn smallest(&self, name: &str) -> MachineSpec {
        let size = Size { cores: 1, memory: 1024, disk: 1 };
        let (kind, image) = (NodeKind::Vm, "debian-13".into());
        MachineSpec { name: name.into(), kind, image, size, vmid: None, parent: None }
    }

    async fn put_stranger(&self, name: &str) {
        self.provider.inner.put(stranger(&Uuid::new_v4().to_string(), name, None));
    }

    async fn leave_half_made(&self, order: &Order) {
        let Action::Create { machine } = &order.action else { unreachable!("the suite asks for a create") };
        self.provider.inner.put(Machine {
            id: "half".into(),
            name: machine.name.clone(),
            marks: Some(Marks {
                site: order.site.clone(),
                manifest: order.identity.manifest.clone(),
                node: order.identity.node.clone(),
                host: order.identity.host.clone(),
                uuid: order.uuid,
            }),
            inside: None,
            state: MachineState::Partial,
            size: machine.size,
            kind: None,
            image: None,
            vmid: None,
            applied: Applied::Never,
            keys: Keys::Awaited,
        });
    }

    async fn switch_off(&self, machine: &MachineRef) {
        self.provider.inner.tamper(&machine.name, |found| found.state = MachineState::Stopped);
    }
}

#[tokio::test]
async fn a_host_in_memory_keeps_every_promise() {
    conformance::every_promise(async || Trial::of(Flaw::None)).await;
}

#[tokio::test]
async fn a_host_in_a_file_keeps_every_promise() {
    conformance::every_promise(async || Trial::in_file()).await;
}

/// Puts a flawed provider through one promise, and has it caught with these words; without the flaw it passes.
macro_rules! caught {
    ($promise:ident, $flaw:ident, $words:literal) => {
        conformance::$promise(&Trial::of(Flaw::None)).await;
        let trial = tokio::spawn(async { conformance::$promise(&Trial::of(Flaw::$flaw)).await });
        let error =
            trial.await.expect_err(concat!(stringify!($flaw), " is caught by ", stringify!($promise)));
        let panic = error.into_panic();
        let said = panic.downcast_ref::<String>().cloned();
        let said = said.or_else(|| panic.downcast_ref::<&str>().map(ToString::to_string));
        let said = said.expect("a panic of the suite has words");
        assert!(said.contains($words), "{} is caught with `{}`: {said}", stringify!($flaw), $words);
    };
}

#[tokio::test]
async fn a_look_that_changes_something_is_caught() {
    caught!(looking_changes_nothing, LookingRenames, "looking_changes_nothing");
}

#[tokio::test]
async fn a_machine_without_marks_or_of_the_wrong_size_or_that_is_off_is_caught() {
    caught!(
        what_was_made_is_seen_with_its_marks_and_runs,
        ForgetsMarks,
        "exactly one machine bears the mark"
    );
    caught!(what_was_made_is_seen_with_its_marks_and_runs, NeverStarts, "what_was_made_runs");
    caught!(what_was_made_is_seen_with_its_marks_and_runs, MakesItTooSmall, "what_was_made_has_its_size");
}

#[tokio::test]
async fn a_create_that_doubles_or_claims_a_change_is_caught() {
    caught!(making_twice_is_making_once, DoublesOnSecondCreate, "making_twice_is_making_once");
    caught!(making_twice_is_making_once, SaysChangedForNothing, "making_twice_is_making_once");
    caught!(
        making_again_after_a_lost_answer_makes_no_second_machine,
        DoublesOnSecondCreate,
        "exactly one machine bears the mark"
    );
}

#[tokio::test]
async fn a_create_that_never_works_is_caught() {
    caught!(a_failure_before_the_effect_leaves_nothing, RefusesToCreate, "the second time it works");
    caught!(slowness_changes_nothing_but_the_time, RefusesToCreate, "slowness_changes_nothing_but_the_time");
}

#[tokio::test]
async fn a_destroy_that_fails_the_second_time_or_does_nothing_is_caught() {
    caught!(
        destroying_what_is_gone_changes_nothing,
        FailsWhenGone,
        "destroying_what_is_gone_changes_nothing"
    );
    caught!(destroying_what_is_gone_changes_nothing, SaysChangedForNothing, "destroying_what_is_gone");
    caught!(destroying_what_is_gone_changes_nothing, DestroysNothing, "what was destroyed is gone");
    caught!(destroying_after_a_lost_answer_is_no_failure, FailsWhenGone, "destroying_after_a_lost_answer");
    caught!(destroying_after_a_lost_answer_is_no_failure, DestroysNothing, "what was destroyed is gone");
}

#[tokio::test]
async fn a_provider_that_goes_by_the_id_alone_is_caught() {
    caught!(
        a_machine_with_another_mark_is_neither_changed_nor_destroyed,
        DestroysByIdAlone,
        "a_machine_with_another_mark_is_left_alone: destroy"
    );
    caught!(
        a_machine_with_another_mark_is_neither_changed_nor_destroyed,
        ChangesByIdAlone,
        "a_machine_with_another_mark_is_left_alone: start"
    );
    caught!(a_strangers_machine_is_never_touched, DestroysByIdAlone, "a stranger is not destroyed");
}

#[tokio::test]
async fn a_provider_that_takes_a_stranger_over_by_its_name_is_caught() {
    caught!(a_strangers_machine_is_never_touched, TakesOverByName, "a name that is taken is refused");
}

#[tokio::test]
async fn a_start_or_a_resize_that_does_nothing_or_makes_anew_is_caught() {
    caught!(a_machine_that_was_switched_off_is_started, DoesNotStart, "it runs again");
    caught!(a_machine_is_resized_in_place_and_keeps_its_mark, DoesNotResize, "it has its new size");
    caught!(a_machine_is_resized_in_place_and_keeps_its_mark, ResizesByMakingAnew, "it is the same machine");
}

#[tokio::test]
async fn a_half_made_machine_that_is_not_finished_or_is_made_anew_is_caught() {
    caught!(what_was_half_made_is_seen_as_such_and_finished, FinishesNothing, "what was half made runs");
    caught!(what_was_half_made_is_seen_as_such_and_finished, FinishesByMakingAnew, "it is the same machine");
}

#[tokio::test]
async fn a_transport_that_does_nothing_or_something_every_time_is_caught() {
    caught!(configuring_twice_changes_nothing, ConfiguresNothing, "what was configured is seen as such");
    caught!(configuring_twice_changes_nothing, ConfiguresEveryTime, "configuring_twice_changes_nothing");
    caught!(configuring_twice_changes_nothing, ConfiguresByRestarting, "configuring_twice_changes_nothing");
    caught!(keys_are_written_on_the_marked_machine_alone, PinsNothing, "keys_are_written_on_the_marked");
    caught!(keys_are_written_on_the_marked_machine_alone, PinsByNameAlone, "keys_are_written_on_the_marked");
}
