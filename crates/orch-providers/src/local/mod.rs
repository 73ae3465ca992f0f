//! This very computer as a host: each node is a set of namespaces with a root of its own.
//!
//! A machine is a folder of the state directory (`record.rs`), and while it runs the processes in its namespaces. Nothing
//! else on this computer belongs to it, but for its control groups. Everything that must happen in other namespaces
//! happens in processes of its own, which `orch` starts from itself ([`helper`]).

mod advice;
mod archive;
mod boot;
mod child;
mod direct;
mod disk;
mod ear;
mod enter;
mod image;
mod inside;
mod limits;
mod machine;
mod make;
mod net;
mod power;
mod preflight;
mod process;
mod provider;
mod record;
mod refresh;
mod seed;
mod socket;
mod store;
mod way;

use std::ffi::OsString;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use boot::Trouble;
pub use provider::{Local, Setup};
use record::Folder;
pub use way::LocalWay;

use crate::ssh::chain;

/// The word that the command line of `orch` has for what this provider runs in processes of its own.
pub const HELPER: &str = "__local";

/// Does one piece of work that needs a process of its own: starting a machine, entering one, connecting to one.
pub fn helper(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let args: Vec<OsString> = args.into_iter().collect();
    match work(&args) {
        Ok(code) => code,
        Err(trouble) => {
            // Whoever starts a machine waits for a word, and takes this one for what went wrong.
            let heard = [boot::BOOT, boot::UNSHARE, boot::INIT, boot::PROBE, boot::PROBE_INSIDE];
            if args.first().is_some_and(|word| heard.iter().any(|heard| word == heard)) {
                let _ = writeln!(io::stdout(), "{}", trouble.line());
            }
            let _ = writeln!(io::stderr(), "{}", trouble.words);
            ExitCode::FAILURE
        }
    }
}

fn work(args: &[OsString]) -> Result<ExitCode, Trouble> {
    let done = |result: Result<(), boot::BootError>| {
        result.map(|()| ExitCode::SUCCESS).map_err(|error| Trouble::of(&error))
    };
    let told = |result: Result<(), enter::EnterError>| {
        result.map(|()| ExitCode::SUCCESS).map_err(|error| Trouble::in_words(chain(&error)))
    };
    let usage = || Trouble::in_words("this is for orch itself");
    let [word, folder, rest @ ..] = args else { return Err(usage()) };
    let folder = Folder::at(PathBuf::from(folder));
    let word = word.to_str().ok_or_else(usage)?;
    let option = |name: &str| rest.iter().find_map(|arg| arg.to_str()?.strip_prefix(name)?.strip_prefix('='));
    let standing = || option("--standing").and_then(machine::Standing::named).ok_or_else(usage);
    match word {
        boot::BOOT => done(boot::boot(&folder)),
        boot::UNSHARE => {
            let uplink = option("--uplink").map(PathBuf::from);
            done(boot::unshare(&boot::Order { folder, uplink, standing: standing()? }))
        }
        boot::INIT => {
            let uplink = Path::new(option("--uplink").ok_or_else(usage)?);
            boot::init(&folder, uplink, standing()?).map_err(|error| Trouble::of(&error))
        }
        boot::DISCARD => done(boot::discard_as_them(folder.path())),
        boot::PROBE => done(boot::probe(machine::is_root())),
        boot::PROBE_INSIDE => done(boot::probe_inside()),
        refresh::REFRESH => refresh::refresh_from_inside(&folder)
            .map(|()| ExitCode::SUCCESS)
            .map_err(|error| Trouble::in_words(chain(&error))),
        enter::ENTER => enter::enter(&folder, rest).map_err(|error| Trouble::in_words(chain(&error))),
        enter::CONNECT => {
            let port = rest.first().and_then(|port| port.to_str()?.parse().ok()).ok_or_else(usage)?;
            told(enter::connect(&folder, port))
        }
        ear::LISTEN => told(ear::listen(&folder)),
        socket::DIAL | socket::LISTEN_INSIDE => {
            let port = rest.first().and_then(|port| port.to_str()?.parse().ok()).ok_or_else(usage)?;
            told(socket::hand_over(word, &folder, port))
        }
        enter::KNOCK => {
            let number = |place: usize| rest.get(place).and_then(|word| word.to_str()?.parse::<u64>().ok());
            let port = number(0).and_then(|port| u16::try_from(port).ok()).ok_or_else(usage)?;
            let within = Duration::from_millis(number(1).ok_or_else(usage)?);
            told(enter::knock(&folder, port, within))
        }
        _ => Err(usage()),
    }
}
