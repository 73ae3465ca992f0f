//! Waiting for an activation without a say in what comes of it.

use orch_model::system::{RolloutPhase, SwitchAnswer, SwitchLimits, SwitchOrder};

use crate::machine::{LIMITS, Machine, order};
use crate::stand_in::StandIn;

#[test]
fn who_waits_for_an_activation_hears_of_it_and_confirms_nothing() {
    let Some((machine, first)) = Machine::with_first() else { return };
    let second = machine.add(&StandIn::good("second"));
    let limits = SwitchLimits { confirm: 2, ..LIMITS };
    machine.order(&SwitchOrder { limits, ..order("r1", &second) });
    for _ in 0..2 {
        let heard: SwitchAnswer = machine.answer(&["await", "r1"], "");
        assert_eq!(heard.record.phase, RolloutPhase::Waiting, "{heard:?}");
        assert_eq!(heard.view.running, Some(second.to_string()));
    }
    let record = machine.wait_for_end();
    assert_eq!(record.phase, RolloutPhase::RolledBack, "{record:?}");
    let heard: SwitchAnswer = machine.answer(&["await", "r1"], "");
    assert_eq!((heard.record.phase, heard.view.running), (RolloutPhase::RolledBack, Some(first.to_string())));
}
