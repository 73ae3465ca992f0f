//! A spec server as small as one can be: real TLS, real tokens and a ledger of them, and answers that a test can spoil.

use std::collections::{BTreeMap, VecDeque};
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread;
use std::time::{Duration, Instant};

use orch_model::pull::{
    AGE_HEADER, Enrolment, ErrorAnswer, HOLDS_DIGITS, HOLDS_HEADER, HOST_KEY_HEADER, NextTokens, NodeResult,
    SETTLED_HEADER, Telling, WaitAnswer,
};
use orch_model::token::{self, Audience, Bearer, Chain, Claims, Code, Keyring, SigningKey, TokenId};
use orch_model::{Digest, Identity, KeyName, Mode, Parcel};
use orch_secrets::Bundle;
use rcgen::{CertificateParams, KeyPair, date_time_ymd};
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use serde_json::{Value as Json, json};

use crate::common::{json_of, role, secrets};

/// How long who waits is left waiting.
const WAIT: Duration = Duration::from_secs(2);

/// A certificate and its key.
pub(crate) struct Certificate {
    der: CertificateDer<'static>,
    key: PrivatePkcs8KeyDer<'static>,
}

impl Certificate {
    pub(crate) fn new() -> Self {
        Self::between(2000, 4000)
    }

    /// One that is good from the first day of one year to that of another.
    pub(crate) fn between(from: i32, to: i32) -> Self {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(vec!["somebody.example".into()]).unwrap();
        (params.not_before, params.not_after) = (date_time_ymd(from, 1, 1), date_time_ymd(to, 1, 1));
        let certificate = params.self_signed(&key).unwrap();
        Self { der: certificate.der().clone(), key: key.serialize_der().into() }
    }

    pub(crate) fn pin(&self) -> Digest {
        Digest::of_bytes(&self.der)
    }

    /// The same certificate, in the hands of somebody who has not its key.
    pub(crate) fn stolen(&self) -> Self {
        Self { der: self.der.clone(), key: Self::new().key }
    }

    fn config(&self) -> Arc<ServerConfig> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let key = rustls::crypto::ring::sign::any_supported_type(&self.key.clone_key().into()).unwrap();
        let certified = CertifiedKey::new(vec![self.der.clone()], key);
        let config = ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&rustls::version::TLS13])
            .unwrap()
            .with_no_client_auth()
            .with_cert_resolver(Arc::new(Always(Arc::new(certified))));
        Arc::new(config)
    }
}

/// Shows one certificate to everybody, and does not ask whether its key fits.
#[derive(Debug)]
struct Always(Arc<CertifiedKey>);

impl ResolvesServerCert for Always {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(&self.0))
    }
}

/// What the server does with a question, in the place of answering it.
#[derive(Clone)]
pub(crate) enum Spoil {
    /// Answers with a status and headers.
    Status(u16, &'static str),
    /// Says these bytes.
    Raw(Vec<u8>),
    /// Says these bytes one by one, with a pause between them.
    Drip(Vec<u8>, Duration),
    /// Hangs up.
    HangUp,
}

/// What a node says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Presence {
    pub(crate) age: String,
    pub(crate) host_key: String,
    pub(crate) settled: String,
    pub(crate) holds: String,
}

/// What the server has and has seen.
pub(crate) struct Site {
    pub(crate) spec: Json,
    pub(crate) revision: u64,
    pub(crate) pins: Vec<Digest>,
    /// What becomes of the next questions for the configuration.
    pub(crate) spoil: VecDeque<Spoil>,
    /// What becomes of the next results.
    pub(crate) spoil_results: VecDeque<Spoil>,
    /// What becomes of the next who wait.
    pub(crate) spoil_waits: VecDeque<Spoil>,
    /// The secrets that it has for the node.
    pub(crate) secrets: BTreeMap<KeyName, String>,
    /// What it sends in the place of those.
    pub(crate) planted: Option<Parcel>,
    pub(crate) asked: Vec<(Instant, String)>,
    /// What the node said of itself each time it asked for its configuration.
    pub(crate) presences: Vec<Presence>,
    /// What it said of itself with whatever it told.
    pub(crate) tellers: Vec<Presence>,
    /// How long the longest head of a question was.
    pub(crate) longest_head: usize,
    pub(crate) results: Vec<NodeResult>,
    pub(crate) progress: Vec<(Instant, String)>,
    pub(crate) refusals: Vec<String>,
    pub(crate) connections: usize,
    config: Arc<ServerConfig>,
    /// The latest generation of tokens that was shown.
    shown: u64,
}

