//! After everything was taken down, hosts are looked over: what is left is told, and is not called done.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use orch_model::{Config, Fleet};
use orch_plan::HostView;
use orch_run::memory::MemoryProvider;
use orch_run::{
    Belonging, Configured, Done, ExitCode, Left, Order, Owner, Permit, Pin, Provider, ProviderError, Report,
    Scope, Target, Transport, TransportError,
};

use crate::common::{Driver, host, memory, own_fleet, place};

/// A host that keeps things beside its machines.
struct Hoarder {
    inner: Arc<MemoryProvider>,
    kept: Mutex<Result<Vec<Belonging>, String>>,
}

#[async_trait]
impl Provider for Hoarder {
    async fn observe(&self, scope: &Scope) -> Result<HostView, ProviderError> {
        self.inner.observe(scope).await
    }

    async fn apply(&self, order: &Order, permit: &Permit) -> Result<Done, ProviderError> {
        self.inner.apply(order, permit).await
    }

    async fn pin(&self, pin: &Pin, permit: &Permit) -> Result<Done, ProviderError> {
        self.inner.pin(pin, permit).await
    }

    async fn tidy(&self, of: &Owner, permit: &Permit) -> Result<(), ProviderError> {
        assert!(permit.covers(&of.host) && of.manifest.is_some());
        if let Ok(kept) = self.kept.lock().expect("nobody panics while holding this").as_mut() {
            kept.retain(|thing| thing.kind != "group");
        }
        Ok(())
    }

    async fn belongings(&self, of: &Owner) -> Result<Vec<Belonging>, ProviderError> {
        let kept = self.kept.lock().expect("nobody panics while holding this").clone();
        kept.map_err(|why| ProviderError::NoAnswer { host: of.host.clone(), why })
    }
}

#[async_trait]
impl Transport for Hoarder {
    async fn configure(
        &self,
        target: &Target,
        config: &Config,
        permit: &Permit,
    ) -> Result<Configured, TransportError> {
        self.inner.configure(target, config, permit).await
    }
}

fn thing(kind: &str, manifest: Option<&str>, node: Option<&str>) -> Belonging {
    Belonging {
        host: host("father"),
        kind: kind.into(),
        id: format!("{kind}-1"),
        name: format!("a-{kind}"),
        manifest: manifest.map(|name| name.parse().expect("it is a name")),
        node: node.map(|name| name.parse().expect("it is a name")),
        stray: false,
    }
}

fn fleet() -> Fleet {
    own_fleet("", "  - { name: web, type: vm, preset: small, image: i }")
}

async fn destroyed(kept: Result<Vec<Belonging>, String>) -> Report {
    let hoarder = Arc::new(Hoarder { inner: memory(), kept: Mutex::new(kept) });
    let driver = Driver::of(&hoarder);
    driver.create(&fleet()).await;
    driver.destroy(&fleet()).await
}

#[tokio::test]
async fn what_is_left_of_a_node_is_told_and_is_not_done() {
    let manifest = fleet().manifest;
    let (own, others) = (thing("disk", Some(manifest.as_str()), Some("web")), thing("network", None, None));
    let report = destroyed(Ok(vec![own.clone(), others])).await;
    assert_eq!(report.exit_code, Some(ExitCode::Partly), "{report}");
    assert_eq!(report.left.found, [own], "what is there for all of the site is not left behind");
    let told = format!("left behind:\n  disk `a-disk` (disk-1) on `father`, of {manifest}.web\n");
    assert!(report.to_string().contains(&told), "{report}");
}

#[tokio::test]
async fn what_an_interrupted_run_left_of_what_nodes_share_is_removed_by_a_run_that_finds_no_nodes() {
    let group = thing("group", Some(fleet().manifest.as_str()), None);
    let hoarder = Arc::new(Hoarder { inner: memory(), kept: Mutex::new(Ok(vec![group])) });
    let report = Driver::of(&hoarder).destroy(&fleet()).await;
    assert_eq!(report.exit_code, Some(ExitCode::Done), "{report}");
}

#[tokio::test]
async fn a_host_that_cannot_be_looked_over_is_not_taken_for_a_clean_one() {
    let report = destroyed(Err("the line is cut".into())).await;
    assert_eq!(report.exit_code, Some(ExitCode::Partly), "{report}");
    assert!(report.to_string().contains("`father` could not be looked over"), "{report}");
}

#[tokio::test]
async fn where_nothing_is_left_it_is_done() {
    let report = destroyed(Ok(Vec::new())).await;
    assert_eq!(report.exit_code, Some(ExitCode::Done), "{report}");
}

#[tokio::test]
async fn unwanted_is_what_no_manifest_of_the_site_has() {
    let gone = thing("machine", Some("gone"), Some("web"));
    let dropped = thing("machine", Some("kept"), Some("dropped"));
    let stray = Belonging { stray: true, ..thing("disc", None, None) };
    let all = vec![
        gone.clone(),
        dropped.clone(),
        thing("machine", Some("kept"), Some("web")),
        thing("group", Some("kept"), None),
        thing("network", None, None),
        stray.clone(),
    ];
    let hoarder = Arc::new(Hoarder { inner: memory(), kept: Mutex::new(Ok(all)) });
    let places = BTreeMap::from([(host("father"), place(&hoarder))]);
    let site = "site".parse().expect("it is a name");
    let left = Left::look(&places, &site, None, Duration::from_secs(5)).await;
    let wanted = BTreeMap::from([(
        "kept".parse().expect("it is a name"),
        BTreeSet::from(["web".parse().expect("it is a name")]),
    )]);
    let mut expected = vec![gone, dropped, stray];
    expected.sort();
    assert_eq!(left.unwanted(&wanted).found, expected);
}
