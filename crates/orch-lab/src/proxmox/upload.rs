//! Files that are put on a storage: sent with the call, or fetched from elsewhere.

use std::path::PathBuf;
use std::sync::Arc;

use sha2::{Digest, Sha256, Sha384, Sha512};

use super::call::Call;
use super::content;
use super::drive::{no_space, place};
use super::guest::hex;
use super::lab::Lab;
use super::reply::{Outcome, Refusal};
use super::settings::ProxmoxStorage;
use super::state::{State, Volume};

/// The storage and the full name of a file that is to come.
fn target<'a>(call: &'a Call, state: &State) -> Result<(&'a ProxmoxStorage, String), Refusal> {
    let storage = content::storage(call, state, &["Datastore.AllocateTemplate"])?;
    let (content, file) = (call.params.need("content")?, call.params.need("filename")?);
    let endings: &[&str] = match content {
        "iso" => &[".iso", ".img"],
        "vztmpl" => &[".tar.gz", ".tar.xz", ".tar.zst"],
        "import" => &[".qcow2", ".raw", ".vmdk", ".ova"],
        _ => {
            let why =
                format!("value '{content}' does not have a value in the enumeration 'iso, vztmpl, import'");
            return Err(Refusal::parameter("content", why));
        }
    };
    if !storage.has_files() {
        return Err(Refusal::died(format!("can't upload to storage type '{}'", storage.kind)));
    }
    if !storage.holds(content) {
        return Err(Refusal::died(format!("storage '{}' does not support '{content}' content", storage.id)));
    }
    // Whatever is before the last slash is left out, and what remains is made harmless.
    let file = file.rsplit(['/', '\\']).next().unwrap_or_default();
    let is_harmless = |letter: char| letter.is_ascii_alphanumeric() || ".-_".contains(letter);
    let file: String = file.chars().map(|letter| if is_harmless(letter) { letter } else { '_' }).collect();
    if file.starts_with('.') || !endings.iter().any(|ending| file.to_lowercase().ends_with(ending)) {
        return Err(Refusal::parameter("filename", "wrong file extension"));
    }
    Ok((storage, format!("{}:{content}/{file}", storage.id)))
}

fn path(storage: &ProxmoxStorage, volume: &str) -> Option<PathBuf> {
    let (content, file) = volume.split_once(':')?.1.split_once('/')?;
    Some(storage.folder.as_ref()?.join(place(content)).join(file))
}

pub(super) fn upload(call: &Call, state: &mut State) -> Outcome {
    let (storage, volume) = target(call, state)?;
    let missing = || Refusal::died("missing upload data: no file was sent");
    let bytes = call.params.file.clone().ok_or_else(missing)?;
    let size = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
    let file = path(storage, &volume);
    let full =
        (state.used(&storage.id).saturating_add(size) > storage.bytes).then(|| no_space(storage, &volume));
    let wrong = mismatch(call, &bytes);
    let work = move |lab: Arc<Lab>, _| async move {
        tokio::time::sleep(lab.settings.timings.config).await;
        if let Some(why) = full.or(wrong) {
            return Err(why);
        }
        match file {
            Some(file) => put(&file, &bytes).map_err(|error| error.to_string())?,
            None => {
                lab.files.lock().expect("nobody panics while holding this").insert(volume.clone(), bytes);
            }
        }
        lab.change(|stock| {
            stock.state.volumes.insert(volume.clone(), Volume::file(&volume, size));
            Ok(())
        })
    };
    Ok(call.fork(state, "imgcopy", "", work, None).into())
}

fn put(file: &std::path::Path, bytes: &[u8]) -> std::io::Result<()> {
    if let Some(folder) = file.parent() {
        std::fs::create_dir_all(folder)?;
    }
    std::fs::write(file, bytes)
}

/// What is wrong with what came, by the digest that was sent with it.
fn mismatch(call: &Call, bytes: &[u8]) -> Option<String> {
    let wanted = call.params.get("checksum")?;
    let got = match call.params.get("checksum-algorithm")? {
        "sha256" => hex(&Sha256::digest(bytes)),
        "sha384" => hex(&Sha384::digest(bytes)),
        "sha512" => hex(&Sha512::digest(bytes)),
        _ => return None,
    };
    (got != wanted.to_lowercase()).then(|| format!("checksum mismatch: got '{got}' != expect '{wanted}'"))
}

/// Fetches a file. Nothing is reached from the lab: it is there afterwards, as large as images are.
pub(super) fn download(call: &Call, state: &mut State) -> Outcome {
    let (storage, volume) = target(call, state)?;
    let node = format!("/nodes/{}", call.lab.settings.node);
    if !call.may_any(state, &node, &["Sys.AccessNetwork"]) {
        call.need(state, "/", &["Sys.Audit", "Sys.Modify"])?;
    }
    let url = call.params.need("url")?;
    if !url.starts_with("http://") && !url.starts_with("https://") {
        return Err(Refusal::parameter("url", "value does not match the regex pattern"));
    }
    if state.volumes.contains_key(&volume) {
        let file = volume.rsplit('/').next().unwrap_or_default();
        return Err(Refusal::died(format!("refusing to override existing file '{file}'")));
    }
    let size = call.lab.settings.image_bytes;
    let full =
        (state.used(&storage.id).saturating_add(size) > storage.bytes).then(|| no_space(storage, &volume));
    let work = move |lab: Arc<Lab>, _| async move {
        tokio::time::sleep(lab.settings.timings.config).await;
        if let Some(why) = full {
            return Err(why);
        }
        lab.change(|stock| {
            stock.state.volumes.insert(volume.clone(), Volume::file(&volume, size));
            Ok(())
        })
    };
    Ok(call.fork(state, "download", "", work, None).into())
}
