//! A client that speaks HTTP/1.1 over TLS 1.3, and looks at nothing but the pin.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use orch_model::Digest;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, Error, SignatureScheme};
use serde_json::Value as Json;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// What came back.
#[derive(Debug, Clone)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    pub(crate) fn json(&self) -> Json {
        serde_json::from_slice(&self.body).unwrap()
    }

    /// The code of an error.
    pub(crate) fn code(&self) -> String {
        self.json()["error"]["code"].as_str().unwrap_or_default().to_owned()
    }
}

#[derive(Debug)]
struct Pinned(Vec<Digest>, Arc<CryptoProvider>);

impl ServerCertVerifier for Pinned {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        if self.0.contains(&Digest::of_bytes(end_entity)) {
            Ok(ServerCertVerified::assertion())
        } else {
            Err(Error::General("another certificate".into()))
        }
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
        verify_tls13_signature(message, cert, dss, &self.1.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.1.signature_verification_algorithms.supported_schemes()
    }
}

/// How the server is spoken to.
#[derive(Clone)]
pub(crate) struct Client {
    pub(crate) address: SocketAddr,
    config: Arc<ClientConfig>,
}

impl Client {
    pub(crate) fn new(address: SocketAddr, pins: &[Digest], protocols: &[&[u8]]) -> Self {
        let ring = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = ClientConfig::builder_with_provider(Arc::clone(&ring))
            .with_protocol_versions(&[&rustls::version::TLS13])
            .unwrap()
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(Pinned(pins.to_vec(), ring)))
            .with_no_client_auth();
        config.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
        Self { address, config: Arc::new(config) }
    }

    pub(crate) async fn connect(&self) -> std::io::Result<TlsStream<TcpStream>> {
        self.connect_over(TcpStream::connect(self.address).await?).await
    }

    pub(crate) async fn connect_over(&self, stream: TcpStream) -> std::io::Result<TlsStream<TcpStream>> {
        // Whoever waits for more to send waits for somebody who has nothing to say.
        stream.set_nodelay(true)?;
        let name = ServerName::try_from("orch.invalid").unwrap();
        TlsConnector::from(Arc::clone(&self.config)).connect(name, stream).await
    }

    /// One question on a connection of its own.
    pub(crate) async fn ask(&self, method: &str, path: &str, token: Option<&str>, body: &[u8]) -> Answer {
        let mut stream = self.connect().await.unwrap();
        ask_on(&mut stream, method, path, token, body).await.unwrap()
    }

    /// Says something that need not be HTTP, and reads what comes back.
    pub(crate) async fn say(&self, words: &[u8]) -> std::io::Result<Answer> {
        let mut stream = self.connect().await?;
        stream.write_all(words).await?;
        read_answer(&mut stream).await
    }

    pub(crate) async fn get(&self, path: &str, token: &str) -> Answer {
        self.ask("GET", path, Some(token), b"").await
    }
}

/// One question on a connection that may be used again.
pub(crate) async fn ask_on(
    stream: &mut TlsStream<TcpStream>,
    method: &str,
    path: &str,
    token: Option<&str>,
    body: &[u8],
) -> std::io::Result<Answer> {
    let token = token.map(|token| format!("Authorization: Bearer {token}\r\n")).unwrap_or_default();
    let head =
        format!("{method} {path} HTTP/1.1\r\nHost: orch\r\n{token}Content-Length: {}\r\n\r\n", body.len());
    stream.write_all(head.as_bytes()).await?;
    stream.write_all(body).await?;
    read_answer(stream).await
}

/// Reads one answer, whose length must be said.
pub(crate) async fn read_answer(stream: &mut (impl AsyncRead + Unpin)) -> std::io::Result<Answer> {
    let mut bytes = Vec::new();
    let end = loop {
        if let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            break end + 4;
        }
        let mut buffer = [0; 4096];
        let length = tokio::time::timeout(Duration::from_mins(1), stream.read(&mut buffer)).await??;
        if length == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        bytes.extend_from_slice(&buffer[..length]);
    };
    let head = String::from_utf8_lossy(&bytes[..end]).to_lowercase();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    let length =
        head.lines().find_map(|line| line.strip_prefix("content-length: ")).map_or(0, |n| n.parse().unwrap());
    let mut body = bytes.split_off(end);
    while body.len() < length {
        let mut buffer = [0; 4096];
        let count = stream.read(&mut buffer).await?;
        if count == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        body.extend_from_slice(&buffer[..count]);
    }
    Ok(Answer { status, body })
}
