//! What a machine is given when it first starts: a small disc, or where the host takes snippets one of those. Both bear the
//! machine's mark in their names, so that whoever finds one knows whose it was.

use orch_model::{Digest, PublicKey};
use orch_plan::MachineSpec;
use orch_run::Order;
use serde_json::json;
use uuid::Uuid;
use zeroize::Zeroizing;

use super::iso::{File, disc};
use super::maker::Maker;
use super::read::Fields;
use super::setup::Snippets;
use super::trouble::Trouble;
use crate::api::encode;
use crate::cloud::{FirstBoot, FirstKey, user_data};

/// How many seconds the removal of a small file may take before it becomes a task to wait for.
const DELAY: u32 = 5;

/// What a machine is given when it first starts, in its place.
pub(super) struct Seed {
    /// The host key that it will show.
    pub(super) key: PublicKey,
    /// Where it is.
    pub(super) place: Place,
}

/// Where it is.
pub(super) enum Place {
    /// A disc: its volume.
    Disc(String),
    /// A snippet: its volume.
    Snippet(String),
}

impl Place {
    /// Its volume.
    pub(super) fn volume(&self) -> &str {
        match self {
            Self::Disc(volume) | Self::Snippet(volume) => volume,
        }
    }
}

impl Maker {
    /// Puts what a machine is given in its place, under a name that nobody else uses: another driver may be giving something else
    /// to the same half-made machine.
    pub(super) async fn seed(&self, order: &Order, spec: &MachineSpec) -> Result<Seed, Trouble> {
        let key = FirstKey::generate();
        let text = self.user_data(order, spec, &key).await?;
        let place = match self.snippets() {
            Some((writer, storage)) => {
                let file = snippet_name(order.uuid, &key.public);
                writer.write(storage, &file, &text).await.map_err(|why| unwritten(storage, &why))?;
                Place::Snippet(format!("{storage}:snippets/{file}"))
            }
            None => {
                Place::Disc(self.put_disc(order, spec, &text, &disc_name(order.uuid, &key.public)).await?)
            }
        };
        Ok(Seed { key: key.public, place })
    }

    async fn user_data(
        &self,
        order: &Order,
        spec: &MachineSpec,
        key: &FirstKey,
    ) -> Result<Zeroizing<String>, Trouble> {
        let program = self.setup.proxmox.node_program.as_deref();
        let enrolment = match (&order.enrolment, program) {
            (None, _) => None,
            (Some(enrolment), Some(program)) => Some((enrolment, program)),
            (Some(_), None) => {
                return Err(Trouble::Refused(format!(
                    "`{}` is to fetch its configuration itself, and nothing says where its image has the program for that: name it as `node_program` in the host's file",
                    order.identity.node
                )));
            }
        };
        let access = self.access().await?;
        let given = FirstBoot {
            hostname: order.identity.node.as_str(),
            user: &self.setup.user,
            access: &access,
            host_key: key,
            enrolment,
        };
        user_data(&given).map_err(|error| Trouble::Refused(format!("`{}`: {error}", spec.name)))
    }

    async fn put_disc(
        &self,
        order: &Order,
        spec: &MachineSpec,
        text: &str,
        file: &str,
    ) -> Result<String, Trouble> {
        let meta =
            json!({ "instance-id": order.uuid, "local-hostname": order.identity.node.as_str() }).to_string();
        // Names of cards are not known yet, and their addresses only where the machine is there already.
        let card = |name: &str| json!({ "match": { "name": name }, "dhcp4": true });
        let cards =
            json!({ "version": 2, "ethernets": { "predictable": card("en*"), "classic": card("eth*") } });
        let network = cards.to_string();
        let bytes = disc(&[
            File { short: "USERDATA", name: "user-data", bytes: text.as_bytes() },
            File { short: "METADATA", name: "meta-data", bytes: meta.as_bytes() },
            File { short: "NETWORK", name: "network-config", bytes: network.as_bytes() },
        ]);
        let storage = self.disc_store().await?;
        let path = format!("/nodes/{}/storage/{}/upload", encode(&self.setup.proxmox.node), encode(storage));
        let mut tries = self.tries();
        loop {
            let uploaded = async {
                let answer = self.caller.upload(&path, file, &bytes).await?;
                self.done(&answer, &format!("uploading the first-boot disc of `{}`", spec.name)).await
            };
            match uploaded.await {
                Ok(()) => return Ok(format!("{storage}:iso/{file}")),
                // The same bytes over the same name do no harm.
                Err(trouble) => tries.again(trouble).await?,
            }
        }
    }

    /// The storage that takes discs: `local` where that does, else the first that is there.
    pub(super) async fn disc_store(&self) -> Result<&str, Trouble> {
        let found = self.disc_store.get_or_try_init(|| async {
            let stores = self.disc_stores().await?;
            let local = stores.iter().find(|store| *store == "local").or_else(|| stores.first());
            local.cloned().ok_or_else(|| {
                Trouble::Refused(
                    "no storage takes discs for first boots: allow the content `iso` on one (`pvesm set local --content iso,...`), or name a storage for `snippets`".into(),
                )
            })
        });
        found.await.map(String::as_str)
    }

    /// Every storage of the node that takes discs.
    pub(super) async fn disc_stores(&self) -> Result<Vec<String>, Trouble> {
        let path = format!("/nodes/{}/storage?content=iso&enabled=1", encode(&self.setup.proxmox.node));
        let answer = self.caller.get(&path).await?;
        let entries = Fields::each("GET /nodes/storage", &answer)?;
        let usable = entries.iter().filter(|entry| entry.raw("active").is_none() || entry.is_set("active"));
        usable.map(|entry| entry.needs_text("storage")).collect()
    }

