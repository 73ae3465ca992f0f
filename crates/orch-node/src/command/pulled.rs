//! What is answered to whoever asked the node to fetch its configuration.

use std::process::ExitCode;

use super::{LIMIT, answer_apply, print_text, say, wrong};
use crate::error::in_full;
use crate::pull::{Converged, PullError, Told};

pub(super) fn answer_fetch(fetched: Result<Option<Converged>, PullError>) -> ExitCode {
    match fetched {
        Ok(Some(converged)) => answer(converged),
        Ok(None) => busy(),
        Err(error) => failed(&error),
    }
}

pub(super) fn answer_run(ended: Result<Option<()>, PullError>) -> ExitCode {
    match ended {
        Ok(Some(())) => ExitCode::SUCCESS,
        Ok(None) => busy(),
        Err(error) => failed(&error),
    }
}

pub(super) fn answer_converge(told: Result<Option<Told>, PullError>) -> ExitCode {
    match told {
        Ok(Some(Told::Process(pid))) => print_text(&format!("process {pid} was told to converge\n")),
        Ok(Some(Told::Done(converged))) => answer(converged),
        Ok(None) => {
            say("the time limit was reached: somebody else still fetches for this node");
            ExitCode::from(LIMIT)
        }
        Err(error) => failed(&error),
    }
}

fn answer(converged: Converged) -> ExitCode {
    match converged {
        Converged::Ended(report) | Converged::NotFetched(report) => answer_apply(Some(*report)),
        Converged::Renewed => ExitCode::SUCCESS,
        Converged::Left(why) => {
            say(why);
            ExitCode::from(LIMIT)
        }
    }
}

fn busy() -> ExitCode {
    wrong("somebody else fetches for this node already; `orch-node converge` tells who runs to do it now")
}

fn failed(error: &PullError) -> ExitCode {
    let words = in_full(error);
    match error {
        PullError::NotEnrolled | PullError::Enrolment(_) => wrong(&words),
        PullError::State(_) => {
            say(&words);
            ExitCode::FAILURE
        }
    }
}
