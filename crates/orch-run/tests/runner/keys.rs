//! What a node is known by is written on its machine before it puts away the key that it was made with, and nothing is done
//! before that was read back.

use std::sync::{Arc, Mutex};

use orch_model::{AgeRecipient, Config, Identity, KeyName, Parcel};
use orch_plan::Keys;
use orch_run::memory::{Fault, FaultKind, Faulty, MemoryProvider};
use orch_run::{ExitCode, Treasury, TreasuryError};

use crate::common::{Driver, host, notes, own_fleet, statuses};

const ONE: &str = "  - { name: web, type: vm, spec: base, preset: small, image: i }";

fn world() -> Arc<MemoryProvider> {
    Arc::new(MemoryProvider::new(host("father")))
}

#[tokio::test]
async fn a_node_is_known_by_its_own_keys_once_it_is_configured_and_asked_no_more() {
    let (world, fleet) = (world(), own_fleet("", ONE));
    let counted = Arc::new(Faulty::new(Arc::clone(&world), host("father"), Vec::new()));
    let driver = Driver::of(&counted);
    assert_eq!(driver.create(&fleet).await.exit_code, Some(ExitCode::Done));
    assert!(matches!(&world.world().machines[0].keys, Keys::Known(keys) if keys.settled));
    // Made, configured, written down, told to put its first key away, written down.
    assert_eq!(counted.effects(), 5);
    assert_eq!(statuses(&driver.create(&fleet).await), "web unchanged");
    assert_eq!(counted.effects(), 5, "unchanged is untouched");
    driver.config(&fleet).await;
    assert_eq!(counted.effects(), 5);
}

#[tokio::test]
async fn one_that_was_configured_and_is_not_known_yet_is_not_done() {
    let (world, fleet) = (world(), own_fleet("", ONE));
    for (nth, known) in [(3, false), (4, true), (5, true)] {
        let refusing = vec![Fault::nth(nth, FaultKind::Refuse)];
        let report = Driver::of(&Arc::new(Faulty::new(Arc::clone(&world), host("father"), refusing)));
        let report = report.create(&fleet).await;
        assert_eq!(statuses(&report), "web failed", "effect {nth}");
        let keys = world.world().machines[0].keys.clone();
        assert!(keys.are_awaited() && keys.known().is_some() == known, "effect {nth}: {keys:?}");
        assert_eq!(Driver::of(&world).create(&fleet).await.exit_code, Some(ExitCode::Done), "it heals");
        assert_eq!(Driver::of(&world).destroy(&fleet).await.exit_code, Some(ExitCode::Done));
    }
}

/// Writes down whom it was asked to let in and to show out, and refuses the first time where it is to.
#[derive(Default)]
struct Doorman {
    said: Mutex<Vec<String>>,
    refuses: Mutex<bool>,
    /// Whether whoever is asked about is somebody already.
    knows: bool,
}

impl Doorman {
    fn note(&self, word: &str, recipient: &AgeRecipient) -> Result<Vec<String>, TreasuryError> {
        if std::mem::take(&mut *self.refuses.lock().expect("nobody panics while holding this")) {
            return Err(TreasuryError { what: "the file is gone".into(), hint: "bring it back".into() });
        }
        self.said
            .lock()
            .expect("nobody panics while holding this")
            .push(format!("{word} {}", &recipient.as_str()[..5]));
        Ok(vec![format!("{word} it")])
    }
}

impl Treasury for Doorman {
    fn token(&self, mention: &orch_model::SecretRef) -> Result<orch_run::Secret, TreasuryError> {
        orch_run::NoTreasury.token(mention)
    }

    fn pack(&self, _: &Config, _: &[KeyName], _: &AgeRecipient) -> Result<Parcel, TreasuryError> {
        unreachable!("nodes in memory ask for nothing")
    }

    fn admit(&self, _: &Config, recipient: &AgeRecipient) -> Result<Vec<String>, TreasuryError> {
        self.note("admitted", recipient)
    }

    fn is_known(&self, _: &AgeRecipient) -> Result<bool, TreasuryError> {
        Ok(self.knows)
    }

    fn has_files(&self) -> bool {
        true
    }

    fn dismiss(&self, _: &Identity, recipient: &AgeRecipient) -> Result<Vec<String>, TreasuryError> {
        self.note("dismissed", recipient)
    }
}

#[tokio::test]
async fn a_node_that_is_to_be_destroyed_is_shown_out_first_and_stays_where_that_fails() {
    let (world, fleet) = (world(), own_fleet("", ONE));
    let doorman = Arc::new(Doorman::default());
    let driver = Driver { treasury: Arc::clone(&doorman) as _, ..Driver::of(&world) };
    driver.create(&fleet).await;
    assert!(
        doorman.said.lock().expect("nobody panics while holding this").is_empty(),
        "its spec does not say that it reads sops files"
    );
    *doorman.refuses.lock().expect("nobody panics while holding this") = true;
    let report = driver.destroy(&fleet).await;
    assert_eq!((report.exit_code, world.world().machines.len()), (Some(ExitCode::Failed), 1), "{report}");
    assert!(report.to_string().contains("bring it back"), "{report}");
    let report = driver.destroy(&fleet).await;
    assert_eq!((report.exit_code, world.world().machines.len()), (Some(ExitCode::Done), 0), "{report}");
    assert_eq!(notes(&report), ["dismissed it"]);
}

#[tokio::test]
async fn a_node_that_says_it_has_somebody_elses_key_is_not_believed_and_takes_nobody_down_with_it() {
    let (world, fleet) = (world(), own_fleet("", ONE));
    let doorman = Arc::new(Doorman { knows: true, ..Doorman::default() });
    let driver = Driver { treasury: Arc::clone(&doorman) as _, ..Driver::of(&world) };
    let report = driver.create(&fleet).await;
    assert_eq!(statuses(&report), "web failed");
    assert!(report.to_string().contains("which is somebody else's"), "{report}");
    assert_eq!(world.world().machines[0].keys, Keys::Awaited, "nothing was written down");
    assert_eq!(driver.destroy(&fleet).await.exit_code, Some(ExitCode::Done));
    assert!(doorman.said.lock().expect("nobody panics while holding this").is_empty(), "nobody is shown out");
}
