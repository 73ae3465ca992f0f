//! Where machines answer: at addresses of loopback, from which connections are carried into their networks. A machine whose
//! door is closed has nobody at its address, and so nobody learns what it showed before it was ready.

use std::collections::BTreeMap;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use orch_providers::local::Local;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Mutex;
use tokio::task::{JoinHandle, JoinSet};
use uuid::Uuid;

use crate::listen::listen;

/// How long nothing is accepted after it could not be: there may be no file left to be opened.
const BREATH: Duration = Duration::from_millis(50);

/// The doors that are open, by the mark of their machine.
#[derive(Default)]
pub(super) struct Doors {
    open: Mutex<BTreeMap<Uuid, Vec<JoinHandle<()>>>>,
}

impl Doors {
    /// Opens the door of a machine; one that is open stays so.
    pub(super) async fn open(
        &self,
        local: &Local,
        uuid: Uuid,
        at: Ipv4Addr,
        ports: &[u16],
    ) -> io::Result<()> {
        let mut open = self.open.lock().await;
        if open.contains_key(&uuid) {
            return Ok(());
        }
        // All of them, or none.
        let mut listeners = Vec::new();
        for port in ports {
            let address = SocketAddr::from((at, *port));
            let listener = tokio::task::spawn_blocking(move || listen(address)).await?;
            let named = |error: io::Error| io::Error::new(error.kind(), format!("{address}: {error}"));
            let listener = listener.map_err(named)?;
            listener.set_nonblocking(true)?;
            listeners.push((TcpListener::from_std(listener)?, *port));
        }
        let keep = |(listener, port)| tokio::spawn(keep(listener, local.clone(), uuid, port));
        open.insert(uuid, listeners.into_iter().map(keep).collect());
        Ok(())
    }

    pub(super) async fn is_open(&self, uuid: Uuid) -> bool {
        self.open.lock().await.contains_key(&uuid)
    }

    /// Closes the door of a machine, and cuts what goes through it.
    pub(super) async fn close(&self, uuid: Uuid) {
        let keepers = self.open.lock().await.remove(&uuid);
        for keeper in keepers.into_iter().flatten() {
            keeper.abort();
            // Its socket is closed when it is gone, and not before.
            let _ = keeper.await;
        }
    }

    pub(super) async fn close_all(&self) {
        let all: Vec<Uuid> = self.open.lock().await.keys().copied().collect();
        for uuid in all {
            self.close(uuid).await;
        }
    }
}

async fn keep(listener: TcpListener, local: Local, uuid: Uuid, port: u16) {
    let mut guests = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            Some(_) = guests.join_next() => continue,
        };
        match accepted {
            Ok((guest, _)) => {
                let local = local.clone();
                // Whoever cannot be let in is sent away without a word, as by a machine that has nobody there.
                guests.spawn(async move { let_in(guest, &local, uuid, port).await.unwrap_or_default() });
            }
            Err(_) => tokio::time::sleep(BREATH).await,
        }
    }
}

async fn let_in(mut guest: TcpStream, local: &Local, uuid: Uuid, port: u16) -> io::Result<()> {
    let inside = local.connect(uuid, port).await?;
    inside.set_nonblocking(true)?;
    let mut inside = TcpStream::from_std(inside)?;
    // What is typed is waited for.
    inside.set_nodelay(true)?;
    guest.set_nodelay(true)?;
    tokio::io::copy_bidirectional(&mut guest, &mut inside).await.map(drop)
}
