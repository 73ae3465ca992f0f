//! A host on which something is done or decided before every effect.

use std::pin::Pin;
use std::sync::Arc;

use async_trait::async_trait;
use orch_model::{Config, NodeKeys};
use orch_plan::HostView;
use orch_run::memory::MemoryProvider;
use orch_run::{
    Configured, Done, Order, Permit, Provider, ProviderError, Scope, Target, Transport, TransportError,
};

/// An effect that is asked for: `create` of `web`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Effect {
    pub(crate) verb: &'static str,
    pub(crate) node: String,
}

/// Whether an effect may happen.
pub(crate) enum Gate {
    Open,
    /// It is refused for good.
    Refused,
    /// Nothing is heard of it, and nothing happens.
    NoAnswer,
}

type Before = dyn Fn(Effect) -> Pin<Box<dyn Future<Output = Gate> + Send>> + Send + Sync;

/// A host on which `before` is waited for before every effect.
pub(crate) struct Around {
    inner: Arc<MemoryProvider>,
    before: Box<Before>,
}

impl Around {
    pub(crate) fn new<F>(
        inner: &Arc<MemoryProvider>,
        before: impl Fn(Effect) -> F + Send + Sync + 'static,
    ) -> Arc<Self>
    where
        F: Future<Output = Gate> + Send + 'static,
    {
        let before: Box<Before> = Box::new(move |effect| Box::pin(before(effect)));
        Arc::new(Self { inner: Arc::clone(inner), before })
    }

    async fn gate(&self, verb: &'static str, node: &orch_model::Identity) -> Gate {
        (self.before)(Effect { verb, node: node.node.to_string() }).await
    }
}

#[async_trait]
impl Provider for Around {
    async fn observe(&self, scope: &Scope) -> Result<HostView, ProviderError> {
        self.inner.observe(scope).await
    }

    async fn apply(&self, order: &Order, permit: &Permit) -> Result<Done, ProviderError> {
        let host = order.identity.host.clone();
        match self.gate(order.action.verb(), &order.identity).await {
            Gate::Open => self.inner.apply(order, permit).await,
            Gate::Refused => Err(ProviderError::Refused { host, why: "injected".into() }),
            Gate::NoAnswer => Err(ProviderError::NoAnswer { host, why: "injected".into() }),
        }
    }

    async fn pin(&self, pin: &orch_run::Pin, permit: &Permit) -> Result<Done, ProviderError> {
        self.inner.pin(pin, permit).await
    }
}

#[async_trait]
impl Transport for Around {
    async fn configure(
        &self,
        target: &Target,
        config: &Config,
        permit: &Permit,
    ) -> Result<Configured, TransportError> {
        let node = target.identity.clone();
        match self.gate("configure", &node).await {
            Gate::Open => self.inner.configure(target, config, permit).await,
            Gate::Refused => {
                Err(TransportError::Failed { node, why: "injected".into(), evidence: Vec::new() })
            }
            Gate::NoAnswer => {
                Err(TransportError::Unreachable { node, why: "injected".into(), evidence: Vec::new() })
            }
        }
    }

    async fn settle(&self, target: &Target, permit: &Permit) -> Result<NodeKeys, TransportError> {
        self.inner.settle(target, permit).await
    }
}
