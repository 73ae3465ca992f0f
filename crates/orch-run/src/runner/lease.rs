//! NixOS nodes are the run's alone while it lasts: all of them before anything is done to one, or none.
//!
//! A lease ends by itself where its run does not ask for it again in time. So a run that was held up for long does not
//! trust what it had: it begins nothing on a node whose lease it may have lost.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use orch_model::Identity;
use orch_model::system::{LeaseAnswer, LeaseClaim, SystemView};
use orch_plan::{NodePlan, Plan};
use tokio::task::JoinHandle;

use super::carry_out::Work;
use crate::caller;
use crate::doors::at_once;
use crate::journal::Entry;
use crate::system::Leaser;
use crate::tenure::{Tenancy, held_by, now};
use crate::transport::{Target, TransportError};

/// What to try where another run has a node.
pub(super) const IN_USE_HINT: &str =
    "wait until that is over and run again; a run that was killed keeps nodes for a minute or so";

/// What came of asking for the nodes of a run.
pub(super) enum Asked {
    /// Nothing stands in the way.
    Granted(Leases),
    /// At least one node is not to be had, so none is taken and nothing is begun: why, by node.
    Refused(BTreeMap<Identity, String>),
}

/// The nodes that a run has to itself.
pub(super) struct Leases {
    renewal: Option<JoinHandle<()>>,
}

/// One node that a run needs to itself.
#[derive(Clone)]
struct Wanted {
    target: Target,
    leaser: Arc<dyn Leaser>,
}

/// Asks for every NixOS node of a plan: the first in the order of identities alone, as an arbiter between runs that ask at the same
/// time, then the others at once. Whatever was granted is given back where one is refused.
pub(super) async fn ask(plan: &Plan, work: &Arc<Work>) -> Asked {
    let wanted = wanted(plan, work);
    let claim = claim(work);
    let tenure = work.permit.tenure();
    tenure.clear();
    for Wanted { target, .. } in &wanted {
        // Whatever comes of asking: a node that was to be asked for is not begun with before it is granted.
        tenure.set(&target.identity, Tenancy::Never("it was not asked for".to_owned()));
    }
    // What is granted first must hold until the last has answered.
    let renewal =
        (!wanted.is_empty()).then(|| tokio::spawn(renew(Arc::clone(work), wanted.clone(), claim.clone())));
    let leases = Leases { renewal };
    let answers = answers(work, &wanted, &claim).await;
    let refused = judge(plan, &wanted, answers);
    if may_not_begin(plan, &refused) {
        leases.give_back(&wanted, work).await;
        return Asked::Refused(in_the_way(refused));
    }
    for (node, denial) in refused {
        tenure.set(&node, Tenancy::Never(denial.words()));
    }
    if !wanted.is_empty() {
        let is_held = |node: &Identity| matches!(tenure.get(node), Some(Tenancy::Held { .. }));
        let nodes = wanted.iter().map(|wanted| wanted.target.identity.clone()).filter(is_held).collect();
        let entry = Entry::Leased { at: Timestamp::now(), claim: claim.run.clone(), nodes };
        // A lease needs no trace to end; a journal that cannot be written stops the engine by itself.
        let _ = work.journal().append(entry).await;
    }
    Asked::Granted(leases)
}

/// Whom to blame for a run that may not begin: those that others have, and where there are none, those that could not be asked.
fn in_the_way(refused: BTreeMap<Identity, Denial>) -> BTreeMap<Identity, String> {
    let is_taken = |denial: &Denial| matches!(denial, Denial::Taken(_));
    let any_is_taken = refused.values().any(is_taken);
    let blamed = refused.into_iter().filter(|(_, denial)| is_taken(denial) || !any_is_taken);
    blamed.map(|(node, denial)| (node, denial.words())).collect()
}

/// What a run asks its nodes with.
pub(super) fn claim(work: &Work) -> LeaseClaim {
    LeaseClaim {
        holder: caller::name(),
        run: work.permit.claim().to_owned(),
        seconds: whole_seconds(work.patience().lease),
    }
}

