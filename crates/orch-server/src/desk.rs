//! The one who is asked: believes tokens, hands out configurations, takes reports. How questions come in is not known here.

mod hello;

use std::sync::{Arc, RwLock};
use std::time::Duration;

use hyper::body::Bytes;
use orch_model::pull::{NextTokens, NodeResult, Telling, WaitAnswer};
use orch_model::token::{Audience, Bearer, Claims, Code, Demand, Keyring, Refusal, TokenId, sign, verify};
use orch_model::{Config, Digest, Fetched, Identity, NodeRecord, Refused};
use thiserror::Error;

use crate::certificate::{CertificateError, Certificates};
use crate::events::Events;
use crate::folder::{Office, ServerFolder};
use crate::keys::{KeyError, Keys};
use crate::ledger::{Ledger, LedgerError, Revoked, ShowError};
use crate::metrics::{Gauges, Metrics};
use crate::reports::Reports;
use crate::specs::{SiteError, SitePlace, SpecError, Specs};

pub(crate) use hello::Hello;

/// How long the tokens that a node is given with an answer hold at least.
const DAY: u64 = 24 * 60 * 60;
/// How many intervals of a node they hold.
const INTERVALS: u64 = 4;

/// Says what time it is, in seconds since 1970.
pub type Clock = Arc<dyn Fn() -> u64 + Send + Sync>;

/// The server cannot be started, or cannot go on with what it has.
#[derive(Debug, Error)]
pub enum DeskError {
    /// The site cannot be served.
    #[error(transparent)]
    Site(#[from] SiteError),
    /// The keys cannot be had.
    #[error(transparent)]
    Keys(#[from] KeyError),
    /// The certificates cannot be had.
    #[error(transparent)]
    Certificates(#[from] CertificateError),
    /// The ledger cannot be used.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
}

/// Why a question is not answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Answered {
    pub(crate) code: Code,
    pub(crate) message: String,
    /// What is for the log, and not for whoever asked.
    pub(crate) cause: Option<String>,
}

impl Answered {
    pub(crate) fn new(code: Code, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), cause: None }
    }

    /// Something that is the server's own fault. What exactly is for its log, not for whoever asks.
    fn fault(error: impl std::error::Error) -> Self {
        let causes = std::iter::successors(error.source(), |error| error.source());
        let cause = causes.fold(error.to_string(), |words, cause| format!("{words}: {cause}"));
        Self { cause: Some(cause), ..Self::new(Code::E500, "the server is at fault; its log says more") }
    }
}

impl From<Refusal> for Answered {
    fn from(refusal: Refusal) -> Self {
        Self::new(refusal.code(), refusal.to_string())
    }
}

/// The one who is asked.
pub struct Desk {
    pub(crate) specs: Specs,
    pub(crate) metrics: Metrics,
    ledger: Ledger,
    reports: Reports,
    events: Events,
    keys: Keys,
    ring: RwLock<Keyring>,
    pins: RwLock<[Digest; 2]>,
    folder: ServerFolder,
    clock: Clock,
    /// Tells this start of the server from every other.
    instance: u64,
    /// Given up last: whoever has it next finds a ledger that nobody else writes.
    _office: Office,
}

impl Desk {
    /// Opens the desk of a site's server, which keeps the office until the last who asks it has gone.
    pub fn open(
        folder: &ServerFolder,
        place: SitePlace,
        clock: Clock,
        office: Office,
    ) -> Result<Self, DeskError> {
        let keys = Keys::of(folder);
        Ok(Self {
            specs: Specs::of(place)?,
            metrics: Metrics::default(),
            ledger: Ledger::open(&folder.ledger_path())?,
            reports: Reports::of(folder),
            events: Events::new(),
            ring: RwLock::new(keys.ring()?),
            keys,
            pins: RwLock::new(Certificates::of(folder)?.pins()),
            folder: folder.clone(),
            clock,
            // JSON numbers are exact up to here, whoever reads them.
            instance: Digest::of(&new_chain()).as_number() >> 11,
            _office: office,
        })
    }

    /// The certificates, as they are on disk now.
    pub(crate) fn certificates(&self) -> Result<Certificates, CertificateError> {
        Certificates::of(&self.folder)
    }

