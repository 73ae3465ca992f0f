//! The way to nodes by SSH: finds it, keeps the connections, and ends what must not go on.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use orch_run::{Target, TransportError};
use tokio::task::JoinSet;

use super::connection::Connection;
use super::pool::Pool;
use super::settings::SshSettings;
use super::way::{Way, Wayfinder};
use crate::push::{self, Program};

/// How long a node may take to be told that nobody waits for it any more.
const FAREWELL: Duration = Duration::from_secs(10);

/// After how long a node is told a second time: what was just handed over may begin after it was told first.
const AFTERTHOUGHT: Duration = Duration::from_millis(300);

/// The way to nodes by SSH. Connections are made when they are first needed, and end with it.
pub struct Ssh {
    wayfinder: Arc<dyn Wayfinder>,
    pub(super) pool: Arc<Pool>,
    /// Nodes that are being told that nobody waits for them any more.
    farewells: Mutex<JoinSet<()>>,
}

impl Ssh {
    /// Knows the way from `wayfinder`. Touches nothing yet.
    pub fn new(wayfinder: Arc<dyn Wayfinder>, settings: SshSettings) -> Self {
        Self { wayfinder, pool: Arc::new(Pool::new(settings)), farewells: Mutex::default() }
    }

    /// Connects to a node, which may still be booting, and waits for it as long as the settings say.
    pub async fn reach(&self, target: &Target) -> Result<Connection, TransportError> {
        let way = self.way(target).await?;
        self.reach_by(target, &way).await
    }

    /// Waits for nodes that are still being told to stop, ends every connection and removes every file of this run.
    pub async fn close(&self) {
        let farewells =
            std::mem::take(&mut *self.farewells.lock().expect("nobody panics while holding this"));
        farewells.join_all().await;
        self.pool.close().await;
    }

    pub(super) fn settings(&self) -> &SshSettings {
        self.pool.settings()
    }

    /// The way to a node, within its time.
    pub(super) async fn way(&self, target: &Target) -> Result<Way, TransportError> {
        let limit = self.settings().reach;
        let late = |_| TransportError::Unreachable {
            node: target.identity.clone(),
            why: format!("the way to it was not found within {limit:?}"),
            evidence: Vec::new(),
        };
        tokio::time::timeout(limit, self.wayfinder.way(target)).await.map_err(late)?
    }

    pub(super) async fn reach_by(&self, target: &Target, way: &Way) -> Result<Connection, TransportError> {
        let reached = self.pool.reach(&way.hops, &target.progress).await;
        let master = reached.map_err(|refusal| refusal.of(&target.identity))?;
        Ok(Connection::new(target.identity.clone(), way.sudo, master))
    }

    /// Tells a node, in the background, to end what a push has begun there.
    pub(super) fn bid_farewell(&self, connection: Arc<Connection>, program: Program) {
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        let telling = async move {
            push::cancel(&*connection, &program, FAREWELL).await;
            tokio::time::sleep(AFTERTHOUGHT).await;
            push::cancel(&*connection, &program, FAREWELL).await;
        };
        let mut farewells = self.farewells.lock().expect("nobody panics while holding this");
        farewells.spawn_on(async { drop(tokio::time::timeout(FAREWELL, telling).await) }, &runtime);
    }
}

impl Drop for Ssh {
    fn drop(&mut self) {
        // Nodes that are being told to stop are still told, for as long as the runtime lives; each telling holds the
        // connection that it needs. Who ends the runtime waits for them first, by `close`.
        self.farewells.get_mut().expect("nobody panics while holding this").detach_all();
    }
}
