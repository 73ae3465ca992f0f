//! The wire around an API: TLS and HTTP/1.1 on a socket, how long things take, what goes wrong, and what was asked.

mod body;
mod calls;
mod exchanged;
mod settings;

use std::collections::BTreeMap;
use std::io;
use std::net::{SocketAddr, TcpListener as StdListener};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use rustls::ServerConfig;
use thiserror::Error;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};
use tokio_rustls::TlsAcceptor;

use crate::certificate::{Certificate, CertificateError};
use crate::exchange::{Api, Asked};
use crate::faults::Fault;
pub use calls::{Call, Calls};
use exchanged::Exchange;
pub use settings::ServeSettings;

/// How long nothing is accepted after it could not be: there may be no file left to be opened.
const BREATH: Duration = Duration::from_millis(50);
/// A head may be this long: tokens and tickets are in it.
const LONGEST_HEAD: usize = 64 << 10;

/// An API cannot be served.
#[derive(Debug, Error)]
pub enum ServeError {
    /// The socket is of no use.
    #[error("the socket cannot be served")]
    Socket(#[from] io::Error),
    /// The certificate is of no use.
    #[error(transparent)]
    Certificate(#[from] CertificateError),
}

/// An API that is served, until this is dropped or told to end.
pub struct Serving {
    address: SocketAddr,
    calls: Calls,
    end: watch::Sender<bool>,
    task: JoinHandle<()>,
}

impl Serving {
    /// Serves an API on a socket that listens. To be called from within a runtime.
    pub fn begin(
        listener: StdListener,
        certificate: &Certificate,
        api: Arc<dyn Api>,
        settings: ServeSettings,
    ) -> Result<Self, ServeError> {
        let tls = certificate.config()?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let listener = TcpListener::from_std(listener)?;
        let (end, ended) = watch::channel(false);
        let calls = Calls::default();
        let exchange = Arc::new(Exchange { api, settings, calls: calls.clone() });
        let task = tokio::spawn(Arc::new(Wire { tls, address, exchange }).serve(listener, ended));
        Ok(Self { address, calls, end, task })
    }

    /// Where it is served.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// What it was asked so far.
    pub const fn calls(&self) -> &Calls {
        &self.calls
    }

    /// Takes nothing new, lets what is under way come to its end for a moment, and returns when that is over.
    pub async fn end(self) {
        self.end.send_replace(true);
        let _ = self.task.await;
    }
}

struct Wire {
    tls: Arc<ServerConfig>,
    address: SocketAddr,
    exchange: Arc<Exchange>,
}

impl Wire {
    async fn serve(self: Arc<Self>, listener: TcpListener, mut ended: watch::Receiver<bool>) {
        let mut connections = JoinSet::new();
        loop {
            let accepted = tokio::select! {
                () = is_over(&mut ended) => break,
                accepted = listener.accept() => accepted,
                Some(_) = connections.join_next() => continue,
            };
            match accepted {
                Ok((stream, _)) => {
                    connections.spawn(Arc::clone(&self).talk(stream, ended.clone()));
                }
                Err(_) => tokio::time::sleep(BREATH).await,
            }
        }
        drop(listener);
        connections.join_all().await;
    }

    async fn talk(self: Arc<Self>, stream: TcpStream, mut ended: watch::Receiver<bool>) {
        // Answers are short, and waited for.
        let _ = stream.set_nodelay(true);
        let Ok(tls) = self.shown() else { return };
        let handshake =
            tokio::time::timeout(self.exchange.settings.handshake, TlsAcceptor::from(tls).accept(stream));
        let stream = tokio::select! {
            () = is_over(&mut ended) => return,
            stream = handshake => stream,
        };
        let Ok(Ok(stream)) = stream else { return };
        let exchange = &self.exchange;
        let service = service_fn(|request| exchange.answer(request));
        let connection =
            http1::Builder::new().max_buf_size(LONGEST_HEAD).serve_connection(TokioIo::new(stream), service);
        let mut connection = pin!(connection);
        tokio::select! {
            // Whatever went wrong, the other side has seen it.
            _ = connection.as_mut() => return,
            () = is_over(&mut ended) => {}
        }
        connection.as_mut().graceful_shutdown();
        let _ = tokio::time::timeout(exchange.settings.goodbye, connection).await;
    }

    /// What a new connection is shown: the certificate, or another one where that goes wrong on purpose.
    fn shown(&self) -> Result<Arc<ServerConfig>, CertificateError> {
        let connects = Asked {
            method: "CONNECT".into(),
            path: "/".into(),
            query: String::new(),
            headers: BTreeMap::new(),
            body: Vec::new(),
        };
        if self.exchange.settings.faults.strike(Fault::OtherCertificate, &connects) {
            return Certificate::make(&[self.address.ip().to_string()])?.config();
        }
        Ok(Arc::clone(&self.tls))
    }
}

/// Waits until whoever serves is told to end, or is gone.
async fn is_over(ended: &mut watch::Receiver<bool>) {
    let _ = ended.wait_for(|ended| *ended).await;
}
