//! The command line of `orch-node`: what it is asked, what it answers, and how it ends.

mod args;
mod config;
mod pulled;
mod system;

use std::ffi::OsString;
use std::io::{self, Write};
use std::process::ExitCode;

use orch_model::{
    ApplyReport, ApplyStatus, Config, Delivery, Digest, HealthReport, Inspection, Lacking, NodeKeys,
};
use rustix::process::{DumpableBehavior, set_dumpable_behavior};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::apply;
use crate::cancel::{Cancelled, cancel};
use crate::error::ApplyError;
use crate::first_boot::first_boot;
use crate::health;
use crate::init;
use crate::keys;
use crate::node::Node;
use crate::pull;
use crate::push::{Pushed, pass_on, push};
use crate::state::{ApplyLock, State};
use crate::unseal::unseal;
use crate::worker::{self, Terms, say};
use args::{Args, Order, USAGE};
use config::Origin;

/// Something was asked for that makes no sense, or nothing was touched for another reason.
const WRONG: u8 = 3;
/// A time limit was reached.
const LIMIT: u8 = 4;
/// Secrets are lacking, and nothing was touched. 5 is what a worker says to who started it.
const LACKING: u8 = 6;

/// Does what the arguments after the program's name say.
///
/// Exit codes: 0 done, 1 failed or unhealthy, 3 wrong input and nothing was touched, 4 a time limit was reached, 6 secrets
/// are lacking and nothing was touched.
pub fn command(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    // What is made for others to read is readable, whoever called.
    rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o022));
    match Args::parse(args) {
        Ok(args) => carry_out(args),
        Err(why) => {
            say(&why);
            say("run `orch-node --help` for what it takes");
            ExitCode::from(WRONG)
        }
    }
}

fn carry_out(args: Args) -> ExitCode {
    match args.order {
        Order::Version => print_text(&format!("orch-node {}\n", env!("CARGO_PKG_VERSION"))),
        Order::Help => print_text(USAGE),
        Order::Init => init::run(&init::Settings::default()),
        order => match Node::at(&args.root) {
            Ok(node) if node.is_real() && !node.sets_owners() && order.changes() => {
                wrong("it must be run as root")
            }
            Ok(node) => on_node(&node, order),
            Err(error) => wrong(&format!("`{}` cannot be opened: {error}", args.root.display())),
        },
    }
}

fn on_node(node: &Node, order: Order) -> ExitCode {
    if order.may_open_secrets() {
        keep_out_of_dumps();
    }
    match order {
        Order::Push(terms) => with_input(&Origin::Input, |delivery| {
            let pushed = take(node, delivery, terms).unwrap_or_else(|error| {
                // Whoever pushed gets a report in any case, also where none could be kept.
                Pushed::Ended(Box::new(apply::failed(&delivery.config, terms.mode, 1, &error.in_full())))
            });
            answer_push(pushed)
        }),
        Order::Keys => ended(keys_by(node, keys::make), |keys| print(&keys)),
        Order::Settle => ended(keys_by(node, keys::settle), |keys| print(&keys)),
        Order::Unseal => ended(unseal(node), |failures| answer_unseal(&failures)),
        Order::Worker { digest, terms } => worker::work(node, digest, terms),
        Order::Apply { from, terms } => {
            with_input(&from, |config| ended(apply_here(node, config, terms), answer_apply))
        }
        Order::Fetch(manner) => pulled::answer_fetch(pull::fetch(node, &manner)),
        Order::Run(manner) => pulled::answer_run(pull::run(node, &manner)),
        Order::Enrol => enrol(node),
        Order::FirstBoot => boot_first(node),
        Order::Converge(manner) => pulled::answer_converge(pull::converge(node, &manner)),
        Order::Inspect => {
            with_input(&Origin::Input, |config| ended(inspect(node, config), |seen| print(&seen)))
        }
        Order::Health { limit } => with_input(&Origin::Input, |config| {
            answer_health(&health::wait_until_healthy(node, config, limit))
        }),
        Order::Report => ended(last_report(node), answer_report),
        Order::Cancel { grace } => ended(cancel(node, grace), answer_cancel),
        Order::Has(digest) => ended(has(node, digest), |has| print_text(if has { "yes\n" } else { "no\n" })),
        Order::System(order) => system::on_node(node, order),
        Order::Init | Order::Version | Order::Help => ExitCode::SUCCESS,
    }
}

/// No image of this process is written anywhere, whatever it dies of, and nobody but root looks into it. What it starts is
/// as everything is.
fn keep_out_of_dumps() {
    // It cannot fail on any kernel that runs this.
    let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
}

/// Takes a delivery. The keys are said before anything else: whoever pushed may have to seal secrets for them first.
fn take(node: &Node, delivery: &Delivery, terms: Terms) -> Result<Pushed, ApplyError> {
    // Nobody may read them, which is no reason to stop.
    print(&keys_by(node, keys::make)?);
    push(node, delivery, terms, &mut pass_on)
}

