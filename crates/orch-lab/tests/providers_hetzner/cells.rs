//! Everything that goes wrong, in the middle of everything that is done: each with its outcome, and then with the healing.

use std::net::TcpStream;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use orch_lab::{Fault, Rule};
use orch_plan::{Action, Machine, MachineState};
use orch_run::{Done, Order, Progress, Provider as _, ProviderError, Scope};

use crate::project::{LARGE, Project, SIZE, create, destroy, host, reference, start};

/// What is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum What {
    Observe,
    Create,
    Start,
    Resize,
    Destroy,
}

/// What comes of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Done,
    NotOurs,
    Refused,
    Failed,
    Late,
    NoAnswer,
}

/// What makes it good again, once nothing goes wrong any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Heals {
    /// The same once more.
    Again,
    /// Nothing but destroying it, and then the same once more: what never ends keeps a server for ever.
    Anew,
    /// Nothing: a stranger has the name.
    Never,
}

use Heals::{Again, Anew, Never};
use Outcome::{Failed, Late, NoAnswer, NotOurs, Refused};
use What::{Create, Destroy, Observe, Resize, Start};

const ALWAYS: Option<u32> = None;
const ONCE: Option<u32> = Some(1);
const TWICE: Option<u32> = Some(2);
const EACH: [What; 5] = [Observe, Create, Start, Resize, Destroy];

/// A fault, how often it strikes, and what comes of it in each of [`EACH`].
type Row = (Fault, Option<u32>, [(Outcome, Heals); 5]);

/// Every fault.
#[rustfmt::skip]
const CELLS: [Row; 16] = [
    (Fault::TooMany, TWICE, [DONE, DONE, DONE, DONE, DONE]),
    (Fault::ServerError, ONCE, [DONE, DONE, DONE, DONE, DONE]),
    (Fault::ServerError, ALWAYS, [(NoAnswer, Again), (NoAnswer, Again), (NoAnswer, Again), (NoAnswer, Again), (NoAnswer, Again)]),
    (Fault::SilentAfter, ONCE, [DONE, DONE, DONE, DONE, DONE]),
    (Fault::CutAnswer, ONCE, [DONE, DONE, DONE, DONE, DONE]),
    (Fault::TaskFails, ONCE, [DONE, (Failed, Again), (Failed, Again), (Failed, Again), (Failed, Again)]),
    (Fault::TaskNeverEnds, ONCE, [DONE, (Late, Anew), (Late, Anew), (Late, Anew), (Late, Again)]),
    (Fault::LockTimeout, ONCE, [DONE, DONE, DONE, DONE, DONE]),
    (Fault::LockTimeout, ALWAYS, [DONE, DONE, (Late, Again), (Late, Again), (Late, Again)]),
    (Fault::StrangerTakesId, ONCE, [DONE, (NotOurs, Never), DONE, DONE, DONE]),
    (Fault::AgentSilent, ONCE, [DONE, (Late, Anew), DONE, DONE, DONE]),
    (Fault::NoPrivilege, ALWAYS, [DONE, (Refused, Again), (Refused, Again), (Refused, Again), (Refused, Again)]),
    (Fault::OtherCertificate, ALWAYS, [(Failed, Again), (Failed, Again), (Failed, Again), (Failed, Again), (Failed, Again)]),
    (Fault::Quota, ALWAYS, [DONE, (Refused, Again), DONE, DONE, DONE]),
    (Fault::OutOfStock, ONCE, [DONE, DONE, DONE, (Refused, Again), DONE]),
    (Fault::OutOfStock, ALWAYS, [DONE, (Refused, Again), DONE, (Refused, Again), DONE]),
];
const DONE: (Outcome, Heals) = (Outcome::Done, Again);

