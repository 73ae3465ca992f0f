//! The certificates by which nodes know the server: the one that it shows, and the one that it will show after that, so
//! that every node knows the next one before it is used.

use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use orch_model::Digest;
use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair};
use rustls::ServerConfig;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use serde::{Deserialize, Serialize};
use thiserror::Error;
use zeroize::Zeroizing;

use crate::files::{lock, read, replace};
use crate::folder::ServerFolder;

/// The certificates cannot be had.
#[derive(Debug, Error)]
pub enum CertificateError {
    /// The file cannot be read or written.
    #[error("the certificates in `{path}` cannot be used")]
    File {
        /// Where they are.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The file does not hold certificates.
    #[error("`{path}` does not hold the server's certificates")]
    Broken {
        /// The file.
        path: PathBuf,
    },
    /// One could not be made.
    #[error("a certificate cannot be made")]
    Make(#[from] rcgen::Error),
    /// The one that is there is not taken.
    #[error("the certificate cannot be used")]
    Use(#[from] rustls::Error),
}

/// The certificates of a server.
#[derive(Clone)]
pub struct Certificates {
    current: Identity,
    next: Identity,
}

/// A certificate with its key.
#[derive(Clone)]
struct Identity {
    certificate: Vec<u8>,
    key: Zeroizing<Vec<u8>>,
}

/// As it is written down.
#[derive(Serialize, Deserialize)]
struct Written {
    current: WrittenIdentity,
    next: WrittenIdentity,
}

#[derive(Serialize, Deserialize)]
struct WrittenIdentity {
    certificate: String,
    key: Zeroizing<String>,
}

impl Certificates {
    /// The certificates of this server, made when they are needed for the first time.
    pub fn of(folder: &ServerFolder) -> Result<Self, CertificateError> {
        Kept::lock(folder)?.read_or_make()
    }

    /// Makes the next one the current one, and a new next one. Nodes that were told both go on.
    pub fn rotate(folder: &ServerFolder) -> Result<Self, CertificateError> {
        // Nobody else rotates in between: what he told nodes to expect would be lost.
        let kept = Kept::lock(folder)?;
        let before = kept.read_or_make()?;
        let rotated = Self { current: before.next, next: Identity::make()? };
        kept.write(&rotated)?;
        Ok(rotated)
    }

    /// By what nodes know the server: the current one, and the next.
    pub fn pins(&self) -> [Digest; 2] {
        [&self.current, &self.next].map(|identity| Digest::of_bytes(&identity.certificate))
    }

    /// What the server speaks TLS with: 1.3 alone, HTTP/1.1 alone. Sessions are not resumed: there is nothing to keep for
    /// those who never come back.
    pub(crate) fn config(&self) -> Result<Arc<ServerConfig>, CertificateError> {
        let ring = Arc::new(rustls::crypto::ring::default_provider());
        let chain = vec![CertificateDer::from(self.current.certificate.clone())];
        let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(self.current.key.to_vec()));
        let mut config = ServerConfig::builder_with_provider(ring)
            .with_protocol_versions(&[&rustls::version::TLS13])?
            .with_no_client_auth()
            .with_single_cert(chain, key)?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        config.send_tls13_tickets = 0;
        config.session_storage = Arc::new(rustls::server::NoServerSessionStorage {});
        Ok(Arc::new(config))
    }

    fn parse(text: &[u8]) -> Option<Self> {
        let written: Written = serde_json::from_slice(text).ok()?;
        Some(Self { current: Identity::read(&written.current)?, next: Identity::read(&written.next)? })
    }

    fn text(&self) -> Zeroizing<Vec<u8>> {
        let written = Written { current: self.current.written(), next: self.next.written() };
        Zeroizing::new(serde_json::to_vec(&written).expect("text can be written as JSON"))
    }
}

/// Where they are kept, for as long as nobody else may write there.
struct Kept {
    path: PathBuf,
    _lock: File,
}

impl Kept {
    fn lock(folder: &ServerFolder) -> Result<Self, CertificateError> {
        let path = folder.certificates();
        match folder.make().and_then(|()| lock(&path.with_extension("lock"))) {
            Ok(lock) => Ok(Self { path, _lock: lock }),
            Err(source) => Err(CertificateError::File { path, source }),
        }
    }

    fn read_or_make(&self) -> Result<Certificates, CertificateError> {
        if let Some(text) = read(&self.path).map_err(|source| self.failed(source))? {
            let broken = || CertificateError::Broken { path: self.path.clone() };
            return Certificates::parse(&text).ok_or_else(broken);
        }
        let made = Certificates { current: Identity::make()?, next: Identity::make()? };
        self.write(&made)?;
        Ok(made)
    }

    fn write(&self, certificates: &Certificates) -> Result<(), CertificateError> {
        replace(&self.path, &certificates.text()).map_err(|source| self.failed(source))
    }

    fn failed(&self, source: io::Error) -> CertificateError {
        CertificateError::File { path: self.path.clone(), source }
    }
}

impl Identity {
    /// A certificate of our own. Whoever pins it looks at nothing in it, so its name and dates are for people.
    fn make() -> Result<Self, rcgen::Error> {
        let key = KeyPair::generate()?;
        let mut params = CertificateParams::new(vec!["orch.invalid".to_owned()])?;
        let mut name = DistinguishedName::new();
        name.push(DnType::CommonName, "orch spec server");
        params.distinguished_name = name;
        let certificate = params.self_signed(&key)?.der().to_vec();
        Ok(Self { certificate, key: Zeroizing::new(key.serialize_der()) })
    }

    fn read(written: &WrittenIdentity) -> Option<Self> {
        let certificate = BASE64.decode(&written.certificate).ok()?;
        let key = Zeroizing::new(BASE64.decode(&*written.key).ok()?);
        Some(Self { certificate, key })
    }

    fn written(&self) -> WrittenIdentity {
        WrittenIdentity {
            certificate: BASE64.encode(&self.certificate),
            key: Zeroizing::new(BASE64.encode(&*self.key)),
        }
    }
}