    /// Removes everything that a machine was ever given; what is gone is gone.
    pub(super) async fn remove_seed(&self, uuid: Uuid) -> Result<(), Trouble> {
        self.remove_seed_but(uuid, None).await
    }

    /// The same but for what it has.
    pub(super) async fn remove_seed_but(&self, uuid: Uuid, kept: Option<&str>) -> Result<(), Trouble> {
        let (storage, kind) = match self.snippets() {
            Some((_, storage)) => (storage, "snippets"),
            None => match self.disc_store().await {
                Ok(storage) => (storage, "iso"),
                // Where there is no place for it, there is none of it.
                Err(Trouble::Refused(_)) => return Ok(()),
                Err(trouble) => return Err(trouble),
            },
        };
        for volume in
            self.content(storage, kind).await?.into_iter().filter(|volume| uuid_in(volume) == Some(uuid))
        {
            if kept == Some(volume.as_str()) {
                continue;
            }
            let place = if kind == "iso" { Place::Disc(volume) } else { Place::Snippet(volume) };
            self.remove_place(&place).await?;
        }
        Ok(())
    }

    /// Removes one thing that a machine was given; what is gone is gone.
    pub(super) async fn remove_place(&self, place: &Place) -> Result<(), Trouble> {
        match (place, self.snippets()) {
            (Place::Snippet(volume), Some((writer, storage))) => {
                let file = volume.rsplit('/').next().unwrap_or_default();
                writer.remove(storage, file).await.map_err(|why| unwritten(storage, &why))
            }
            (Place::Disc(volume) | Place::Snippet(volume), _) => self.remove_volume(volume).await,
        }
    }

    /// Removes a volume; what is gone is gone.
    pub(super) async fn remove_volume(&self, volume: &str) -> Result<(), Trouble> {
        let storage = volume.split(':').next().unwrap_or_default();
        let node = encode(&self.setup.proxmox.node);
        let path =
            format!("/nodes/{node}/storage/{}/content/{}?delay={DELAY}", encode(storage), encode(volume));
        let mut tries = self.tries();
        loop {
            let removed = async {
                let answer = self.caller.delete(&path).await?;
                self.done(&answer, "removing a first-boot disc").await
            };
            match removed.await {
                Err(trouble) if is_missing(&trouble) => return Ok(()),
                Ok(()) => return Ok(()),
                Err(trouble) => tries.again(trouble).await?,
            }
        }
    }

    /// Who writes snippets, and where; nothing where discs are used.
    pub(super) fn snippets(&self) -> Option<(&dyn Snippets, &str)> {
        Some((self.setup.snippets.as_deref()?, self.setup.proxmox.snippets.as_deref()?))
    }
}

/// Whether a volume was not there.
fn is_missing(trouble: &Trouble) -> bool {
    let words = trouble.to_string();
    words.contains("does not exist") || words.contains("No such file") || words.contains("no such volume")
}

fn unwritten(storage: &str, why: &str) -> Trouble {
    let what = format!("snippets on `{storage}` cannot be written: {}", orch_model::printable(why));
    Trouble::Here { what, hint: "see whether the host can be reached by SSH as its file says".into() }
}

/// The name of the disc of a machine that is to show this key.
pub(super) fn disc_name(uuid: Uuid, key: &PublicKey) -> String {
    format!("orch-{uuid}-{}.iso", tell_apart(key))
}

/// The name of the snippet of a machine that is to show this key.
pub(super) fn snippet_name(uuid: Uuid, key: &PublicKey) -> String {
    format!("orch-{uuid}-{}.yaml", tell_apart(key))
}

fn tell_apart(key: &PublicKey) -> String {
    Digest::of_bytes(key.as_str().as_bytes()).short()
}

/// The mark in the name of a volume, where it is one of ours.
pub(super) fn uuid_in(volume: &str) -> Option<Uuid> {
    let file = volume.rsplit('/').next()?.strip_prefix("orch-")?;
    // What was cut off while it was written has one word more.
    let file = file.strip_suffix(".draft").unwrap_or(file);
    let name = file.strip_suffix(".iso").or_else(|| file.strip_suffix(".yaml"))?;
    let (uuid, key) = name.rsplit_once('-')?;
    let is_short = key.len() == 8 && key.bytes().all(|byte| byte.is_ascii_hexdigit());
    uuid.parse().ok().filter(|_| is_short)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_made_for_a_machine_bears_its_mark_in_its_name() {
        let (uuid, key) = (Uuid::from_u128(7), FirstKey::generate().public);
        assert_eq!(uuid_in(&format!("local:iso/{}", disc_name(uuid, &key))), Some(uuid));
        assert_eq!(uuid_in(&format!("local:snippets/{}", snippet_name(uuid, &key))), Some(uuid));
        assert_eq!(uuid_in(&format!("local:snippets/{}.draft", snippet_name(uuid, &key))), Some(uuid));
        assert_ne!(disc_name(uuid, &key), disc_name(uuid, &FirstKey::generate().public));
        for other in
            ["local:iso/debian.iso", "local:iso/orch-x.iso", "local:iso/orch-x-12345678.iso", "orch-", ""]
        {
            assert_eq!(uuid_in(other), None, "{other}");
        }
    }
}