#[tokio::test(flavor = "multi_thread")]
async fn looking_outlives_what_passes_and_says_what_does_not() {
    every_cell_of(Observe).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn making_has_its_outcome_under_every_fault_and_heals() {
    every_cell_of(Create).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn switching_on_has_its_outcome_under_every_fault_and_heals() {
    every_cell_of(Start).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn resizing_has_its_outcome_under_every_fault_and_heals() {
    every_cell_of(Resize).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn destroying_has_its_outcome_under_every_fault_and_heals() {
    every_cell_of(Destroy).await;
}

async fn every_cell_of(what: What) {
    let place = EACH.iter().position(|each| *each == what).unwrap();
    let mut running = tokio::task::JoinSet::new();
    for (fault, times, outcomes) in CELLS {
        running.spawn(cell(what, fault, times, outcomes[place]));
    }
    running.join_all().await;
}

async fn cell(what: What, fault: Fault, times: Option<u32>, (outcome, heals): (Outcome, Heals)) {
    let named = format!("{what:?} with {fault:?} {times:?}");
    let is_waited_for = fault == Fault::AgentSilent && what == Create;
    if is_waited_for && TcpStream::connect("127.0.2.1:22").is_ok() {
        println!("skipped: {named}, as an SSH server answers at every address of this computer");
        return;
    }
    let project = Project::with(|with| {
        with.setup = |setup| {
            setup.hetzner.spread = true;
            setup.server_types.insert("web-2".parse().unwrap(), LARGE.into());
        };
    });
    let stranger = project.put_stranger("a-stranger").await;
    let made = create(if what == Resize { "web-1" } else { "web" });
    let heard = Arc::new(Mutex::new(Vec::new()));
    let listener = Arc::clone(&heard);
    let progress = Progress::to(move |line| listener.lock().unwrap().push(line.to_owned()));
    let order = prepared(&project, what, &made).await.map(|order| Order { progress, ..order });
    let before = project.labels(&stranger).await;

    project.fault(Rule { times, ..rule(what, fault) });
    let provider = project.provider_with(|setup| {
        setup.reach = is_waited_for.then_some(Duration::from_millis(100));
        if outcome == Late {
            // It has to come as far as what never ends, also where others are at work.
            setup.pace.order = Duration::from_secs(6);
        }
        if what == Resize {
            setup.server_types.insert("web-1".parse().unwrap(), LARGE.into());
        }
    });
    let seen = match &order {
        None => provider.observe(&Scope { host: host(), node: None }).await.map(|_| Done::Unchanged),
        Some(order) => provider.apply(order, &project.permit()).await,
    };
    assert_eq!(told(&seen), outcome, "{named}: {seen:?}");
    let all = format!("{seen:?} {:?}", heard.lock().unwrap());
    for secret in ["PRIVATE KEY", "cloud-config", project.token.as_str()] {
        assert!(!all.contains(secret), "{named}: what is secret is not told");
    }
    project.faults.clear();
    let groups =
        async || project.get("/placement_groups").await["placement_groups"].as_array().unwrap().len();
    if what == Create && matches!(outcome, Refused | NotOurs | Failed) {
        assert_eq!(groups().await, 0, "{named}: what was made for it alone is gone");
        let ours = project.machines().await.iter().filter(|machine| machine.marks.is_some()).count();
        assert_eq!(ours, 0, "{named}: nothing is left of it");
    }

    let healed = heal(&project, what, &made, order.as_ref(), heals).await;
    assert!(healed, "{named}: it heals as it is said");
    assert_eq!(project.labels(&stranger).await, before, "{named}: the stranger is as it was");
    let count = project.machines().await.len();
    let ours = usize::from(what != Destroy && heals != Never);
    let strangers = if heals == Never { 2 } else { 1 };
    assert_eq!(count, ours + strangers, "{named}: nothing is doubled and nothing is left over");
    assert_eq!(groups().await, ours, "{named}: a group for those that are there");
}

/// What has to be there before, and what is then done.
async fn prepared(project: &Project, what: What, made: &Order) -> Option<Order> {
    if what == Create {
        return Some(made.clone());
    }
    project.apply(made).await.unwrap();
    let machine = project.only(made).await;
    match what {
        Start => {
            project.switch_off(&machine.id).await;
            Some(start(made, &machine))
        }
        Resize => Some(resize(made, &machine)),
        Destroy => Some(destroy(made, &machine)),
        Observe | Create => None,
    }
}

fn resize(made: &Order, machine: &Machine) -> Order {
    let to = orch_model::Size { cores: 4, memory: 8000, ..SIZE };
    let action = Action::Resize { machine: reference(made, machine), from: SIZE, to };
    Order { action, ..made.clone() }
}

/// The question in the middle of what is done.
fn rule(what: What, fault: Fault) -> Rule {
    let rule = Rule::always(fault);
    match what {
        _ if fault == Fault::OtherCertificate => rule,
        Observe => rule.on("GET", "/servers"),
        Create => rule.on("POST", "/servers"),
        Start => rule.on("POST", "/poweron"),
        Resize => rule.on("POST", "/change_type"),
        Destroy => rule.on("DELETE", "/servers/"),
    }
}

fn told(seen: &Result<Done, ProviderError>) -> Outcome {
    match seen {
        Ok(_) => Outcome::Done,
        Err(ProviderError::NotOurs { .. }) => NotOurs,
        Err(ProviderError::Refused { .. }) => Refused,
        Err(ProviderError::Failed { .. }) => Failed,
        Err(ProviderError::Late { .. }) => Late,
        Err(ProviderError::NoAnswer { .. }) => NoAnswer,
    }
}

/// Does what was to be done once more, as it is said to heal; whether all is as it should be then.
async fn heal(project: &Project, what: What, made: &Order, order: Option<&Order>, heals: Heals) -> bool {
    let Some(order) = order else { return true };
    let provider = project.provider_with(|setup| {
        if what == Resize {
            setup.server_types.insert("web-1".parse().unwrap(), LARGE.into());
        }
    });
    let permit = project.permit();
    if heals == Anew {
        let machine = project.only(made).await;
        provider.apply(&destroy(made, &machine), &permit).await.unwrap();
        return provider.apply(made, &permit).await.is_ok();
    }
    let again = provider.apply(order, &permit).await;
    match (heals, what) {
        (Never, _) => matches!(again, Err(ProviderError::NotOurs { .. })),
        (_, Destroy) => again.is_ok(),
        _ => again.is_ok() && project.only(made).await.state == MachineState::Running,
    }
}