impl Site {
    /// When the configuration was asked for.
    pub(crate) fn fetches(&self) -> Vec<Instant> {
        self.asked.iter().filter(|(_, path)| path.starts_with("/v1/spec/")).map(|(at, _)| *at).collect()
    }

    /// When somebody waited.
    pub(crate) fn waits(&self) -> Vec<Instant> {
        self.asked.iter().filter(|(_, path)| path.starts_with("/v1/wait/")).map(|(at, _)| *at).collect()
    }

    /// Gives the node something new, with secrets.
    pub(crate) fn change_to(&mut self, site: &secrets::Site) {
        self.spec = serde_json::to_value(site.config()).unwrap();
        self.secrets = site.values.clone();
        self.revision += 1;
    }

    /// What the node does not have yet, sealed for it.
    fn parcel(&self, presence: &Presence) -> Option<Parcel> {
        if self.planted.is_some() {
            return self.planted.clone();
        }
        let mut bundle = Bundle::default();
        for (name, value) in &self.secrets {
            let held = secrets::held(value);
            if !presence.holds.split(',').any(|digest| digest == &held.digest.as_str()[..HOLDS_DIGITS]) {
                bundle.insert(name.clone(), held);
            }
        }
        (!bundle.is_empty()).then(|| bundle.pack(&presence.age.parse().unwrap()).unwrap())
    }

    /// Gives the node something new.
    pub(crate) fn change(&mut self, role: &orch_model::config::Role) {
        self.spec = json_of(role);
        self.revision += 1;
    }
}

pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    site: Arc<Mutex<Site>>,
    stop: Arc<AtomicBool>,
    first_pin: Digest,
}

impl Server {
    pub(crate) fn start() -> Self {
        Self::start_with(&Certificate::new())
    }

    pub(crate) fn start_with(certificate: &Certificate) -> Self {
        Self::listen(TcpListener::bind("127.0.0.1:0").unwrap(), certificate)
    }

    pub(crate) fn listen(listener: TcpListener, certificate: &Certificate) -> Self {
        let first_pin = certificate.pin();
        let site = Arc::new(Mutex::new(Site {
            spec: json_of(&role()),
            revision: 1,
            pins: vec![first_pin],
            spoil: VecDeque::new(),
            spoil_results: VecDeque::new(),
            spoil_waits: VecDeque::new(),
            secrets: BTreeMap::new(),
            planted: None,
            asked: Vec::new(),
            presences: Vec::new(),
            tellers: Vec::new(),
            longest_head: 0,
            results: Vec::new(),
            progress: Vec::new(),
            refusals: Vec::new(),
            connections: 0,
            config: certificate.config(),
            shown: 0,
        }));
        let stop = Arc::new(AtomicBool::new(false));
        let address = listener.local_addr().unwrap();
        let (ours, stopped) = (Arc::clone(&site), Arc::clone(&stop));
        thread::spawn(move || {
            for stream in listener.incoming() {
                if stopped.load(Ordering::SeqCst) {
                    return;
                }
                let (site, stopped) = (Arc::clone(&ours), Arc::clone(&stopped));
                // Who hangs up in the middle is no concern of the server.
                thread::spawn(move || stream.and_then(|stream| serve(stream, &site, &stopped)));
            }
        });
        Self { address, site, stop, first_pin }
    }

