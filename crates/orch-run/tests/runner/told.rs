//! A provider that cannot look into its machines is told what they became, and what it was told is taken back before that is
//! changed: whoever is cut off in between leaves no wrong claim.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use orch_model::{Config, NodeKeys};
use orch_plan::{Applied, HostView};
use orch_run::memory::MemoryProvider;
use orch_run::{
    Configured, Done, ExitCode, Order, Permit, Pin, Provider, ProviderError, Scope, Target, Transport,
    TransportError,
};

use crate::common::{Driver, host, own_fleet, statuses};

const BASE: &str = "  - { name: web, type: vm, spec: base, preset: small, image: i }";
const OTHER: &str = "  - { name: web, type: vm, spec: pve, preset: small, image: i }";

/// A host that knows of its one machine what it was told.
struct Told {
    inner: Arc<MemoryProvider>,
    applied: Mutex<Applied>,
    ports: Mutex<Vec<Option<u16>>>,
    /// Whether configurations break off in the middle.
    breaks: Mutex<bool>,
}

impl Told {
    fn new() -> Arc<Self> {
        let (applied, ports, breaks) = (Mutex::new(Applied::Never), Mutex::default(), Mutex::default());
        Arc::new(Self { inner: Arc::new(MemoryProvider::new(host("father"))), applied, ports, breaks })
    }

    fn claim(&self) -> Applied {
        *self.applied.lock().expect("nobody panics while holding this")
    }
}

#[async_trait]
impl Provider for Told {
    async fn observe(&self, scope: &Scope) -> Result<HostView, ProviderError> {
        let mut view = self.inner.observe(scope).await?;
        if let HostView::Seen { machines, .. } = &mut view {
            for machine in machines {
                machine.applied = self.claim();
            }
        }
        Ok(view)
    }

    async fn apply(&self, order: &Order, permit: &Permit) -> Result<Done, ProviderError> {
        self.inner.apply(order, permit).await
    }

    fn is_told(&self) -> bool {
        true
    }

    async fn pin(&self, pin: &Pin, permit: &Permit) -> Result<Done, ProviderError> {
        self.inner.pin(pin, permit).await?;
        self.ports.lock().expect("nobody panics while holding this").push(pin.ssh_port);
        if let Some(applied) = pin.applied {
            *self.applied.lock().expect("nobody panics while holding this") = applied;
        }
        Ok(Done::Changed)
    }
}

#[async_trait]
impl Transport for Told {
    async fn configure(
        &self,
        target: &Target,
        config: &Config,
        permit: &Permit,
    ) -> Result<Configured, TransportError> {
        let done = self.inner.configure(target, config, permit).await?;
        if *self.breaks.lock().expect("nobody panics while holding this") {
            let (node, why) = (target.identity.clone(), "it broke off".to_owned());
            return Err(TransportError::Failed { node, why, evidence: Vec::new() });
        }
        Ok(done)
    }

    async fn settle(&self, target: &Target, permit: &Permit) -> Result<NodeKeys, TransportError> {
        self.inner.settle(target, permit).await
    }
}

#[tokio::test]
async fn what_a_node_became_is_told_once_and_is_not_asked_for_again() {
    let (told, fleet) = (Told::new(), own_fleet("", BASE));
    let driver = Driver::of(&told);
    let report = driver.create(&fleet).await;
    assert_eq!(report.exit_code, Some(ExitCode::Done), "{report}");
    assert_ne!(told.claim(), Applied::Never);
    let ports = told.ports.lock().expect("nobody panics while holding this").clone();
    assert_eq!(ports, [Some(22), Some(22)], "where it answers is known before it is connected to again");
    assert_eq!(statuses(&driver.create(&fleet).await), "web unchanged");
}

#[tokio::test]
async fn a_configuration_that_broke_off_leaves_no_claim_to_the_one_before() {
    let (told, fleet) = (Told::new(), own_fleet("", BASE));
    let driver = Driver::of(&told);
    driver.create(&fleet).await;
    *told.breaks.lock().expect("nobody panics while holding this") = true;
    let report = driver.create(&own_fleet("", OTHER)).await;
    assert_eq!(statuses(&report), "web failed", "{report}");
    assert_eq!(told.claim(), Applied::Never, "it is half of one and half of the other");
    *told.breaks.lock().expect("nobody panics while holding this") = false;
    let report = driver.create(&fleet).await;
    assert_eq!(
        statuses(&report),
        "web changed",
        "whoever goes back is not told that nothing is to do: {report}"
    );
}
