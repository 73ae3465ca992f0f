//! What servers need beside themselves, and a site has once: an SSH key, networks, a firewall. Looked after before the first
//! server is made, found again by every later run, and never doubled.

use orch_model::PublicKey;
use orch_run::Progress;
use serde_json::{Value as Json, json};
use sha2::{Digest as _, Sha256};
use tokio::time::{Instant, sleep};

use super::Hetzner;
use super::answer::{Labels, Thing};
use super::decode::list_of;
use super::trouble::CallError;
use crate::ssh::ensure_identity;

/// What a thing is marked with that is there for all of a site.
pub(super) const SITE: &str = "orch-site";
/// What a thing is marked with that is there for one manifest.
pub(super) const MANIFEST: &str = "orch-manifest";

/// What servers need beside themselves.
pub(super) struct Ensured {
    /// The key that opens the nodes.
    pub(super) access: PublicKey,
    pub(super) key: u64,
    pub(super) networks: Vec<u64>,
    pub(super) firewall: Option<u64>,
}

/// Something that is looked for, and made where it is not there.
pub(super) struct Sought<'a> {
    /// The list that it is in.
    pub(super) list: &'static str,
    /// What it is called in an answer.
    pub(super) one: &'static str,
    /// What narrows the list.
    pub(super) query: String,
    /// Whether a thing is it.
    pub(super) is_it: &'a (dyn Fn(&Thing) -> bool + Sync),
    /// How it is made.
    pub(super) body: Json,
}

impl Hetzner {
    /// What servers need beside themselves. The first who asks looks after it, and the others wait.
    pub(super) async fn ensured(&self, progress: &Progress, until: Instant) -> Result<&Ensured, CallError> {
        let ensuring = self.inner.ensured.get_or_try_init(|| async {
            progress.say("looking after key, networks and firewall");
            let access = self.access().await?;
            let key = self.ensure_key(&access, until).await?;
            let networks = self.ensure_networks(until).await?;
            let firewall = self.ensure_firewall(until).await?;
            Ok(Ensured { access, key, networks, firewall })
        });
        ensuring.await
    }

    /// The public half of the driver's key. Files are read and programs run for it.
    async fn access(&self) -> Result<PublicKey, CallError> {
        let path = self.inner.setup.identity.clone();
        let had = tokio::task::spawn_blocking(move || ensure_identity(&path)).await;
        let here = |why: String, hint: String| CallError::Here { why, hint };
        let had = had.map_err(|error| here(error.to_string(), "run again".into()))?;
        had.map_err(|error| here(crate::ssh::chain(&error), error.hint()))
    }

    /// One key is there once, whoever put it there: the API takes none twice.
    async fn ensure_key(&self, access: &PublicKey, until: Instant) -> Result<u64, CallError> {
        let site = &self.inner.setup.site;
        let blob = |text: &str| text.split_whitespace().nth(1).map(str::to_owned);
        let ours = blob(access.as_str());
        let digest = Sha256::digest(access.as_str().as_bytes());
        let short = digest[..4].iter().fold(String::new(), |text, byte| text + &format!("{byte:02x}"));
        let sought = Sought {
            list: "ssh_keys",
            one: "ssh_key",
            query: String::new(),
            is_it: &|key| ours.is_some() && blob(&key.public_key) == ours,
            body: json!({
                "name": format!("orch-{site}-{short}"),
                "public_key": access.as_str(),
                "labels": { SITE: site.to_string() },
            }),
        };
        Ok(self.had(&sought, until).await?.id)
    }

    /// Finds something or makes it. Where the answer is lost, or somebody else was quicker, it is looked for again.
    pub(super) async fn had(&self, sought: &Sought<'_>, until: Instant) -> Result<Thing, CallError> {
        let Sought { list, one, query, is_it, body } = sought;
        let caller = &self.inner.caller;
        let mut attempt = 0;
        loop {
            let path = format!("/{list}");
            let listed: Vec<Thing> = caller.list(&path, list, query, until).await?;
            if let Some(found) = listed.into_iter().find(|thing| is_it(thing)) {
                return Ok(found);
            }
            match caller.post::<Json>(&path, body, until).await {
                Ok(answer) => return one_of(&format!("POST {path}"), one, &answer),
                Err(error) if attempt + 1 < caller.pace.tries && is_worth_a_look(&error) => {
                    sleep(caller.pace.pause(attempt)).await;
                    attempt += 1;
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Whether labels are those of a thing that our site made.
    pub(super) fn is_ours(&self, labels: &Labels) -> bool {
        labels.get(SITE).is_some_and(|site| site == self.inner.setup.site.as_str())
    }
}

fn is_worth_a_look(error: &CallError) -> bool {
    error.may_be_done() || error.code() == Some("uniqueness_error")
}

/// The one thing in an answer.
pub(super) fn one_of(what: &str, one: &str, answer: &Json) -> Result<Thing, CallError> {
    let listed = json!({ one: [answer.get(one)] });
    let mut things: Vec<Thing> = list_of(what, one, &listed)?;
    things.pop().ok_or_else(|| CallError::Odd(format!("{what}: an answer without `{one}`")))
}