    pub(crate) fn site(&self) -> MutexGuard<'_, Site> {
        self.site.lock().unwrap()
    }

    /// Shows another certificate from now on.
    pub(crate) fn show(&self, certificate: &Certificate) {
        self.site().config = certificate.config();
    }

    /// What a node is given to come here.
    pub(crate) fn enrolment(&self) -> Enrolment {
        Enrolment {
            node: identity(),
            mode: Mode::Pull,
            server: format!("https://{}", self.address),
            pins: vec![self.first_pin],
            token: Bearer::new(mint(Audience::Spec, 0)),
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        // It waits for the next who comes.
        let _ = TcpStream::connect(self.address);
    }
}

pub(crate) fn identity() -> Identity {
    "test.web@here".parse().unwrap()
}

fn keys() -> Keyring {
    let id = "k1".parse().unwrap();
    [SigningKey::parse(id, &"5a".repeat(32)).unwrap()].into_iter().collect()
}

pub(crate) fn mint(audience: Audience, generation: u64) -> String {
    let claims = Claims {
        v: 1,
        n: identity(),
        s: "base".parse().unwrap(),
        iat: 1_000,
        aud: Some(audience),
        exp: Some(90_000),
        jti: Some(TokenId { chain: Chain(7), generation }),
        kid: None,
    };
    token::sign(&claims, &keys()).unwrap()
}

fn serve(stream: TcpStream, site: &Mutex<Site>, stop: &AtomicBool) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let config = {
        let mut site = site.lock().unwrap();
        site.connections += 1;
        Arc::clone(&site.config)
    };
    let connection = ServerConnection::new(config).map_err(io::Error::other)?;
    let mut stream = StreamOwned::new(connection, stream);
    while let Some(question) = Question::read(&mut stream)? {
        if stop.load(Ordering::SeqCst) {
            return Ok(());
        }
        match question.answer(site) {
            Spoil::Status(status, headers) => answer(&mut stream, status, headers, b"")?,
            Spoil::Raw(bytes) => {
                // A little at a time, so that who refuses is not waited for.
                for part in bytes.chunks(1 << 16) {
                    stream.write_all(part)?;
                    stream.flush()?;
                }
            }
            Spoil::Drip(bytes, pause) => {
                for byte in bytes {
                    stream.write_all(&[byte])?;
                    stream.flush()?;
                    thread::sleep(pause);
                }
            }
            Spoil::HangUp => return Ok(()),
        }
    }
    Ok(())
}

fn answer(stream: &mut impl Write, status: u16, headers: &str, body: &[u8]) -> io::Result<()> {
    stream.write_all(&bytes(status, headers, body))?;
    stream.flush()
}

pub(crate) fn bytes(status: u16, headers: &str, body: &[u8]) -> Vec<u8> {
    let head = format!("HTTP/1.1 {status} Word\r\n{headers}Content-Length: {}\r\n\r\n", body.len());
    [head.as_bytes(), body].concat()
}

struct Question {
    path: String,
    token: String,
    presence: Presence,
    head: usize,
    body: Vec<u8>,
}

impl Question {
    /// Nothing where no more come.
    fn read(stream: &mut impl Read) -> io::Result<Option<Self>> {
        let (mut head, mut byte) = (Vec::new(), [0]);
        while !head.ends_with(b"\r\n\r\n") {
            if stream.read(&mut byte)? == 0 {
                return Ok(None);
            }
            head.push(byte[0]);
        }
        let mut headers = [httparse::EMPTY_HEADER; 16];
        let mut request = httparse::Request::new(&mut headers);
        assert!(request.parse(&head).unwrap().is_complete());
        let header = |name: &str| {
            let found = request.headers.iter().find(|header| header.name.eq_ignore_ascii_case(name));
            found.map(|header| String::from_utf8_lossy(header.value).into_owned()).unwrap_or_default()
        };
        let mut body = vec![0; header("content-length").parse().unwrap_or(0)];
        stream.read_exact(&mut body)?;
        let token = header("authorization").strip_prefix("Bearer ").unwrap().to_owned();
        let presence = Presence {
            age: header(AGE_HEADER),
            host_key: header(HOST_KEY_HEADER),
            settled: header(SETTLED_HEADER),
            holds: header(HOLDS_HEADER),
        };
        Ok(Some(Self { path: request.path.unwrap().to_owned(), token, presence, head: head.len(), body }))
    }

