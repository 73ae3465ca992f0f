//! The certificate of an API of the lab: one that it signs itself, as a Proxmox box does, kept so that it is the same after a
//! restart.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair};
use rustls::ServerConfig;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use thiserror::Error;

use crate::state;

/// A certificate cannot be had.
#[derive(Debug, Error)]
pub enum CertificateError {
    /// Its file cannot be read or written.
    #[error("the certificate in `{path}` cannot be used")]
    File {
        /// Where it is.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The file holds something else.
    #[error("`{path}` does not hold a certificate of the lab")]
    Broken {
        /// The file.
        path: PathBuf,
    },
    /// It could not be made.
    #[error("a certificate cannot be made")]
    Make(#[from] rcgen::Error),
    /// It is not taken.
    #[error("the certificate cannot be used")]
    Use(#[from] rustls::Error),
}

/// A certificate with its key.
#[derive(Clone)]
pub struct Certificate {
    der: Vec<u8>,
    key: Vec<u8>,
}

/// As it is written down.
#[derive(Serialize, Deserialize)]
struct Written {
    certificate: String,
    key: String,
}

impl Certificate {
    /// A new one for these names, which may be addresses.
    pub fn make(names: &[String]) -> Result<Self, CertificateError> {
        let key = KeyPair::generate()?;
        let mut params = CertificateParams::new(names.to_vec())?;
        let mut name = DistinguishedName::new();
        name.push(DnType::CommonName, "orch lab");
        params.distinguished_name = name;
        let der = params.self_signed(&key)?.der().to_vec();
        Ok(Self { der, key: key.serialize_der() })
    }

    /// The one that is kept in this file, made where there is none. Nobody else can read the file.
    pub fn kept(path: &Path, names: &[String]) -> Result<Self, CertificateError> {
        let failed = |source| CertificateError::File { path: path.to_owned(), source };
        match fs::read(path) {
            Ok(text) => Self::parse(&text).ok_or_else(|| CertificateError::Broken { path: path.to_owned() }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let made = Self::make(names)?;
                made.keep(path).map_err(failed)?;
                Ok(made)
            }
            Err(error) => Err(failed(error)),
        }
    }

    /// By what it is known: the SHA-256 of it, as `AA:BB:…`.
    pub fn fingerprint(&self) -> String {
        let bytes: Vec<String> = Sha256::digest(&self.der).iter().map(|byte| format!("{byte:02X}")).collect();
        bytes.join(":")
    }

    /// What is spoken with it: TLS 1.2 and 1.3, as the real ones do, and HTTP/1.1.
    pub(crate) fn config(&self) -> Result<Arc<ServerConfig>, CertificateError> {
        let ring = Arc::new(rustls::crypto::ring::default_provider());
        let chain = vec![CertificateDer::from(self.der.clone())];
        let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(self.key.clone()));
        let mut config = ServerConfig::builder_with_provider(ring)
            .with_protocol_versions(&[&rustls::version::TLS13, &rustls::version::TLS12])?
            .with_no_client_auth()
            .with_single_cert(chain, key)?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Arc::new(config))
    }

    fn parse(text: &[u8]) -> Option<Self> {
        let written: Written = serde_json::from_slice(text).ok()?;
        Some(Self { der: BASE64.decode(written.certificate).ok()?, key: BASE64.decode(written.key).ok()? })
    }

    fn keep(&self, path: &Path) -> io::Result<()> {
        let written = Written { certificate: BASE64.encode(&self.der), key: BASE64.encode(&self.key) };
        state::write(path, &written)
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_kept_certificate_is_the_same_again_and_nobody_else_can_read_it() {
        let folder = tempfile::tempdir().expect("a folder can be made");
        let path = folder.path().join("certificate.json");
        let names = ["127.0.0.1".to_owned()];
        let first = Certificate::kept(&path, &names).expect("it can be made");
        let second = Certificate::kept(&path, &names).expect("it is there");
        assert_eq!(first.fingerprint(), second.fingerprint());
        assert_eq!(first.fingerprint().len(), 32 * 3 - 1);
        let mode = fs::metadata(&path).expect("it is there").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let other = Certificate::make(&names).expect("it can be made");
        assert_ne!(first.fingerprint(), other.fingerprint());
        fs::write(&path, "{}").expect("it can be written");
        assert!(matches!(Certificate::kept(&path, &names), Err(CertificateError::Broken { .. })));
    }
}
