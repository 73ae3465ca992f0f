//! A server at work: the office held, the desk open, and ears wherever somebody may ask.

use std::collections::BTreeMap;
use std::io;
use std::net::TcpListener as StdListener;
use std::sync::{Arc, Mutex};

use rustix::net::sockopt;
use thiserror::Error;
use tokio::net::{TcpListener, UnixListener};
use tokio::task::JoinHandle;

use crate::certificate::{CertificateError, Certificates};
use crate::desk::{Clock, Desk, DeskError};
use crate::folder::{Office, ServerFolder};
use crate::limits::Limits;
use crate::server::Server;
use crate::socket;
use crate::specs::SitePlace;
use crate::tell::Tell;

/// How much the kernel keeps of what one connection sends, and of what is sent on it.
const KERNEL_BUFFER: usize = 128 << 10;

/// How many may have connected and not been accepted yet, where the kernel allows that many.
const BACKLOG: i32 = 4096;

/// A server cannot begin its work.
#[derive(Debug, Error)]
pub enum OfficeError {
    /// Its folder cannot be used.
    #[error("the server's folder cannot be used")]
    Folder(#[source] io::Error),
    /// The operator could not be listened to.
    #[error("the operator's socket cannot be made")]
    Socket(#[source] io::Error),
    /// The desk cannot be opened.
    #[error(transparent)]
    Desk(#[from] DeskError),
    /// The certificate cannot be shown.
    #[error(transparent)]
    Certificate(#[from] CertificateError),
}

/// A server at work. It ends when this is told to, and at once when it is dropped.
pub struct InOffice {
    server: Server,
    tasks: Mutex<Vec<JoinHandle<()>>>,
    listening: Mutex<BTreeMap<String, Listening>>,
}

/// A place where nodes are listened to.
pub struct Listening {
    task: JoinHandle<()>,
    /// What tells this place from one of the same name that there was before.
    pub generation: u64,
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Drop for InOffice {
    /// Whoever is under way is cut off, and with the last of them the office is given up.
    fn drop(&mut self) {
        let tasks = self.tasks.get_mut().expect("nobody panics while holding this");
        tasks.iter().for_each(JoinHandle::abort);
    }
}

impl InOffice {
    /// Opens the desk of a site's server for the operator; nothing where somebody else is at work.
    pub fn enter(
        folder: &ServerFolder,
        place: SitePlace,
        limits: Limits,
        clock: Clock,
        tell: Tell,
    ) -> Result<Option<Self>, OfficeError> {
        let Some(office) = folder.take_office().map_err(OfficeError::Folder)? else { return Ok(None) };
        let socket = socket::listen(folder).map_err(OfficeError::Socket)?;
        Self::with(folder, place, limits, clock, tell, office, socket).map(Some)
    }

    fn with(
        folder: &ServerFolder,
        place: SitePlace,
        limits: Limits,
        clock: Clock,
        tell: Tell,
        office: Office,
        socket: UnixListener,
    ) -> Result<Self, OfficeError> {
        let desk = Arc::new(Desk::open(folder, place, clock, office)?);
        let certificates = Certificates::of(folder)?;
        let server = Server::new(desk, &certificates, limits, tell)?;
        let (watching, operator) = (server.clone(), server.clone());
        let tasks = vec![
            tokio::spawn(async move { watching.watch_site().await }),
            tokio::spawn(async move { operator.serve_operator(socket).await }),
        ];
        Ok(Self { server, tasks: Mutex::new(tasks), listening: Mutex::default() })
    }

    /// Listens to nodes here, until the server ends.
    pub fn listen(&self, listener: StdListener) -> io::Result<()> {
        let task = self.serve(listener)?;
        self.tasks.lock().expect("nobody panics while holding this").push(task);
        Ok(())
    }

    /// Listens to nodes in a place that may go again. `generation` tells it from one of the same name before it.
    pub fn listen_in(&self, place: &str, generation: u64, listener: StdListener) -> io::Result<()> {
        let listening = Listening { task: self.serve(listener)?, generation };
        self.places().insert(place.to_owned(), listening);
        Ok(())
    }

    /// Stops listening in a place that is gone.
    pub fn leave(&self, place: &str) {
        self.places().remove(place);
    }

    /// The place of this name that is listened in.
    pub fn listens_in(&self, place: &str) -> Option<u64> {
        self.places().get(place).map(|listening| listening.generation)
    }

    /// Reads everything anew.
    pub fn reload(&self) -> Result<(), DeskError> {
        self.server.reload()
    }

    /// Lets what is under way come to its end.
    pub async fn end(self) {
        self.server.end();
        let mut places = std::mem::take(&mut *self.places());
        let tasks = std::mem::take(&mut *self.tasks.lock().expect("nobody panics while holding this"));
        // One that panicked has ended too. Each ends within the time that is given for a goodbye.
        for task in tasks {
            let _ = task.await;
        }
        for place in places.values_mut() {
            let _ = (&mut place.task).await;
        }
    }

    fn serve(&self, listener: StdListener) -> io::Result<JoinHandle<()>> {
        listener.set_nonblocking(true)?;
        // Those who are accepted here have the same: the kernel would keep megabytes for each who sends and never reads.
        sockopt::set_socket_send_buffer_size(&listener, KERNEL_BUFFER)?;
        sockopt::set_socket_recv_buffer_size(&listener, KERNEL_BUFFER)?;
        // Whoever does not fit asks again after a second, by the rules of TCP. The standard library has room for 128.
        rustix::net::listen(&listener, BACKLOG)?;
        let listener = TcpListener::from_std(listener)?;
        let server = self.server.clone();
        Ok(tokio::spawn(async move { server.serve_nodes(listener).await }))
    }

    fn places(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, Listening>> {
        self.listening.lock().expect("nobody panics while holding this")
    }
}
