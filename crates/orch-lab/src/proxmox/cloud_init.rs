//! What a guest is given at its first start: from the options of its configuration, or from an image that was uploaded.

use std::collections::BTreeMap;

use serde_json::{Value as Json, json};
use sha2::{Digest, Sha256};

use super::call::Call;
use super::drive::{Stock, place};
use super::guest::{Guest, Kind, hex};
use super::iso::Iso;
use super::lab::Lab;
use super::reply::{Outcome, Reply};
use super::state::State;
use crate::exchange::decode;
use crate::machines::FirstBoot;

pub(super) fn show(call: &Call, state: &mut State) -> Outcome {
    let vmid = call.guest_id(state, &["VM.Audit"])?;
    let guest = call.guest(state, vmid)?;
    let ours = ["ciuser", "cipassword", "sshkeys", "cicustom", "nameserver", "searchdomain", "ipconfig0"];
    let known = guest.config.iter().filter(|(key, _)| ours.contains(&key.as_str()));
    let shown =
        known.map(|(key, value)| json!({ "key": key, "value": guest.show_value(key, value.clone()) }));
    Ok(shown.collect::<Json>().into())
}

/// The image is made anew at every start, so that there is nothing to do.
pub(super) fn regenerate(call: &Call, state: &mut State) -> Outcome {
    call.guest_id(state, &["VM.Config.Cloudinit"])?;
    Ok(Reply::null())
}

/// What a guest is given.
pub(super) fn first_boot(
    lab: &Lab,
    stock: &Stock<'_>,
    vmid: u32,
    guest: &Guest,
) -> Result<FirstBoot, String> {
    if guest.kind == Kind::Lxc {
        let keys = guest.keys.iter().filter(|key| !key.trim().is_empty()).cloned().collect();
        return Ok(bare(vmid, guest, keys));
    }
    for (_, drive) in guest.drives() {
        if drive.is_cloud_init() {
            return from_options(lab, vmid, guest);
        }
        if drive.is_cdrom() && drive.source.contains(":iso/") {
            // A medium that is only known by its name is an empty one.
            let image = read(lab, drive.source)
                .or_else(|why| stock.look(drive.source).map(|_| Vec::new()).ok_or(why))?;
            let seed = Iso::read(&image).filter(|iso| iso.label.eq_ignore_ascii_case("cidata"));
            if let Some(seed) = seed {
                return Ok(from_seed(vmid, guest, seed));
            }
        }
    }
    Ok(bare(vmid, guest, Vec::new()))
}

/// Nothing but a name. The life is the one of the guest itself.
fn bare(vmid: u32, guest: &Guest, keys: Vec<String>) -> FirstBoot {
    let instance = format!("{vmid}-{}", guest.made);
    FirstBoot {
        instance,
        hostname: hostname(vmid, guest),
        vendor_data: Vec::new(),
        user_data: Vec::new(),
        user: None,
        keys,
    }
}

fn hostname(vmid: u32, guest: &Guest) -> String {
    guest.name(vmid).replace(' ', "")
}

fn from_seed(vmid: u32, guest: &Guest, mut seed: Iso) -> FirstBoot {
    let user_data = seed.files.remove("user-data").unwrap_or_default();
    let meta = meta(&seed.files.remove("meta-data").unwrap_or_default());
    let network = seed.files.remove("network-config").unwrap_or_default();
    let instance = meta.get("instance-id").cloned().unwrap_or_else(|| derived(&user_data, &network));
    let named = meta.get("local-hostname").or_else(|| meta.get("hostname")).cloned();
    let hostname = named.unwrap_or_else(|| hostname(vmid, guest));
    FirstBoot { instance, hostname, vendor_data: Vec::new(), user_data, user: None, keys: Vec::new() }
}

fn from_options(lab: &Lab, vmid: u32, guest: &Guest) -> Result<FirstBoot, String> {
    let option = |key: &str| guest.config.get(key).cloned();
    let custom = option("cicustom").unwrap_or_default();
    let custom = |part: &str| {
        custom
            .split(',')
            .filter_map(|pair| pair.split_once('='))
            .find(|(name, _)| *name == part)
            .map(|(_, volume)| volume.to_owned())
    };
    let file = |part: &str| custom(part).map(|volume| read(lab, &volume)).transpose();
    let network = file("network")?.unwrap_or_else(|| option("ipconfig0").unwrap_or_default().into_bytes());
    let meta_file = file("meta")?;
    let hostname = hostname(vmid, guest);
    // A file of one's own takes the place of everything that the options would have said.
    let mut first = if let Some(user_data) = file("user")? {
        FirstBoot {
            instance: String::new(),
            hostname,
            vendor_data: Vec::new(),
            user_data,
            user: None,
            keys: Vec::new(),
        }
    } else {
        let keys = decode(&option("sshkeys").unwrap_or_default());
        let keys = keys.lines().filter(|key| !key.trim().is_empty()).map(str::to_owned).collect();
        FirstBoot {
            instance: String::new(),
            hostname,
            vendor_data: Vec::new(),
            user_data: Vec::new(),
            user: option("ciuser"),
            keys,
        }
    };
    let said = format!("{:?}\n{:?}\n{}\n", first.user, first.keys, first.hostname);
    let all = [said.as_bytes(), &first.user_data].concat();
    let given = meta_file.and_then(|file| meta(&file).remove("instance-id"));
    first.instance = given.unwrap_or_else(|| derived(&all, &network));
    Ok(first)
}

/// The real one names a life by a digest of what is given to it.
fn derived(user_data: &[u8], network: &[u8]) -> String {
    let mut digest = hex(&Sha256::digest([user_data, network].concat()));
    digest.truncate(40);
    digest
}

/// The lines `name: value` of meta-data, or the fields where it is JSON.
fn meta(bytes: &[u8]) -> BTreeMap<String, String> {
    if let Ok(fields) = serde_json::from_slice::<BTreeMap<String, Json>>(bytes) {
        let texts = fields.into_iter().filter_map(|(name, value)| Some((name, value.as_str()?.to_owned())));
        return texts.collect();
    }
    let text = String::from_utf8_lossy(bytes);
    let pairs = text.lines().filter_map(|line| line.split_once(':'));
    pairs
        .map(|(name, value)| (name.trim().to_owned(), value.trim().trim_matches(['"', '\'']).to_owned()))
        .collect()
}

/// The bytes of a file on a storage.
fn read(lab: &Lab, volume: &str) -> Result<Vec<u8>, String> {
    let missing = || format!("volume '{volume}' does not exist");
    if let Some(bytes) = lab.files.lock().expect("nobody panics while holding this").get(volume) {
        return Ok(bytes.clone());
    }
    let (storage, rest) = volume.split_once(':').ok_or_else(missing)?;
    let (kind, name) = rest.split_once('/').ok_or_else(missing)?;
    if name.starts_with('.') || name.contains('/') {
        return Err(missing());
    }
    let storage = lab.settings.storage(storage).filter(|storage| storage.holds(kind)).ok_or_else(missing)?;
    let file = storage.folder.as_ref().ok_or_else(missing)?.join(place(kind)).join(name);
    std::fs::read(file).map_err(|_| missing())
}
