//! A client for one API: connections that are kept and used again, and what opens it, had at the moment of the first question.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::Request;
use hyper::body::Bytes;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::ext::ReasonPhrase;
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HOST, HeaderValue};
use hyper_util::rt::TokioIo;
use orch_run::TreasuryError;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::sync::{OnceCell, Semaphore};
use tokio::time::{Instant, timeout_at};
use tokio_rustls::TlsConnector;
use zeroize::Zeroizing;

use super::ApiError;
use super::dial::Dial;

/// An answer is no larger.
const LARGEST: usize = 64 << 20;

/// The value of the header that opens an API, had when it is first needed.
pub type Opener = Arc<dyn Fn() -> Result<Zeroizing<String>, TreasuryError> + Send + Sync>;

/// How an API is spoken to.
#[derive(Clone)]
pub struct ClientSettings {
    /// Its address as people write it, such as `https://father.core:8006`; what stands behind the host comes before each path.
    pub endpoint: String,
    /// How it is reached.
    pub dial: Arc<dyn Dial>,
    /// By what its certificate is known.
    pub tls: Arc<ClientConfig>,
    /// What opens it.
    pub opener: Opener,
    /// How many questions are asked at once.
    pub lanes: usize,
    /// How long an answer may take.
    pub limit: Duration,
}

/// A client for one API.
pub struct Client {
    settings: ClientSettings,
    /// The host and port, as they stand in a question.
    authority: HeaderValue,
    /// What comes before each path.
    base: String,
    name: ServerName<'static>,
    authorization: OnceCell<HeaderValue>,
    idle: Mutex<Vec<SendRequest<Full<Bytes>>>>,
    lanes: Semaphore,
}

/// What is done to a thing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// Looks at it.
    Get,
    /// Makes one, or has it do something.
    Post,
    /// Changes it.
    Put,
    /// Removes it.
    Delete,
}

impl Method {
    /// As it is sent.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Post => "POST",
            Self::Put => "PUT",
            Self::Delete => "DELETE",
        }
    }
}

/// One question.
#[derive(Clone)]
pub struct Question {
    /// What is done.
    pub method: Method,
    /// To what: the path behind the endpoint's own, and what follows the `?`, escaped.
    pub path: String,
    /// The kind of the body and the body, where there is one.
    pub body: Option<(&'static str, Bytes)>,
    /// How long this answer may take, where that is not as usual.
    pub limit: Option<Duration>,
}

/// The answer to a question, whatever it says.
#[derive(Clone)]
pub struct Reply {
    /// The status.
    pub status: u16,
    /// The words beside the status, where there are some of its own.
    pub reason: Option<String>,
    /// The headers, by their names in lower case.
    pub headers: BTreeMap<String, String>,
    /// The body.
    pub body: Bytes,
}

impl Reply {
    /// A header, by its name in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(String::as_str)
    }
}

impl Client {
    /// A client for the API at this address; an error in words where that is no address.
    pub fn new(settings: ClientSettings) -> Result<Self, String> {
        let (host, authority, base) = split(&settings.endpoint)?;
        let wrong = || format!("`{}` is not an address", settings.endpoint);
        let name = ServerName::try_from(host).map_err(|_| wrong())?;
        let authority = HeaderValue::from_str(&authority).map_err(|_| wrong())?;
        let lanes = Semaphore::new(settings.lanes.max(1));
        let (authorization, idle) = (OnceCell::new(), Mutex::default());
        Ok(Self { settings, authority, base, name, authorization, idle, lanes })
    }

    /// Its address, for messages.
    pub fn endpoint(&self) -> &str {
        &self.settings.endpoint
    }

    /// Asks, and waits for the whole answer, once. Where nothing can have happened, a connection that had gone stale is made
    /// anew.
    pub async fn ask(&self, question: &Question) -> Result<Reply, ApiError> {
        self.ask_by(question, true).await
    }

    /// The same by a connection that nothing was asked by before.
    pub async fn ask_anew(&self, question: &Question) -> Result<Reply, ApiError> {
        self.ask_by(question, false).await
    }

