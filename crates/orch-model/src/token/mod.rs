//! Provisioning tokens: what a node shows to be given its own configuration, and nothing else.
//!
//! A token is `base64url(payload) "." base64url(HMAC-SHA256(key, the encoded payload))`. This is the format alone: what time
//! it is, which tokens were used up and where keys are kept is known elsewhere.

mod bearer;
mod claims;
mod id;
mod key;
mod refusal;

use alloc::string::String;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64URL;

pub use bearer::Bearer;
pub use claims::{Audience, Claims};
pub use id::{Chain, TokenId};
pub use key::{Keyring, SigningKey};
pub use refusal::{Code, Refusal};

use crate::identity::Identity;

/// No token that orch makes is nearly as long; what is longer is not looked at.
const LONGEST: usize = 2048;
/// How far the clock of whoever minted a token may be ahead, in seconds.
const GRACE: u64 = 60;

/// What a token must be good for.
#[derive(Debug, Clone, Copy)]
pub struct Demand<'d> {
    /// The node that is asked about.
    pub node: &'d Identity,
    /// What is asked for.
    pub audience: Audience,
    /// The time now, in seconds since 1970.
    pub now: u64,
    /// Whether tokens without audience and expiry are still taken.
    pub accept_legacy: bool,
}

/// Writes a token. The key that signs it is the keyring's current one; nothing where the ring is empty.
pub fn sign(claims: &Claims, keys: &Keyring) -> Option<String> {
    let key = keys.current()?;
    let claims = Claims { kid: Some(key.id().clone()), ..claims.clone() };
    let payload = serde_json::to_vec(&claims).expect("claims can be written as JSON");
    let mut token = BASE64URL.encode(payload);
    let signature = key.sign(token.as_bytes());
    token.push('.');
    BASE64URL.encode_string(signature, &mut token);
    Some(token)
}

/// Reads a token without believing it.
pub fn read(token: &str) -> Result<Claims, Refusal> {
    Ok(Parts::of(token)?.claims)
}

/// Believes a token, or says why not. What it says about its own use is for the caller to look up.
pub fn verify(token: &str, keys: &Keyring, demand: &Demand<'_>) -> Result<Claims, Refusal> {
    if keys.is_empty() {
        return Err(Refusal::NoKey);
    }
    let parts = Parts::of(token)?;
    let claims = &parts.claims;
    let is_signed = match &claims.kid {
        Some(kid) => keys.named(kid).is_some_and(|key| key.has_signed(parts.signed, &parts.signature)),
        None => keys.all().any(|key| key.has_signed(parts.signed, &parts.signature)),
    };
    if !is_signed {
        return Err(Refusal::Forged);
    }
    if claims.n != *demand.node {
        return Err(Refusal::OtherNode);
    }
    // A token of the old kind opens specs alone.
    let is_legacy = claims.is_legacy() && demand.accept_legacy && demand.audience == Audience::Spec;
    if claims.aud != Some(demand.audience) && !is_legacy {
        return Err(Refusal::OtherAudience);
    }
    // What does not say which one it is could be shown for ever.
    if (claims.jti.is_none() || claims.kid.is_none()) && !is_legacy {
        return Err(Refusal::Forged);
    }
    match claims.exp {
        Some(end) if demand.now > end.saturating_add(GRACE) => Err(Refusal::Expired),
        None if !is_legacy => Err(Refusal::Expired),
        _ => Ok(parts.claims),
    }
}

/// A token taken apart.
struct Parts<'t> {
    /// What was signed: the payload as it stands there.
    signed: &'t [u8],
    claims: Claims,
    signature: alloc::vec::Vec<u8>,
}

impl<'t> Parts<'t> {
    fn of(token: &'t str) -> Result<Self, Refusal> {
        let (payload, signature) = token
            .split_once('.')
            .filter(|(_, signature)| token.len() <= LONGEST && !signature.contains('.'))
            .ok_or(Refusal::Malformed)?;
        let decode = |text: &str| BASE64URL.decode(text).map_err(|_| Refusal::Malformed);
        let signature = decode(signature)?;
        let claims: Claims = serde_json::from_slice(&decode(payload)?).map_err(|_| Refusal::Malformed)?;
        if claims.v != 1 {
            return Err(Refusal::Malformed);
        }
        Ok(Self { signed: payload.as_bytes(), claims, signature })
    }
}