    /// Reads everything else anew, all or nothing, and tells nodes of these certificates from now on.
    pub(crate) fn reload(&self, certificates: &Certificates) -> Result<(), DeskError> {
        let identities =
            [Some(self.specs.identities()), self.folder.site().map(|(_, identities)| identities)];
        // Both may be the same, and are then forgotten by the first.
        let before = identities.map(|identities| Some((identities?, identities?.forget()?)));
        let read = self.read_anew(certificates);
        if read.is_err() {
            for (identities, found) in before.into_iter().flatten() {
                identities.put_back(found);
            }
        }
        read
    }

    fn read_anew(&self, certificates: &Certificates) -> Result<(), DeskError> {
        let ring = self.keys.ring()?;
        self.specs.reload()?;
        *self.ring.write().expect("nobody panics while holding this") = ring;
        *self.pins.write().expect("nobody panics while holding this") = certificates.pins();
        self.metrics.reloads.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        self.events.something_is_new();
        Ok(())
    }

    /// Takes over what was changed in the site, and wakes those who wait for it.
    pub(crate) fn catch_up(&self) {
        if self.specs.catch_up() {
            self.events.something_is_new();
        }
    }

    /// A node's configuration, with what it needs to ask again.
    pub(crate) async fn spec(
        &self,
        node: &Identity,
        token: Option<&str>,
        hello: Hello,
    ) -> Result<[Bytes; 3], Answered> {
        let shown = self.believe(node, token, Audience::Spec).await?;
        let now = (self.clock)();
        // A token that stands in no chain could be anybody's, and pins nothing: no secret goes out for it.
        let hello = if shown.jti.is_some() { hello } else { Hello::default() };
        if let Some(keys) = &hello.keys {
            self.noted(node, self.ledger.meet(node, keys, now).await, now)?;
        }
        let worded = self.specs.worded(node).map_err(unspecified)?;
        let parcel = self.parcel(&worded.config, hello).await?;
        let next = self.next_tokens(&worded.config, &shown, now)?;
        let digest = worded.config.digest();
        self.events.fetched(node, Fetched { at: now, digest: Some(digest) });
        let pins = *self.pins.read().expect("nobody panics while holding this");
        Ok(worded.answer(parcel, &next, &pins, self.events.revision(node, digest)))
    }

    /// Whether a node may wait for something new.
    pub(crate) async fn may_wait(&self, node: &Identity, token: Option<&str>) -> Result<(), Answered> {
        self.believe(node, token, Audience::Spec).await.map(|_| ())
    }

    /// Waits until something is new for a node that may, for at most `limit`.
    pub(crate) async fn wait(
        &self,
        node: &Identity,
        after: u64,
        limit: Duration,
    ) -> Result<WaitAnswer, Answered> {
        let news = || match self.specs.config(node) {
            Ok(config) => {
                let revision = self.events.revision(node, config.digest());
                (revision != after).then_some(Ok(WaitAnswer { revision }))
            }
            Err(error) => Some(Err(unspecified(error))),
        };
        self.events.until_new(limit, news).await.unwrap_or(Ok(WaitAnswer { revision: after }))
    }

    /// Whether a node may report; what it says is read only then.
    pub(crate) async fn may_report(&self, node: &Identity, token: Option<&str>) -> Result<(), Answered> {
        self.believe(node, token, Audience::Report).await.map(|_| ())
    }

    /// Takes what a node says. What became of a configuration is on disk when this comes back.
    pub(crate) async fn tell(self: &Arc<Self>, node: &Identity, telling: Telling) -> Result<(), Answered> {
        match telling {
            Telling::Progress { doing } => {
                let doing = orch_model::printable(&doing).chars().take(200).collect();
                self.events.doing(node, doing);
                Ok(())
            }
            Telling::Result(result) => self.keep(node, *result).await,
        }
    }

    async fn keep(self: &Arc<Self>, node: &Identity, result: NodeResult) -> Result<(), Answered> {
        if result.report.node != *node {
            return Err(Answered::new(Code::E400, "the report is of another node"));
        }
        let at = (self.clock)();
        let skew = result.clock.saturating_sub_unsigned(at);
        let (desk, of) = (Arc::clone(self), node.clone());
        let kept = tokio::task::spawn_blocking(move || desk.reports.keep(&of, at, skew, result)).await;
        kept.map_err(Answered::fault)?.map_err(Answered::fault)?;
        self.events.reported(node);
        Ok(())
    }

