//! How tasks end, whatever the plan.

use orch_dag::{HostStatus, OnError, Runner};
use proptest::prelude::*;
use proptest::sample::select;

use crate::config;
use crate::model::{Expected, expect};
use crate::spec::{name, number, specs};
use crate::trial::run;

proptest! {
    #![proptest_config(config(256))]

    #[test]
    fn every_task_ends_as_the_decision_order_says(spec in specs(), limit in 1usize..8) {
        let trial = run(&spec, OnError::Continue, Runner::new().limit(limit));
        let expected: Vec<Expected> = expect(&spec);
        for task in &trial.report.tasks {
            let expected = &expected[number(&task.name)];
            prop_assert_eq!(&task.status.to_string(), &expected.status, "{}", task.name);
            prop_assert_eq!(task.value, expected.value, "{}", task.name);
            let hosts: Vec<HostStatus> = task.hosts.values().copied().collect();
            prop_assert_eq!(&hosts, &expected.hosts, "{}", task.name);
        }
    }

    #[test]
    fn no_task_is_ever_missing_from_the_report(
        spec in specs(),
        on_error in select(vec![OnError::Stop, OnError::StopAll, OnError::Continue]),
    ) {
        let trial = run(&spec, on_error, Runner::new());
        let reported: Vec<String> = trial.report.tasks.iter().map(|task| task.name.to_string()).collect();
        let listed: Vec<String> = spec.listed.iter().map(|task| name(*task)).collect();
        prop_assert_eq!(reported, listed);
    }
}
