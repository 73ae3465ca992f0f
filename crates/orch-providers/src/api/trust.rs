//! By what the certificate of an API is known: its fingerprint, an authority of one's own, or those that everybody trusts.
//! There is no way to look away.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use orch_model::{Fingerprint, Trust};
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, OtherError, RootCertStore, SignatureScheme,
};
use sha2::{Digest as _, Sha256};
use thiserror::Error;

/// The certificate of an API cannot be checked.
#[derive(Debug, Error)]
pub enum TrustError {
    /// The file with the authority cannot be used.
    #[error("the certificate authority in `{path}` cannot be used: {why}")]
    CaFile {
        /// The file.
        path: PathBuf,
        /// Why not.
        why: String,
    },
}

/// By what a certificate is known.
pub struct Trusting;

impl Trusting {
    /// A configuration of TLS that believes this and nothing else. Files are relative to `site`.
    pub fn config(trust: &Trust, site: &Path) -> Result<Arc<ClientConfig>, TrustError> {
        let provider = Arc::new(ring::default_provider());
        let verifier: Arc<dyn ServerCertVerifier> = match trust {
            Trust::Fingerprint(fingerprint) => {
                Arc::new(Pinned { fingerprint: fingerprint.clone(), provider: Arc::clone(&provider) })
            }
            Trust::CaFile(file) => by_file(&site.join(file), &provider)?,
            Trust::System => {
                let roots = RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
                let built =
                    WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider));
                built.build().expect("the authorities that everybody trusts are some")
            }
        };
        let versions = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let config = versions.expect("the provider of this crate knows the usual versions");
        let config = config.dangerous().with_custom_certificate_verifier(verifier);
        Ok(Arc::new(config.with_no_client_auth()))
    }
}

fn by_file(path: &Path, provider: &Arc<CryptoProvider>) -> Result<Arc<dyn ServerCertVerifier>, TrustError> {
    let unusable = |why: String| TrustError::CaFile { path: path.to_owned(), why };
    let certificates = CertificateDer::pem_file_iter(path).map_err(|error| unusable(error.to_string()))?;
    let mut roots = RootCertStore::empty();
    for certificate in certificates {
        let certificate = certificate.map_err(|error| unusable(error.to_string()))?;
        roots.add(certificate).map_err(|error| unusable(error.to_string()))?;
    }
    let built = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(provider)).build();
    Ok(built.map_err(|error| unusable(error.to_string()))?)
}

/// Believes one certificate, whoever it names and whoever signed it. That its owner speaks is checked as ever.
#[derive(Debug)]
struct Pinned {
    fingerprint: Fingerprint,
    provider: Arc<CryptoProvider>,
}

/// What was shown instead of the pinned certificate.
#[derive(Debug, Error)]
#[error("its SHA-256 fingerprint is {0}")]
struct Another(String);

impl ServerCertVerifier for Pinned {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let shown = fingerprint(end_entity);
        if shown.eq_ignore_ascii_case(self.fingerprint.as_str()) {
            return Ok(ServerCertVerified::assertion());
        }
        Err(CertificateError::Other(OtherError(Arc::new(Another(shown)))).into())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signed, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signed, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

/// The SHA-256 fingerprint of a certificate, as people write it.
fn fingerprint(certificate: &CertificateDer<'_>) -> String {
    let digest = Sha256::digest(certificate);
    digest.iter().enumerate().fold(String::new(), |mut text, (place, byte)| {
        let between = if place == 0 { "" } else { ":" };
        write!(text, "{between}{byte:02X}").expect("a string takes any text");
        text
    })
}