    /// What is known of a node. With a number of events, waits until there are others, for at most `limit`.
    pub(crate) async fn record(&self, node: &Identity, after: Option<u64>, limit: Duration) -> NodeRecord {
        self.catch_up();
        if let Some(after) = after {
            let news = || (self.events.seen(node).count != after).then_some(());
            self.events.until_happened(limit, news).await;
        }
        let seen = self.events.seen(node);
        let standing = self.ledger.standing(node);
        let keys = standing.as_ref().and_then(|standing| standing.keys.clone());
        let remembered = standing.as_ref().map(|standing| Fetched { at: standing.since, digest: None });
        NodeRecord {
            node: node.clone(),
            wanted: self.specs.config(node).ok().map(|config| config.digest()),
            fetched: seen.fetched.or(remembered),
            refused: seen.refused,
            reported: self.reports.last(node).ok().flatten(),
            doing: seen.doing,
            keys,
            alarm: standing.and_then(|standing| standing.alarm),
            trouble: self.specs.trouble(),
            server: self.instance,
            site: self.specs.root().display().to_string(),
            events: seen.count,
        }
    }

    /// Lets everybody go who waits: the server ends.
    pub(crate) fn close(&self) {
        self.events.end();
    }

    /// Has a node converge now, or when it next asks.
    pub(crate) fn converge(&self, node: &Identity) {
        self.events.signal(node);
    }

    /// Takes tokens back.
    pub(crate) async fn revoke(&self, what: Revoked) -> Result<(), LedgerError> {
        self.ledger.revoke(what, (self.clock)()).await
    }

    pub(crate) fn metrics_text(&self) -> String {
        let site_is_sound = self.specs.trouble().is_none();
        self.metrics.text(Gauges { nodes: self.ledger.len(), site_is_sound })
    }

    /// Believes a token for a node, and takes note of it.
    async fn believe(
        &self,
        node: &Identity,
        token: Option<&str>,
        audience: Audience,
    ) -> Result<Claims, Answered> {
        let token = token.ok_or(Refusal::Missing)?;
        self.catch_up();
        let now = (self.clock)();
        let accept_legacy = self.specs.accepts_legacy_tokens();
        let demand = Demand { node, audience, now, accept_legacy };
        let verified = verify(token, &self.ring.read().expect("nobody panics while holding this"), &demand);
        let claims = verified.map_err(|refusal| self.refuse(node, refusal, now))?;
        let Some(id) = claims.jti else { return Ok(claims) };
        match self.ledger.show(node, id, now).await {
            Ok(()) => Ok(claims),
            Err(ShowError::Refused(refusal)) => Err(self.refuse(node, refusal, now)),
            Err(ShowError::Ledger(error)) => Err(Answered::fault(error)),
        }
    }

    /// Sends somebody away, and takes note of it where the token had been good: only then is it known that it was the node,
    /// and that it needs another one.
    fn refuse(&self, node: &Identity, refusal: Refusal, now: u64) -> Answered {
        if matches!(refusal, Refusal::Expired | Refusal::UsedUp | Refusal::Revoked | Refusal::OtherKeys) {
            self.events.refused(node, Refused { at: now, code: refusal.code().to_string() });
        }
        refusal.into()
    }

    /// The tokens that follow the one that was shown.
    fn next_tokens(&self, config: &Config, shown: &Claims, now: u64) -> Result<NextTokens, Answered> {
        let id = shown.jti.unwrap_or_else(|| TokenId::first(new_chain())).next();
        let interval = config.role.run.interval.duration().as_secs();
        let exp = now.saturating_add(DAY.max(interval.saturating_mul(INTERVALS)));
        let mint = |audience| {
            let claims = Claims {
                v: 1,
                n: config.node.clone(),
                s: config.spec.clone(),
                iat: now,
                aud: Some(audience),
                exp: Some(exp),
                jti: Some(id),
                kid: None,
            };
            let ring = self.ring.read().expect("nobody panics while holding this");
            sign(&claims, &ring).map(Bearer::new).ok_or(Refusal::NoKey)
        };
        Ok(NextTokens { spec: mint(Audience::Spec)?, report: mint(Audience::Report)? })
    }
}

/// A chain that begins now.
pub(crate) fn new_chain() -> orch_model::token::Chain {
    orch_model::token::Chain(uuid::Uuid::now_v7().as_u128())
}

/// The time by this machine's clock.
pub fn system_clock() -> Clock {
    Arc::new(|| u64::try_from(jiff::Timestamp::now().as_second()).unwrap_or_default())
}

fn unspecified(error: SpecError) -> Answered {
    match error {
        SpecError::Unknown => Answered::new(Code::E200, error.to_string()),
        SpecError::Wrong => Answered::new(Code::E400, error.to_string()),
        SpecError::Sealed(_) => Answered::fault(error),
    }
}
