//! What is asked of `orch-node system`, and what it answers: JSON in, one line of JSON out.

use std::time::Duration;

use orch_run::{Ended, Target, TransportError};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::push::{Program, said, tail};
use crate::remote::Remote;

/// The exit code of a node that did not get done within the limit.
const LIMIT_REACHED: i32 = 4;

/// Whoever is asked.
pub(crate) struct Asking<'a> {
    pub(crate) remote: &'a dyn Remote,
    pub(crate) program: &'a Program,
    pub(crate) target: &'a Target,
}

impl Asking<'_> {
    /// Asks with a question as JSON.
    pub(crate) async fn about<T: DeserializeOwned>(
        &self,
        args: &[&str],
        question: &impl Serialize,
        limit: Duration,
    ) -> Result<T, TransportError> {
        let input = serde_json::to_vec(question).expect("what orch defines can be written as JSON");
        self.ask(args, &input, limit).await
    }

    /// Asks. A node without the program is given it first.
    pub(crate) async fn ask<T: DeserializeOwned>(
        &self,
        args: &[&str],
        input: &[u8],
        limit: Duration,
    ) -> Result<T, TransportError> {
        let ended = self.program.run(self.remote, self.target, args, input, limit).await?;
        said(&ended).ok_or_else(|| self.no_answer(args, &ended))
    }

    /// A program that ended without an answer; its last words say why.
    fn no_answer(&self, args: &[&str], ended: &Ended) -> TransportError {
        let (node, evidence) = (self.target.identity.clone(), tail(&ended.stderr));
        let what = args.get(..2).unwrap_or(args).join(" ");
        let telling = evidence.iter().rfind(|line| !line.starts_with("hint: "));
        let last = telling.map(|line| line.strip_prefix("error: ").unwrap_or(line).to_owned());
        match ended.code {
            Some(LIMIT_REACHED) => {
                let why = last.unwrap_or_else(|| format!("`{what}` reached its limit"));
                TransportError::Late { node, why, evidence }
            }
            Some(code) => {
                let why = last.unwrap_or_else(|| format!("`{what}` ended with code {code} and no answer"));
                TransportError::Failed { node, why, evidence }
            }
            None => {
                let why = format!("`{what}` was killed");
                TransportError::Unreachable { node, why, evidence }
            }
        }
    }
}
