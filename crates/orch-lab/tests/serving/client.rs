//! A client that shows the bytes: raw HTTP over TLS, with whatever certificate there is.

use std::net::SocketAddr;
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, SignatureScheme, SupportedProtocolVersion};
use sha2::{Digest as _, Sha256};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

pub(crate) struct Client {
    pub(crate) stream: TlsStream<TcpStream>,
}

/// What came back.
#[derive(Debug)]
pub(crate) struct Heard {
    pub(crate) line: String,
    pub(crate) head: String,
    pub(crate) body: String,
    /// Whether the body is shorter than was said.
    pub(crate) is_cut: bool,
}

impl Client {
    pub(crate) async fn connect(address: SocketAddr) -> Self {
        Self::connect_by(address, &rustls::version::TLS13).await
    }

    pub(crate) async fn connect_by(address: SocketAddr, version: &'static SupportedProtocolVersion) -> Self {
        let ring = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(Arc::clone(&ring))
            .with_protocol_versions(&[version])
            .unwrap()
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(Anyone(ring)))
            .with_no_client_auth();
        let stream = TcpStream::connect(address).await.unwrap();
        let name = ServerName::from(address.ip());
        Self { stream: TlsConnector::from(Arc::new(config)).connect(name, stream).await.unwrap() }
    }

    /// The certificate that was shown, as it is known.
    pub(crate) fn fingerprint(&self) -> String {
        let shown = &self.stream.get_ref().1.peer_certificates().unwrap()[0];
        let bytes: Vec<String> = Sha256::digest(shown).iter().map(|byte| format!("{byte:02X}")).collect();
        bytes.join(":")
    }

    pub(crate) async fn send(&mut self, head: &str, body: &[u8]) {
        let text = format!("{head}\r\nhost: lab\r\ncontent-length: {}\r\n\r\n", body.len());
        self.stream.write_all(text.as_bytes()).await.unwrap();
        self.stream.write_all(body).await.unwrap();
        self.stream.flush().await.unwrap();
    }

    /// Reads one answer.
    pub(crate) async fn hear(&mut self) -> Heard {
        let mut bytes = Vec::new();
        let mut is_over = false;
        while !bytes.windows(4).any(|window| window == b"\r\n\r\n") && !is_over {
            is_over = self.more(&mut bytes).await;
        }
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
        let length: usize = length.map_or(0, |length| length.parse().unwrap());
        let mut body = body.as_bytes().to_vec();
        while body.len() < length && !is_over {
            is_over = self.more(&mut body).await;
        }
        Heard {
            line: head.lines().next().unwrap_or_default().to_owned(),
            head: head.to_owned(),
            is_cut: body.len() < length,
            body: String::from_utf8(body).unwrap(),
        }
    }

    pub(crate) async fn ask(&mut self, head: &str, body: &[u8]) -> Heard {
        self.send(head, body).await;
        self.hear().await
    }

    async fn more(&mut self, bytes: &mut Vec<u8>) -> bool {
        // An end without a farewell is an end too.
        self.stream.read_buf(bytes).await.map_or(true, |count| count == 0)
    }
}

#[derive(Debug)]
struct Anyone(Arc<CryptoProvider>);

impl ServerCertVerifier for Anyone {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let known = &self.0.signature_verification_algorithms;
        rustls::crypto::verify_tls12_signature(message, certificate, signed, known)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let known = &self.0.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, certificate, signed, known)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
