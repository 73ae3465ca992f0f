//! When tasks start, whatever the plan: in one thread and in several.

use std::collections::HashSet;

use orch_dag::{OnError, Runner};
use proptest::prelude::*;
use tokio::runtime::Builder;

use crate::config;
use crate::spec::{Spec, specs};
use crate::trial::{Event, Trial, run, run_in};

fn starts_only_after_its_dependencies(spec: &Spec, trial: &Trial) {
    let ran: HashSet<usize> = trial
        .events
        .iter()
        .map(|event| match event {
            Event::Started { task, .. } | Event::Ended { task } => *task,
        })
        .collect();
    let mut last_end = vec![None; spec.tasks.len()];
    for (position, event) in trial.events.iter().enumerate() {
        if let Event::Ended { task } = event {
            last_end[*task] = Some(position);
        }
    }
    for (position, event) in trial.events.iter().enumerate() {
        let Event::Started { task, informed } = event else { continue };
        assert!(informed, "t{task} could not read how its dependencies ended");
        for dependency in spec.tasks[*task].after.iter().filter(|dependency| ran.contains(dependency)) {
            assert!(last_end[*dependency] < Some(position), "t{task} started before t{dependency} ended");
        }
    }
}

fn most_at_once(trial: &Trial) -> usize {
    let mut running = 0;
    let step = |event: &Event| {
        match event {
            Event::Started { .. } => running += 1,
            Event::Ended { .. } => running -= 1,
        }
        running
    };
    trial.events.iter().map(step).max().unwrap_or(0)
}

fn check(spec: &Spec, limit: usize, trial: &Trial) {
    starts_only_after_its_dependencies(spec, trial);
    assert!(most_at_once(trial) <= limit, "{} at once", most_at_once(trial));
}

proptest! {
    #![proptest_config(config(128))]

    #[test]
    fn a_task_never_starts_before_its_dependencies_ended_and_the_limit_is_kept(spec in specs(), limit in 1usize..6) {
        check(&spec, limit, &run(&spec, OnError::Continue, Runner::new().limit(limit)));
    }

    #[test]
    fn the_same_holds_in_several_threads(spec in specs(), limit in 1usize..6) {
        let runtime = Builder::new_multi_thread().worker_threads(3).enable_time().build().unwrap();
        // Sleeps and retries would really wait here.
        let tasks = spec.tasks.iter().cloned().map(|mut task| {
            task.sleeps = false;
            if task.behaviour == crate::spec::Behaviour::FailsAtFirst {
                task.behaviour = crate::spec::Behaviour::Changes;
            }
            task
        });
        let spec = Spec { tasks: tasks.collect(), ..spec };
        check(&spec, limit, &run_in(&runtime, &spec, OnError::Continue, Runner::new().limit(limit)));
    }
}