    fn answer(&self, shared: &Mutex<Site>) -> Spoil {
        let mut site = shared.lock().unwrap();
        site.longest_head = site.longest_head.max(self.head);
        site.asked.push((Instant::now(), self.path.clone()));
        let is_result = self.body.starts_with(b"{\"kind\":\"result\"");
        let spoil = match self.path.split('/').nth(2) {
            Some("spec") => site.spoil.pop_front(),
            Some("report") if is_result => site.spoil_results.pop_front(),
            Some("wait") => site.spoil_waits.pop_front(),
            _ => None,
        };
        if let Some(spoil) = spoil {
            return spoil;
        }
        let audience = if self.path.starts_with("/v1/report/") { Audience::Report } else { Audience::Spec };
        let generation = match self.open(&mut site, audience) {
            Ok(generation) => generation,
            Err((code, words)) => {
                site.refusals.push(format!("{} {words}", self.path));
                return Spoil::Raw(bytes(code.status(), "", &to_json(&ErrorAnswer::of(code, words))));
            }
        };
        match self.path.strip_prefix("/v1/").unwrap() {
            "spec/test.web%40here" => {
                let next = NextTokens {
                    spec: Bearer::new(mint(Audience::Spec, generation + 1)),
                    report: Bearer::new(mint(Audience::Report, generation + 1)),
                };
                site.presences.push(self.presence.clone());
                let mut answer = json!({
                    "spec": site.spec, "next": next, "pins": site.pins, "revision": site.revision,
                });
                if let Some(parcel) = site.parcel(&self.presence) {
                    answer["parcel"] = json!(parcel);
                }
                Spoil::Raw(bytes(200, "", &to_json(&answer)))
            }
            "report/test.web%40here" => {
                site.tellers.push(self.presence.clone());
                match serde_json::from_slice(&self.body).unwrap() {
                    Telling::Progress { doing } => site.progress.push((Instant::now(), doing)),
                    Telling::Result(result) => site.results.push(*result),
                }
                Spoil::Raw(b"HTTP/1.1 204 No Content\r\n\r\n".to_vec())
            }
            path => {
                let after: u64 = path.strip_prefix("wait/test.web%40here?after=").unwrap().parse().unwrap();
                let end = Instant::now() + WAIT;
                while site.revision == after && Instant::now() < end {
                    drop(site);
                    thread::sleep(Duration::from_millis(10));
                    site = shared.lock().unwrap();
                }
                Spoil::Raw(bytes(200, "", &to_json(&WaitAnswer { revision: site.revision })))
            }
        }
    }

    /// Believes the token, and takes note that it was shown. Who shows one whose successor was shown is refused.
    fn open(&self, site: &mut Site, audience: Audience) -> Result<u64, (Code, String)> {
        let demand = token::Demand { node: &identity(), audience, now: 2_000, accept_legacy: false };
        let claims = token::verify(&self.token, &keys(), &demand)
            .map_err(|refusal| (refusal.code(), refusal.to_string()))?;
        let generation = claims.jti.unwrap().generation;
        if generation < site.shown {
            return Err((Code::E302, "the token was used up".into()));
        }
        site.shown = generation;
        Ok(generation)
    }
}

fn to_json(value: &impl serde::Serialize) -> Vec<u8> {
    serde_json::to_vec(value).unwrap()
}