/// What each node said, in their order, as far as they were asked: after a refusal the others are left in peace.
async fn answers(
    work: &Arc<Work>,
    wanted: &[Wanted],
    claim: &LeaseClaim,
) -> Vec<Result<LeaseAnswer, Denial>> {
    let mut answers = Vec::new();
    let mut others = wanted.iter();
    for arbiter in others.by_ref() {
        let answer = one(work, arbiter, claim).await;
        let is_taken = matches!(answer, Err(Denial::Taken(_)));
        // One that cannot be asked cannot decide between runs, so the next one does.
        let decides = is_taken || answer.is_ok();
        answers.push(answer);
        if is_taken {
            return answers;
        }
        if decides {
            break;
        }
    }
    let questions = others.cloned().map(|wanted| {
        let (work, claim) = (Arc::clone(work), claim.clone());
        async move { one(&work, &wanted, &claim).await }
    });
    let lost = || Err(Denial::Unasked("it could not be asked for".to_owned()));
    answers.extend(at_once(questions).await.into_iter().map(|answer| answer.unwrap_or_else(lost)));
    answers
}

impl Leases {
    /// Gives everything back, and writes that down.
    pub(super) async fn end(self, plan: &Plan, work: &Arc<Work>) {
        if self.renewal.is_some() {
            let untold = self.give_back(&wanted(plan, work), work).await;
            let _ = work.journal().append(Entry::Released { at: Timestamp::now(), untold }).await;
        }
    }

    /// Gives back what is held. Those that could not be told are free when their time is over.
    async fn give_back(self, wanted: &[Wanted], work: &Arc<Work>) -> Vec<Identity> {
        if let Some(renewal) = self.renewal {
            renewal.abort();
            // Nothing is asked for any more once this has ended.
            let _ = renewal.await;
        }
        let tenure = work.permit.tenure();
        let is_held = |wanted: &&Wanted| {
            matches!(tenure.get(&wanted.target.identity), Some(Tenancy::Held { .. } | Tenancy::Lost(_)))
        };
        let held: Vec<Wanted> = wanted.iter().filter(is_held).cloned().collect();
        tenure.clear();
        let farewells = held.iter().cloned().map(|wanted| {
            let work = Arc::clone(work);
            async move {
                let told = wanted.leaser.release(&wanted.target, work.permit.claim());
                tokio::time::timeout(work.patience().look, told).await.is_ok_and(|told| told.is_ok())
            }
        });
        let told = at_once(farewells).await;
        let untold = held.iter().zip(told).filter(|(_, told)| *told != Some(true));
        untold.map(|(wanted, _)| wanted.target.identity.clone()).collect()
    }
}

/// Why a node was not to be had.
enum Denial {
    /// Another has it, or had it meanwhile.
    Taken(String),
    /// It cannot be told.
    Unasked(String),
}

impl Denial {
    fn words(self) -> String {
        match self {
            Self::Taken(why) | Self::Unasked(why) => why,
        }
    }
}

/// In the order of identities. A node that is to be made is nobody's yet.
fn wanted(plan: &Plan, work: &Work) -> Vec<Wanted> {
    if plan.is_noop() {
        return Vec::new();
    }
    let nodes = plan.nodes.iter().filter(|node| !node.is_refused()).filter_map(|node| {
        let nixos = node.nixos.as_ref()?;
        let leaser = work.place(&node.identity).ok()?.leaser.clone()?;
        Some(Wanted { target: work.target(&node.identity, nixos.machine.uuid, nixos.mode), leaser })
    });
    let mut wanted: Vec<Wanted> = nodes.collect();
    wanted.sort_by(|a, b| a.target.identity.cmp(&b.target.identity));
    wanted
}

/// Asks one node, and notes where it is granted.
async fn one(work: &Work, wanted: &Wanted, claim: &LeaseClaim) -> Result<LeaseAnswer, Denial> {
    let patience = work.patience();
    let mut wait = patience.first_wait;
    let mut tries = 0;
    loop {
        // Counted from before the question: the node counts from when it hears it, which is later.
        let until = now() + patience.lease;
        let asked = wanted.leaser.lease(&wanted.target, claim, &work.permit);
        let error = match tokio::time::timeout(patience.look, asked).await {
            Ok(Ok(answer)) if answer.granted => {
                let since = answer.view.lease.as_ref().map(|lease| lease.since.clone());
                work.permit.tenure().set(&wanted.target.identity, Tenancy::Held { since, until });
                return Ok(answer);
            }
            Ok(Ok(answer)) => return Err(Denial::Taken(held_by(&answer.view))),
            Ok(Err(error)) if !error.is_passing() || tries == patience.retries => error,
            Ok(Err(_)) => {
                tries += 1;
                tokio::time::sleep(wait).await;
                wait = (wait * 2).min(patience.longest_wait);
                continue;
            }
            Err(_) => TransportError::Silent {
                node: wanted.target.identity.clone(),
                why: format!("it was asked for, and said nothing within {:?}", patience.look),
                evidence: Vec::new(),
            },
        };
        return Err(Denial::Unasked(error.to_string()));
    }
}

