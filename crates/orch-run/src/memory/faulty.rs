//! What can go wrong with any provider: it fails before the effect, its answer is lost after the effect, it is slow, or
//! the driver is killed.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use orch_model::{Config, HostName, Identity, NodeKeys, NodeName};
use orch_plan::HostView;

use crate::permit::Permit;
use crate::provider::{Belonging, Done, Order, Owner, Pin, Provider, ProviderError, Scope};
use crate::transport::{Configured, Target, Transport, TransportError};

/// One thing that goes wrong.
#[derive(Debug, Clone)]
pub struct Fault {
    /// What happens.
    pub kind: FaultKind,
    /// At which effect, counted from 1; any where there is none.
    pub nth: Option<usize>,
    /// For which node; any where there is none.
    pub node: Option<NodeName>,
    /// Whether it happens again and again.
    pub always: bool,
}

/// What goes wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FaultKind {
    /// It fails, and nothing was done.
    FailBefore,
    /// It is refused for good, and nothing was done.
    Refuse,
    /// It is done, and the answer is lost.
    LoseAnswer,
    /// It is done, and the answer never comes.
    Hang,
    /// It takes this much longer.
    Slow(Duration),
    /// The driver is killed before it is done.
    KillBefore,
    /// The driver is killed after it is done.
    KillAfter,
}

impl Fault {
    /// At the nth effect, once.
    pub const fn nth(nth: usize, kind: FaultKind) -> Self {
        Self { kind, nth: Some(nth), node: None, always: false }
    }

    /// Whenever something is done to this node.
    pub const fn node(node: NodeName, kind: FaultKind) -> Self {
        Self { kind, nth: None, node: Some(node), always: true }
    }
}

/// A provider and transport that something is wrong with.
pub struct Faulty<P> {
    inner: Arc<P>,
    host: HostName,
    faults: Mutex<Vec<Fault>>,
    effects: AtomicUsize,
}

impl<P> Faulty<P> {
    /// Puts faults around a provider.
    pub fn new(inner: Arc<P>, host: HostName, faults: Vec<Fault>) -> Self {
        Self { inner, host, faults: Mutex::new(faults), effects: AtomicUsize::new(0) }
    }

    /// How many effects were asked for.
    pub fn effects(&self) -> usize {
        self.effects.load(Ordering::SeqCst)
    }

    fn failure(&self, lasting: Lasting) -> ProviderError {
        match lasting {
            Lasting::Passing => ProviderError::NoAnswer { host: self.host.clone(), why: "injected".into() },
            Lasting::Final => ProviderError::Refused { host: self.host.clone(), why: "injected".into() },
        }
    }

    fn next(&self, node: &Identity) -> Option<FaultKind> {
        let count = self.effects.fetch_add(1, Ordering::SeqCst) + 1;
        let mut faults = self.faults.lock().expect("nobody panics while holding this");
        let meant = |fault: &Fault| {
            fault.nth.is_none_or(|nth| nth == count)
                && fault.node.as_ref().is_none_or(|name| *name == node.node)
        };
        let at = faults.iter().position(meant)?;
        if faults[at].always { Some(faults[at].kind) } else { Some(faults.remove(at).kind) }
    }
}

/// Whether a failure may be gone the next time.
#[derive(Clone, Copy)]
enum Lasting {
    Passing,
    Final,
}

/// What stands between the caller and the effect. The effect happens in `effect`, or not at all.
async fn around<T, E>(
    fault: Option<FaultKind>,
    effect: impl Future<Output = Result<T, E>>,
    fail: impl Fn(Lasting) -> E,
) -> Result<T, E> {
    match fault {
        None => effect.await,
        Some(FaultKind::FailBefore) => Err(fail(Lasting::Passing)),
        Some(FaultKind::Refuse) => Err(fail(Lasting::Final)),
        Some(FaultKind::LoseAnswer) => effect.await.and_then(|_| Err(fail(Lasting::Passing))),
        Some(FaultKind::Hang) => {
            effect.await?;
            std::future::pending().await
        }
        Some(FaultKind::Slow(time)) => {
            tokio::time::sleep(time).await;
            effect.await
        }
        Some(FaultKind::KillBefore) => kill_this_process(),
        Some(FaultKind::KillAfter) => {
            effect.await?;
            kill_this_process()
        }
    }
}

/// Ends this process as `kill -9` does: nothing is flushed, dropped or said.
pub fn kill_this_process() -> ! {
    // The signal cannot be blocked or handled; the loop is for the compiler.
    let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
    loop {
        std::thread::park();
    }
}

#[async_trait]
impl<P: Provider> Provider for Faulty<P> {
    async fn observe(&self, scope: &Scope) -> Result<HostView, ProviderError> {
        self.inner.observe(scope).await
    }

    async fn apply(&self, order: &Order, permit: &Permit) -> Result<Done, ProviderError> {
        let fail = |lasting| self.failure(lasting);
        around(self.next(&order.identity), self.inner.apply(order, permit), fail).await
    }

    async fn pin(&self, pin: &Pin, permit: &Permit) -> Result<Done, ProviderError> {
        let fail = |lasting| self.failure(lasting);
        around(self.next(&pin.identity), self.inner.pin(pin, permit), fail).await
    }

    async fn belongings(&self, of: &Owner) -> Result<Vec<Belonging>, ProviderError> {
        self.inner.belongings(of).await
    }
}

fn unreached(lasting: Lasting, node: &Identity) -> TransportError {
    let (node, why, evidence) = (node.clone(), "injected".into(), Vec::new());
    match lasting {
        Lasting::Passing => TransportError::Unreachable { node, why, evidence },
        Lasting::Final => TransportError::Failed { node, why, evidence },
    }
}

#[async_trait]
impl<P: Transport> Transport for Faulty<P> {
    async fn configure(
        &self,
        target: &Target,
        config: &Config,
        permit: &Permit,
    ) -> Result<Configured, TransportError> {
        let node = &target.identity;
        let fail = |lasting| unreached(lasting, node);
        around(self.next(node), self.inner.configure(target, config, permit), fail).await
    }

    async fn settle(&self, target: &Target, permit: &Permit) -> Result<NodeKeys, TransportError> {
        let node = &target.identity;
        let fail = |lasting| unreached(lasting, node);
        around(self.next(node), self.inner.settle(target, permit), fail).await
    }
}
