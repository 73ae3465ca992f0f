//! The server: takes connections, and has every question on them answered by the desk.

use std::convert::Infallible;
use std::io;
use std::pin::pin;
use std::sync::atomic::Ordering;
use std::sync::{Arc, RwLock};
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use orch_run::log::Level;
use rustls::ServerConfig;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

use crate::answer::{Answerer, Trusted};
use crate::certificate::{CertificateError, Certificates};
use crate::crowd::{Crowd, Guest};
use crate::desk::{Desk, DeskError};
use crate::limits::Limits;
use crate::patience::Patient;
use crate::question::Asker;
use crate::tell::Tell;

/// How often the site is looked at for those who wait.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// How long nothing is accepted after it could not be: there may be no file left to be opened.
const BREATH: Duration = Duration::from_millis(50);
/// The head of a request is no larger.
const LONGEST_HEAD: usize = 16 << 10;

/// The server of a site. Copies are the same one.
#[derive(Clone)]
pub struct Server {
    shared: Arc<Shared>,
}

struct Shared {
    desk: Arc<Desk>,
    tls: RwLock<Arc<ServerConfig>>,
    limits: Limits,
    tell: Tell,
    crowd: Arc<Crowd>,
    waiting: Arc<Semaphore>,
    /// Whether it is to end.
    end: watch::Sender<bool>,
}

impl Server {
    /// A server that nobody is connected to yet.
    pub fn new(
        desk: Arc<Desk>,
        certificates: &Certificates,
        limits: Limits,
        tell: Tell,
    ) -> Result<Self, CertificateError> {
        let crowd = Crowd::with_room_for(limits.connections);
        let waiting = Arc::new(Semaphore::new(limits.waiting));
        let tls = RwLock::new(certificates.config()?);
        let shared = Shared { desk, tls, limits, tell, crowd, waiting, end: watch::Sender::new(false) };
        Ok(Self { shared: Arc::new(shared) })
    }

    /// Reads everything anew, keys and certificates included; where something makes no sense everything stays as it is.
    pub fn reload(&self) -> Result<(), DeskError> {
        // Whatever can fail comes before anything is changed.
        let certificates = self.shared.desk.certificates()?;
        let tls = certificates.config()?;
        self.shared.desk.reload(&certificates)?;
        *self.shared.tls.write().expect("nobody panics while holding this") = tls;
        Ok(())
    }

    /// Lets what is under way come to its end, and takes nothing new. Those who serve come back then.
    pub fn end(&self) {
        self.shared.end.send_replace(true);
        self.shared.desk.close();
    }

    /// Keeps an eye on the site, for those who wait for its changes, until the server ends.
    pub async fn watch_site(&self) {
        let mut end = self.shared.end.subscribe();
        loop {
            tokio::select! {
                () = is_over(&mut end) => return,
                () = tokio::time::sleep(LOOK_EVERY) => {
                    let shared = Arc::clone(&self.shared);
                    // A site may be large.
                    let _ = tokio::task::spawn_blocking(move || shared.desk.catch_up()).await;
                }
            }
        }
    }

    /// Serves nodes that connect here, until the server ends.
    pub async fn serve_nodes(&self, listener: TcpListener) {
        let mut end = self.shared.end.subscribe();
        let mut connections = JoinSet::new();
        loop {
            let accepted = tokio::select! {
                () = is_over(&mut end) => break,
                accepted = listener.accept() => accepted,
                Some(_) = connections.join_next() => continue,
            };
            let Some((stream, from)) = self.taken(accepted).await else { continue };
            let Some(guest) = self.shared.crowd.enter(from.ip()) else {
                self.shared.desk.metrics.turned_away.fetch_add(1, Ordering::Relaxed);
                continue;
            };
            connections.spawn(Arc::clone(&self.shared).node(stream, from.ip().to_string(), guest));
        }
        drop(listener);
        connections.join_all().await;
    }