    async fn ask_by(&self, question: &Question, may_be_kept: bool) -> Result<Reply, ApiError> {
        let deadline = Instant::now() + question.limit.unwrap_or(self.settings.limit);
        let unreached = |why: String| ApiError::Unreached { api: self.endpoint().to_owned(), why };
        let lane = timeout_at(deadline, self.lanes.acquire()).await;
        let _lane = lane.map_err(|_| unreached("too much is asked of it already".into()))?;
        let mut request = self.request(question).await?;
        loop {
            let kept = if may_be_kept { self.kept() } else { None };
            let (mut sender, is_kept) = match kept {
                Some(sender) => (sender, true),
                None => (self.connect(deadline).await?, false),
            };
            let sent = timeout_at(deadline, sender.try_send_request(request)).await;
            let mut failed = match sent {
                Err(_) => return Err(self.late()),
                Ok(Ok(response)) => return self.whole(response, sender, deadline).await,
                Ok(Err(failed)) => failed,
            };
            // Only what comes back unsent cannot have had an effect.
            match failed.take_message() {
                Some(unsent) if is_kept => request = unsent,
                Some(_) => return Err(unreached(failed.error().to_string())),
                None => return Err(self.unanswered(failed.error().to_string())),
            }
        }
    }

    async fn whole(
        &self,
        response: hyper::Response<hyper::body::Incoming>,
        sender: SendRequest<Full<Bytes>>,
        deadline: Instant,
    ) -> Result<Reply, ApiError> {
        let (head, body) = response.into_parts();
        let body = timeout_at(deadline, Limited::new(body, LARGEST).collect()).await;
        let body = match body {
            Err(_) => return Err(self.late()),
            Ok(Err(error)) if error.is::<LengthLimitError>() => {
                return Err(self.unanswered("the answer is too large".into()));
            }
            Ok(Err(error)) => return Err(self.unanswered(format!("it broke off: {error}"))),
            Ok(Ok(body)) => body.to_bytes(),
        };
        self.keep(sender);
        let header = |(name, value): (&hyper::header::HeaderName, &HeaderValue)| {
            Some((name.as_str().to_owned(), value.to_str().ok()?.to_owned()))
        };
        let reason = head.extensions.get::<ReasonPhrase>();
        let reason = reason.map(|reason| String::from_utf8_lossy(reason.as_bytes()).into_owned());
        let headers = head.headers.iter().filter_map(header).collect();
        Ok(Reply { status: head.status.as_u16(), reason, headers, body })
    }

    async fn request(&self, question: &Question) -> Result<Request<Full<Bytes>>, ApiError> {
        let authorization = self.authorization.get_or_try_init(|| self.open()).await?;
        let path = format!("{}{}", self.base, question.path);
        let mut request = Request::builder()
            .method(question.method.as_str())
            .uri(path)
            .header(HOST, self.authority.clone())
            .header(AUTHORIZATION, authorization.clone())
            .header("user-agent", concat!("orch/", env!("CARGO_PKG_VERSION")));
        if let Some((kind, _)) = &question.body {
            request = request.header(CONTENT_TYPE, *kind);
        }
        let body = question.body.as_ref().map(|(_, body)| body.clone()).unwrap_or_default();
        let malformed = |error: hyper::http::Error| ApiError::Unreached {
            api: self.endpoint().to_owned(),
            why: format!("what was to be asked makes no sense: {error}"),
        };
        request.body(Full::new(body)).map_err(malformed)
    }

    /// Has what opens the API. Files are read and keys are tried, so others are not kept waiting meanwhile.
    async fn open(&self) -> Result<HeaderValue, ApiError> {
        let opener = Arc::clone(&self.settings.opener);
        let sealed = |what: String, hint: String| ApiError::Sealed { what, hint };
        let token = tokio::task::spawn_blocking(move || opener()).await;
        let token = token.map_err(|error| sealed(error.to_string(), "run again".into()))?;
        let token = token.map_err(|TreasuryError { what, hint }| sealed(what, hint))?;
        let mut value = HeaderValue::from_str(&token).map_err(|_| {
            let what = format!("the token of `{}` has characters that no token has", self.endpoint());
            sealed(what, "see whether the value in the sops file is the token and nothing else".into())
        })?;
        value.set_sensitive(true);
        Ok(value)
    }