/// What was not granted, and why. A node of which the plan said that nothing is to be done must still run what the plan saw:
/// another run may have moved it since.
fn judge(
    plan: &Plan,
    wanted: &[Wanted],
    answers: Vec<Result<LeaseAnswer, Denial>>,
) -> BTreeMap<Identity, Denial> {
    let nodes: BTreeMap<&Identity, &NodePlan> =
        plan.nodes.iter().map(|node| (&node.identity, node)).collect();
    let denials = wanted.iter().zip(answers).filter_map(|(wanted, answer)| {
        let identity = &wanted.target.identity;
        let denial = match answer {
            Err(denial) => denial,
            Ok(answer) => moved_meanwhile(nodes.get(identity)?, &answer.view)?,
        };
        Some((identity.clone(), denial))
    });
    denials.collect()
}

fn moved_meanwhile(node: &NodePlan, view: &SystemView) -> Option<Denial> {
    let system = &node.nixos.as_ref()?.system;
    let running = view.running.as_deref();
    if !node.is_noop() || running == Some(system.as_str()) {
        return None;
    }
    let by = view.rollout.as_ref().map(|rollout| format!(" by run {}", rollout.run)).unwrap_or_default();
    let runs = running.unwrap_or("nothing that could be read");
    Some(Denial::Taken(format!("it was changed meanwhile{by}: it runs {runs} and not {system}; run again")))
}

/// Whether nothing at all is begun. What another has is a reason in any case. A node that cannot be asked fails by itself only where
/// the run goes on after failures.
fn may_not_begin(plan: &Plan, refused: &BTreeMap<Identity, Denial>) -> bool {
    let is_taken = |denial: &Denial| matches!(denial, Denial::Taken(_));
    let may_fail = match (&plan.stages, plan.on_error) {
        (Some(stages), _) => stages.max_fail,
        (None, orch_model::OnError::Continue) => usize::MAX,
        (None, orch_model::OnError::Stop | orch_model::OnError::Rollback) => 0,
    };
    refused.values().any(is_taken) || refused.len() > may_fail
}

/// Asks for the nodes again, three times in the time that a lease lasts.
async fn renew(work: Arc<Work>, wanted: Vec<Wanted>, claim: LeaseClaim) {
    let every = work.patience().lease / 3;
    loop {
        tokio::time::sleep(every).await;
        let questions = wanted.iter().cloned().map(|wanted| {
            let (work, claim) = (Arc::clone(&work), claim.clone());
            async move { renew_one(&work, &wanted, &claim, every).await }
        });
        at_once(questions).await;
    }
}

/// Asks for a node again, also for one that was lost: whoever has it then keeps others from it, and begins nothing itself.
async fn renew_one(work: &Work, wanted: &Wanted, claim: &LeaseClaim, within: Duration) {
    let (identity, tenure) = (&wanted.target.identity, work.permit.tenure());
    let Some(before @ (Tenancy::Held { .. } | Tenancy::Lost(_))) = tenure.get(identity) else { return };
    let until = now() + work.patience().lease;
    let asked = wanted.leaser.lease(&wanted.target, claim, &work.permit);
    // Where it does not answer, it is asked again before its time is over, and not trusted after that.
    if let Ok(Ok(answer)) = tokio::time::timeout(within, asked).await {
        tenure.set(identity, before.renewed(answer, claim, until));
    }
}

/// Whole seconds, never less than asked for and never none.
fn whole_seconds(time: Duration) -> u64 {
    (time.as_secs() + u64::from(time.subsec_nanos() > 0)).max(1)
}
