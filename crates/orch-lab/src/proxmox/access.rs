//! Who asks, and what they may: tickets, tokens, roles, and the list of who has which role where.

use std::collections::BTreeSet;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD_NO_PAD as BASE64;
use sha2::{Digest, Sha256};

use super::reply::Refusal;
use super::roles;
use super::settings::ProxmoxSettings;
use super::state::{State, seconds};
use crate::exchange::{Asked, decode};

/// How long a ticket is good, in seconds.
const TICKET_LIFE: u64 = 2 * 60 * 60;

/// Who asks.
#[derive(Clone, Default)]
pub(super) struct Caller {
    pub(super) user: String,
    pub(super) token: Option<String>,
    is_separated: bool,
}

impl Caller {
    /// Root itself, and no token of root.
    pub(super) fn is_root(&self) -> bool {
        self.user == "root@pam" && self.token.is_none()
    }

    pub(super) fn name(&self) -> String {
        match &self.token {
            Some(token) => format!("{}!{token}", self.user),
            None => self.user.clone(),
        }
    }

    /// What they may do at a path.
    pub(super) fn privileges(&self, state: &State, path: &str) -> BTreeSet<String> {
        let own = || held(state, &self.name(), path);
        let whole = || {
            if self.user == "root@pam" { roles::all() } else { held(state, &self.user, path) }
        };
        if self.is_separated { own().intersection(&whole()).cloned().collect() } else { whole() }
    }
}

/// The privileges that the list gives at a path: what is said nearer to it counts, and a pool's count for its members.
fn held(state: &State, who: &str, path: &str) -> BTreeSet<String> {
    let mut privileges = along(state, who, path);
    let vmid = path.strip_prefix("/vms/").and_then(|vmid| vmid.parse().ok());
    if let Some(pool) = vmid.and_then(|vmid| state.pool_of(vmid)) {
        privileges.extend(along(state, who, &format!("/pool/{pool}")));
    }
    privileges
}

fn along(state: &State, who: &str, path: &str) -> BTreeSet<String> {
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
    let mut privileges = BTreeSet::new();
    for length in 0..=parts.len() {
        let place = format!("/{}", parts[..length].join("/"));
        let here = state.acl.iter().filter(|grant| grant.who == who && grant.path == place);
        let here: Vec<_> = here.filter(|grant| grant.propagates || length == parts.len()).collect();
        if !here.is_empty() {
            privileges = here.into_iter().flat_map(|grant| roles::privileges(state, &grant.role)).collect();
        }
    }
    privileges
}

/// Finds out who asks.
pub(super) fn identify(settings: &ProxmoxSettings, state: &State, asked: &Asked) -> Result<Caller, Refusal> {
    let token = asked.header("authorization").and_then(|value| value.strip_prefix("PVEAPIToken="));
    if let Some(token) = token {
        return by_token(settings, state, token);
    }
    let cookies = asked.header("cookie").unwrap_or_default().split(';').map(str::trim);
    let mut tickets = cookies.filter_map(|cookie| cookie.strip_prefix("PVEAuthCookie="));
    let ticket =
        tickets.next().map(|ticket| decode(ticket.trim_matches('"'))).filter(|ticket| !ticket.is_empty());
    let ticket = ticket.ok_or_else(|| Refusal::unknown_caller("No ticket"))?;
    let user = by_ticket(settings, state, &ticket)
        .ok_or_else(|| Refusal::unknown_caller("permission denied - invalid PVE ticket"))?;
    let csrf = asked.header("csrfpreventiontoken").unwrap_or_default();
    if asked.method != "GET" && !is_fresh(state, csrf.split_once(':'), &user) {
        return Err(Refusal::unknown_caller("Permission denied - invalid csrf token"));
    }
    Ok(Caller { user, token: None, is_separated: false })
}

fn by_token(settings: &ProxmoxSettings, state: &State, text: &str) -> Result<Caller, Refusal> {
    let refused = |why: String| Refusal::unknown_caller(why);
    let (name, secret) = text.rsplit_once('=').unwrap_or((text, ""));
    let looks_wrong = || refused(format!("value '{name}' does not look like a valid token ID"));
    let (user, id) = name.split_once('!').ok_or_else(looks_wrong)?;
    if !is_token_id(id) {
        return Err(looks_wrong());
    }
    if !settings.users.contains_key(user) {
        return Err(refused(format!("no such user ('{user}')")));
    }
    let token = state.tokens.get(name).filter(|token| token.secret == secret);
    let token = token.ok_or_else(|| refused("invalid token value!".into()))?;
    if token.expire != 0 && token.expire < seconds() {
        return Err(refused(format!("token '{id}' access expired")));
    }
    Ok(Caller { user: user.to_owned(), token: Some(id.to_owned()), is_separated: token.is_separated })
}

/// Whether a token can be called this: two characters at least, the first a letter.
pub(super) fn is_token_id(id: &str) -> bool {
    let fine = |byte: u8| byte.is_ascii_alphanumeric() || b".-_".contains(&byte);
    id.len() >= 2 && id.starts_with(|first: char| first.is_ascii_alphabetic()) && id.bytes().all(fine)
}

/// The user of a ticket that is good.
pub(super) fn by_ticket(settings: &ProxmoxSettings, state: &State, ticket: &str) -> Option<String> {
    let (signed, signature) = ticket.split_once("::")?;
    let mut parts = signed.strip_prefix("PVE:")?.rsplitn(2, ':');
    let (time, user) = (parts.next()?, parts.next()?);
    let is_good = is_fresh(state, Some((time, signature)), &format!("PVE:{user}"));
    (is_good && settings.users.contains_key(user)).then(|| user.to_owned())
}

/// A ticket and what must be sent with writes.
pub(super) fn issue(state: &State, user: &str) -> (String, String) {
    let time = format!("{:08X}", seconds());
    let ticket = format!("PVE:{user}:{time}::{}", sign(state, &time, &format!("PVE:{user}")));
    (ticket, format!("{time}:{}", sign(state, &time, user)))
}

fn is_fresh(state: &State, parts: Option<(&str, &str)>, subject: &str) -> bool {
    let Some((time, signature)) = parts else { return false };
    let age = u64::from_str_radix(time, 16).map(|time| seconds().saturating_sub(time));
    age.is_ok_and(|age| age < TICKET_LIFE) && sign(state, time, subject) == signature
}

fn sign(state: &State, time: &str, subject: &str) -> String {
    BASE64.encode(Sha256::digest(format!("{}\n{time}\n{subject}", state.key)))
}
