//! A client for both: TLS 1.3, HTTP/1.1, whatever certificate there is.

use std::net::SocketAddr;
use std::sync::Arc;

use rustls::client::Resumption;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, Error, SignatureScheme};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// The certificate is not looked at, but its signature is checked, as a node does that pins it.
#[derive(Debug)]
struct Anybody(Arc<CryptoProvider>);

impl ServerCertVerifier for Anybody {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Err(Error::General("TLS 1.2 is not spoken".into()))
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, cert, dss, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

/// How both are spoken to. Every connection has a whole handshake.
#[derive(Clone)]
pub(crate) struct Client {
    config: Arc<ClientConfig>,
}

/// A connection, and what was read of it.
pub(crate) struct Connection {
    stream: TlsStream<TcpStream>,
    read: Vec<u8>,
}

impl Client {
    pub(crate) fn new() -> Self {
        let ring = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = ClientConfig::builder_with_provider(Arc::clone(&ring))
            .with_protocol_versions(&[&rustls::version::TLS13])
            .unwrap()
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(Anybody(ring)))
            .with_no_client_auth();
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        config.resumption = Resumption::disabled();
        Self { config: Arc::new(config) }
    }

    pub(crate) async fn connect(&self, address: SocketAddr) -> Connection {
        let stream = TcpStream::connect(address).await.unwrap();
        stream.set_nodelay(true).unwrap();
        let name = ServerName::try_from("orch.invalid").unwrap();
        let stream = TlsConnector::from(Arc::clone(&self.config)).connect(name, stream).await.unwrap();
        Connection { stream, read: Vec::with_capacity(8192) }
    }
}

impl Connection {
    /// One question and its answer, which must be a good one.
    pub(crate) async fn get(&mut self, path: &str, token: &str) -> &[u8] {
        let head = format!("GET {path} HTTP/1.1\r\nHost: orch\r\nAuthorization: Bearer {token}\r\n\r\n");
        self.stream.write_all(head.as_bytes()).await.unwrap();
        self.read.clear();
        loop {
            let length = self.stream.read_buf(&mut self.read).await.unwrap();
            assert!(length > 0, "an answer has an end");
            if let Some((start, length)) = body(&self.read)
                && self.read.len() >= start + length
            {
                return &self.read[start..start + length];
            }
        }
    }
}

/// Where a body begins and how long it is, once that is known.
fn body(answer: &[u8]) -> Option<(usize, usize)> {
    let start = answer.windows(4).position(|window| window == b"\r\n\r\n")? + 4;
    let head = std::str::from_utf8(&answer[..start]).unwrap();
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    let value = |line: &str| {
        let (name, value) = line.split_once(": ")?;
        name.eq_ignore_ascii_case("content-length").then(|| value.parse().unwrap())
    };
    head.lines().find_map(value).map(|length| (start, length))
}