    /// Serves the operator, who is the user that runs this, or root, until the server ends.
    pub async fn serve_operator(&self, listener: UnixListener) {
        let mut end = self.shared.end.subscribe();
        let mut connections = JoinSet::new();
        loop {
            let accepted = tokio::select! {
                () = is_over(&mut end) => break,
                accepted = listener.accept() => accepted,
                Some(_) = connections.join_next() => continue,
            };
            let Some((stream, _)) = self.taken(accepted).await else { continue };
            if is_operator(&stream) {
                connections.spawn(Arc::clone(&self.shared).operator(stream));
            }
        }
        drop(listener);
        connections.join_all().await;
    }

    async fn taken<T>(&self, accepted: io::Result<T>) -> Option<T> {
        match accepted {
            Ok(accepted) => Some(accepted),
            Err(error) => {
                (self.shared.tell)(Level::Warn, "accept", "-", &error.to_string());
                tokio::time::sleep(BREATH).await;
                None
            }
        }
    }
}

impl Shared {
    async fn node(self: Arc<Self>, stream: TcpStream, from: String, guest: Guest) {
        self.desk.metrics.connections.fetch_add(1, Ordering::Relaxed);
        let guest = Arc::new(guest);
        tokio::select! {
            () = self.talk(stream, from, Arc::clone(&guest)) => {}
            () = guest.is_sent_away() => {
                self.desk.metrics.turned_away.fetch_add(1, Ordering::Relaxed);
            }
        }
        self.desk.metrics.connections.fetch_sub(1, Ordering::Relaxed);
    }

    async fn talk(self: &Arc<Self>, stream: TcpStream, from: String, guest: Arc<Guest>) {
        // Answers are short, and waited for.
        let _ = stream.set_nodelay(true);
        let tls = Arc::clone(&self.tls.read().expect("nobody panics while holding this"));
        let handshake = TlsAcceptor::from(tls).accept(Patient::new(stream, self.limits.write));
        match tokio::time::timeout(self.limits.read, handshake).await {
            Ok(Ok(stream)) => {
                let answerer =
                    self.answerer(Asker::Network, from, Box::new(move |node| guest.is_known(node)));
                self.speak(stream, answerer).await;
            }
            Ok(Err(_)) | Err(_) => {
                self.desk.metrics.handshakes_failed.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    async fn operator(self: Arc<Self>, stream: UnixStream) {
        let answerer = self.answerer(Asker::Operator, "the operator".into(), Box::new(|_| {}));
        self.speak(stream, answerer).await;
    }

    fn answerer(self: &Arc<Self>, asker: Asker, from: String, trusted: Trusted) -> Answerer {
        let server = Server { shared: Arc::clone(self) };
        Answerer {
            desk: Arc::clone(&self.desk),
            asker,
            from,
            limits: self.limits.clone(),
            waiting: Arc::clone(&self.waiting),
            tell: Arc::clone(&self.tell),
            trusted,
            reload: Arc::new(move || server.reload().map_err(|error| error.to_string())),
        }
    }

    /// Answers one question after the other, until the other side or the server ends, or the connection is too old.
    async fn speak(&self, stream: impl AsyncRead + AsyncWrite + Unpin, answerer: Answerer) {
        let answerer = Arc::new(answerer);
        let service = service_fn(move |request| {
            let answerer = Arc::clone(&answerer);
            async move { Ok::<_, Infallible>(answerer.answer(request).await) }
        });
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(self.limits.read)
            .max_buf_size(LONGEST_HEAD)
            .serve_connection(TokioIo::new(stream), service);
        let mut connection = pin!(connection);
        let mut end = self.end.subscribe();
        tokio::select! {
            // Whatever went wrong, the other side has seen it.
            _ = connection.as_mut() => return,
            () = is_over(&mut end) => {}
            () = tokio::time::sleep(self.limits.life) => {}
        }
        connection.as_mut().graceful_shutdown();
        let _ = tokio::time::timeout(self.limits.goodbye, connection).await;
    }
}

/// Waits until the server is to end.
async fn is_over(end: &mut watch::Receiver<bool>) {
    let _ = end.wait_for(|end| *end).await;
}

fn is_operator(stream: &UnixStream) -> bool {
    let own = rustix::process::geteuid().as_raw();
    stream.peer_cred().is_ok_and(|peer| peer.uid() == own || peer.uid() == 0)
}