    /// A connection that was used before and is still there.
    fn kept(&self) -> Option<SendRequest<Full<Bytes>>> {
        let mut idle = self.idle.lock().expect("nobody panics while holding this");
        while let Some(sender) = idle.pop() {
            if sender.is_ready() {
                return Some(sender);
            }
        }
        None
    }

    fn keep(&self, sender: SendRequest<Full<Bytes>>) {
        if !sender.is_closed() {
            self.idle.lock().expect("nobody panics while holding this").push(sender);
        }
    }

    async fn connect(&self, deadline: Instant) -> Result<SendRequest<Full<Bytes>>, ApiError> {
        let api = || self.endpoint().to_owned();
        let unreached = |why: String| ApiError::Unreached { api: api(), why };
        let connecting = async {
            let stream = self.settings.dial.dial().await.map_err(|error| unreached(error.to_string()))?;
            let tls = TlsConnector::from(Arc::clone(&self.settings.tls));
            let stream = tls.connect(self.name.clone(), stream).await;
            let stream = stream.map_err(|error| match certificate_trouble(&error) {
                Some(why) => ApiError::Untrusted { api: api(), why },
                None => unreached(error.to_string()),
            })?;
            let (sender, connection) =
                handshake(TokioIo::new(stream)).await.map_err(|error| unreached(error.to_string()))?;
            tokio::spawn(async move {
                // What breaks is told to whoever waits for an answer on it.
                let _ = connection.await;
            });
            Ok(sender)
        };
        timeout_at(deadline, connecting).await.unwrap_or_else(|_| Err(unreached("it does not answer".into())))
    }

    fn late(&self) -> ApiError {
        self.unanswered("its time was over".into())
    }

    fn unanswered(&self, why: String) -> ApiError {
        ApiError::Unanswered { api: self.endpoint().to_owned(), why }
    }
}

/// What is wrong with the certificate, where that is what is wrong.
fn certificate_trouble(error: &io::Error) -> Option<String> {
    let inner = error.get_ref()?.downcast_ref::<rustls::Error>()?;
    match inner {
        rustls::Error::InvalidCertificate(rustls::CertificateError::Other(other)) => {
            Some(other.0.to_string())
        }
        rustls::Error::InvalidCertificate(trouble) => Some(trouble.to_string()),
        _ => None,
    }
}

/// The host by which the certificate is known, host and port, and the path that comes first.
fn split(endpoint: &str) -> Result<(String, String, String), String> {
    let wrong = || format!("`{endpoint}` is not an address that starts with `https://`");
    let rest = endpoint.strip_prefix("https://").ok_or_else(wrong)?;
    let (authority, base) = rest.find('/').map_or((rest, ""), |at| rest.split_at(at));
    let (host, _) = host_and_port(authority).ok_or_else(wrong)?;
    Ok((host, authority.to_owned(), base.trim_end_matches('/').to_owned()))
}

/// The host and port of an authority; 443 where it names none.
pub(crate) fn host_and_port(authority: &str) -> Option<(String, u16)> {
    let bare = |host: &str| host.trim_start_matches('[').trim_end_matches(']').to_owned();
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) if !port.contains(']') && (!host.contains(':') || host.starts_with('[')) => {
            (bare(host), port.parse().ok()?)
        }
        _ => (bare(authority), 443),
    };
    (!host.is_empty()).then_some((host, port))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_taken_apart() {
        let parts = |text: &str| split(text).unwrap();
        let all = |host: &str, authority: &str, base: &str| (host.into(), authority.into(), base.into());
        assert_eq!(parts("https://father.core:8006"), all("father.core", "father.core:8006", ""));
        assert_eq!(
            parts("https://api.hetzner.cloud/v1/"),
            all("api.hetzner.cloud", "api.hetzner.cloud", "/v1")
        );
        assert_eq!(parts("https://[::1]:8006/x"), all("::1", "[::1]:8006", "/x"));
        assert_eq!(host_and_port("[::1]"), Some(("::1".into(), 443)));
        assert_eq!(host_and_port("a:99999"), None);
        assert!(split("http://father").is_err() && split("https://").is_err());
    }
}
