//! `orch secrets`: what there is, who can read it, and the way to change it.

use std::collections::BTreeMap;
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use orch_model::{Identity, Scope, parse};
use orch_run::treasury::{Reads, audit};
use orch_run::{ExitCode, SiteTreasury, load};
use orch_secrets::{Env, Identities, Vault};
use serde_json::json;
use uuid::Uuid;

use crate::args::{Cli, Readers, SecretsArgs};
use crate::failure::Failure;
use crate::output::{self, Output};
use crate::runtime::block_on;
use crate::scene::{Scene, absolute};
use crate::site;

/// The program that files are edited with.
const SOPS: &str = "sops";

pub(crate) fn run(cli: &Cli, what: &SecretsArgs, output: &Output) -> Result<ExitCode, Failure> {
    let root = absolute(&site::root(cli)?);
    let vault = Vault::new(&root, Identities::of_process());
    match what {
        SecretsArgs::Check(readers) => check(cli, &vault, readers, output),
        SecretsArgs::Recipients(readers) => recipients(cli, &vault, readers, output),
        SecretsArgs::Edit { file } => {
            make_folder_of(&root, file)?;
            // It writes the clear text for the editor to a file.
            let memory = Memory::make()?;
            alone(vault, || sops(&root, &["edit", "--", file], memory.as_ref()))
        }
        SecretsArgs::Rotate { files } => {
            let all = if files.is_empty() { vault.files()? } else { files.clone() };
            let code = alone(vault, || {
                for file in &all {
                    output::note(&format!("rotating {file}"));
                    let code = sops(&root, &["rotate", "--in-place", "--", file], None)?;
                    if code != ExitCode::Done {
                        return Ok(code);
                    }
                }
                Ok(ExitCode::Done)
            })?;
            if code != ExitCode::Done {
                return Ok(code);
            }
            output.answer(&rotated(all.len()), &json!({ "rotated": all }));
            Ok(ExitCode::Done)
        }
    }
}

fn check(cli: &Cli, vault: &Vault, readers: &Readers, output: &Output) -> Result<ExitCode, Failure> {
    let sources = load::site(vault.root())?;
    let catalog = parse(&sources, Scope::Site)?;
    output::warn(catalog.warnings());
    let nodes = nodes(cli, readers)?;
    let audit = audit(vault, &catalog.mentions(), &nodes, &Env::of_process());
    output.answer(&audit, &audit);
    Ok(if audit.findings.is_empty() { ExitCode::Done } else { ExitCode::Failed })
}

fn recipients(cli: &Cli, vault: &Vault, readers: &Readers, output: &Output) -> Result<ExitCode, Failure> {
    let nodes = nodes(cli, readers)?;
    let named: BTreeMap<&str, &Identity> =
        nodes.iter().map(|node| (node.recipient.as_str(), &node.node)).collect();
    let (mut text, mut documents, mut is_whole) = (String::new(), Vec::new(), true);
    for file in vault.files()? {
        let sops = vault.file(&file);
        let sops = match sops.as_ref() {
            Ok(sops) => sops,
            Err(error) => {
                output::note(&format!("warning: {error}\nhint: {}\n", error.hint()));
                is_whole = false;
                continue;
            }
        };
        let recipients = sops.recipients();
        text += &format!("{file}\n");
        if recipients.groups.len() > 1 {
            text += &format!("  needs {} of {} groups\n", recipients.threshold, recipients.groups.len());
        }
        let mut readers = Vec::new();
        for reader in recipients.iter() {
            let is_you = vault.keyring().is_for(reader);
            let node = named.get(reader.as_str());
            let who = match node {
                Some(node) => format!("  node {node}"),
                None if is_you => "  you".to_owned(),
                None => String::new(),
            };
            text += &format!("  {reader}{who}\n");
            readers.push(json!({ "recipient": reader.as_str(), "you": is_you, "node": node }));
        }
        documents.push(json!({ "file": file, "threshold": recipients.threshold, "recipients": readers }));
    }
    if text.is_empty() {
        text.push_str("there is no sops file below `secrets/`");
    }
    output.answer(&text, &documents);
    Ok(if is_whole { ExitCode::Done } else { ExitCode::Failed })
}