fn keys_by(
    node: &Node,
    act: impl FnOnce(&Node, &State) -> Result<NodeKeys, ApplyError>,
) -> Result<NodeKeys, ApplyError> {
    act(node, &State::make(node)?)
}

fn answer_unseal(failures: &[String]) -> ExitCode {
    for failure in failures {
        say(failure);
    }
    if failures.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Takes the enrolment on standard input.
fn enrol(node: &Node) -> ExitCode {
    match Origin::Input.read() {
        Ok(enrolment) => ended(pull::enrol(node, &enrolment), |()| ExitCode::SUCCESS),
        // Without its cause, which may show the text: that is a secret.
        Err(error) => wrong(&error.to_string()),
    }
}

/// Takes what its platform gives the machine on standard input.
fn boot_first(node: &Node) -> ExitCode {
    match Origin::Input.read() {
        Ok(given) => ended(first_boot(node, &given), |()| ExitCode::SUCCESS),
        // Without its cause, which may show the text: that is a secret.
        Err(error) => wrong(&error.to_string()),
    }
}

fn with_input<T: DeserializeOwned>(origin: &Origin, act: impl FnOnce(&T) -> ExitCode) -> ExitCode {
    match origin.read() {
        Ok(input) => act(&input),
        Err(error) => wrong(&crate::error::in_full(&error)),
    }
}

fn ended<T>(result: Result<T, ApplyError>, answer: impl FnOnce(T) -> ExitCode) -> ExitCode {
    match result {
        Ok(value) => answer(value),
        Err(error) => {
            say(&error.in_full());
            ExitCode::FAILURE
        }
    }
}

fn answer_push(pushed: Pushed) -> ExitCode {
    match pushed {
        Pushed::Ended(report) => answer_apply(Some(*report)),
        Pushed::LimitReached(why) => {
            say(&format!("the time limit was reached: {why}, and goes on; `orch-node cancel` ends it"));
            ExitCode::from(LIMIT)
        }
        // Whoever pushes has never enough.
        Pushed::Left => ExitCode::FAILURE,
        Pushed::Lacking(lacking) => {
            print(&Lacking { lacking });
            ExitCode::from(LACKING)
        }
    }
}

/// Applies in this process.
fn apply_here(node: &Node, config: &Config, terms: Terms) -> Result<Option<ApplyReport>, ApplyError> {
    let state = State::make(node)?;
    let Some(lock) = ApplyLock::wait(&state, terms.limit)? else { return Ok(None) };
    state.hand_over(config)?;
    let applied = worker::apply_locked(node, &state, &lock, config.digest(), terms);
    applied.map(Some).map_err(|error| ApplyError::Impossible(crate::error::in_full(&error)))
}

fn answer_apply(report: Option<ApplyReport>) -> ExitCode {
    let Some(report) = report else {
        say("the time limit was reached: another configuration is still being applied");
        return ExitCode::from(LIMIT);
    };
    let printed = print(&report);
    if report.status == ApplyStatus::Complete { printed } else { ExitCode::FAILURE }
}

fn inspect(node: &Node, config: &Config) -> Result<Inspection, ApplyError> {
    let applied = State::find(node)?.map(|state| state.applied()).transpose()?.flatten();
    let resources = apply::inspect(node, config);
    Ok(Inspection { applied, resources, health: health::check(node, config) })
}

fn answer_health(reports: &[HealthReport]) -> ExitCode {
    let printed = print(reports);
    if reports.iter().all(|report| report.healthy) { printed } else { ExitCode::FAILURE }
}

fn last_report(node: &Node) -> Result<Option<ApplyReport>, ApplyError> {
    State::find(node)?.map(|state| state.report()).transpose().map(Option::flatten)
}

fn answer_report(report: Option<ApplyReport>) -> ExitCode {
    if let Some(report) = report {
        return print(&report);
    }
    say("no configuration was ever applied here");
    ExitCode::FAILURE
}

fn answer_cancel(cancelled: Cancelled) -> ExitCode {
    print_text(match cancelled {
        Cancelled::Nothing => "nothing is being applied\n",
        Cancelled::Stopped => "the work was stopped\n",
        Cancelled::Killed => "the work did not stop by itself and was ended\n",
    })
}

fn has(node: &Node, digest: Digest) -> Result<bool, ApplyError> {
    let applied = State::find(node)?.map(|state| state.applied()).transpose()?.flatten();
    Ok(applied == Some(digest))
}

fn wrong(why: &str) -> ExitCode {
    say(why);
    ExitCode::from(WRONG)
}

/// Prints an answer as one line of JSON, which is with its reader when this returns.
fn print(answer: &(impl Serialize + ?Sized)) -> ExitCode {
    let mut line = serde_json::to_string(answer).expect("what orch defines can be written as JSON");
    line.push('\n');
    print_text(&line)
}

fn print_text(text: &str) -> ExitCode {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Ok(()) => ExitCode::SUCCESS,
        // Whoever asked is gone, and what was asked for is done.
        Err(_) => ExitCode::FAILURE,
    }
}
