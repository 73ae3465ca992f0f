//! Two tasks side by side, and a third that waits for both and runs only if one of them changed something.

#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use orch_dag::{Outcome, Plan, PlanError, Runner};

#[tokio::main]
async fn main() -> Result<(), PlanError> {
    let mut plan = Plan::new("greeting");
    let one = plan.task("fetch-name", |_| async { Ok(Outcome::changed().with("world")) }).id();
    let two = plan.task("fetch-word", |_| async { Ok(Outcome::unchanged().with("hello")) }).id();
    plan.task("greet", |cx| async move {
        let word = cx.value("fetch-word").ok_or_else(missing)?;
        let name = cx.value("fetch-name").ok_or_else(missing)?;
        println!("{word}, {name}");
        Ok(Outcome::changed().with("said"))
    })
    .after_all([one, two])
    .only_if_changed();

    let report = Runner::new().run(plan).await?;
    println!("{report}");
    Ok(())
}

fn missing() -> orch_dag::TaskError {
    orch_dag::TaskError::new("a dependency returned nothing")
}