/// The nodes of a manifest that are there, where one is named, with what each needs to read itself.
fn nodes(cli: &Cli, readers: &Readers) -> Result<Vec<Reads>, Failure> {
    let Some(manifest) = readers.manifest.named() else { return Ok(Vec::new()) };
    let scene = Scene::of(cli, &manifest, &readers.placement, None)?;
    let reach = scene.reach();
    let observed = block_on(reach.during(async { Ok(reach.look().await) }))?;
    let machines = observed.hosts.values().flat_map(orch_plan::HostView::machines);
    let mut nodes = Vec::new();
    for machine in machines {
        let (Some(marks), Some(keys)) = (&machine.marks, machine.keys.known()) else { continue };
        let node = scene.fleet.nodes.iter().find(|node| marks.is_of(&scene.fleet.site, &node.identity));
        let Some(node) = node else { continue };
        let config = node.config.as_ref().filter(|config| config.role.enroll_recipient);
        let secrets =
            config.map(|config| config.role.secrets.iter().map(|secret| secret.from.clone()).collect());
        let recipient = keys.age.clone();
        nodes.push(Reads { node: node.identity.clone(), recipient, secrets: secrets.unwrap_or_default() });
    }
    Ok(nodes)
}

/// Does something while nobody else changes the files: what an editor that was open meanwhile saves would undo it.
fn alone<T>(vault: Vault, act: impl FnOnce() -> Result<T, Failure>) -> Result<T, Failure> {
    SiteTreasury::new(vault).alone(act)?
}

/// A folder in memory for this user alone, gone when dropped.
struct Memory(PathBuf);

impl Memory {
    /// One, where there is memory for files; nothing where there is none, after saying so.
    fn make() -> Result<Option<Self>, Failure> {
        let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
        let places = runtime.into_iter().chain([PathBuf::from("/dev/shm")]);
        let Some(place) = places.into_iter().find(|place| is_memory(place)) else {
            output::note(
                &"warning: there is no memory for files here, so sops writes the clear text to a disk",
            );
            return Ok(None);
        };
        let path = place.join(format!("orch-{}", Uuid::new_v4().simple()));
        let made = DirBuilder::new().mode(0o700).create(&path);
        made.map_err(|source| Failure::Unwritten { path: path.clone(), source })?;
        Ok(Some(Self(path)))
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // What an editor left there is gone with it.
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn is_memory(folder: &Path) -> bool {
    const TMPFS: i64 = 0x0102_1994;
    const RAMFS: i64 = 0x8584_58f6;
    rustix::fs::statfs(folder).is_ok_and(|about| matches!(about.f_type, TMPFS | RAMFS))
}

/// Runs the user's own `sops`, which knows every kind of key and keeps comments.
fn sops(root: &Path, args: &[&str], memory: Option<&Memory>) -> Result<ExitCode, Failure> {
    let mut command = Command::new(SOPS);
    command.args(args).current_dir(root).envs(memory.map(|memory| ("TMPDIR", &memory.0)));
    // Standard output is for the answer.
    match command.stdout(io::stderr()).status() {
        // It says itself what is wrong; 200 is an editor that changed nothing.
        Ok(status) if status.success() || status.code() == Some(200) => Ok(ExitCode::Done),
        Ok(_) => Ok(ExitCode::Failed),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Err(Failure::NoSops),
        Err(source) => Err(Failure::NotStarted { program: SOPS.into(), source }),
    }
}

fn rotated(files: usize) -> String {
    match files {
        0 => "there is no sops file below `secrets/`".into(),
        1 => "1 file has a new key".into(),
        files => format!("{files} files have a new key"),
    }
}

/// `sops` does not make folders, and says so only when the text is written and lost.
fn make_folder_of(root: &Path, file: &str) -> Result<(), Failure> {
    let Some(folder) = root.join(file).parent().map(Path::to_owned) else { return Ok(()) };
    fs::create_dir_all(&folder).map_err(|source| Failure::Unwritten { path: folder, source })
}
