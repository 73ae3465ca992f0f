//! Connections that outlive the run that made them, for the next one: making one costs more than most of what is said
//! over it.
//!
//! A kept connection is found by a name that is made of everything that it was made with, host keys and all: whoever
//! finds one could have made the same, and would have been let in by the same key.

use std::fs::{File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::time::Instant;

use super::folder::{self, LONGEST_SOCKET};
use super::settings::SshSettings;
use super::way::{self, DIGEST, Hop};

/// How long to wait before a lock is tried again.
const PAUSE: Duration = Duration::from_millis(5);

/// The folder of kept connections.
#[derive(Debug, Clone)]
pub(super) struct Kept {
    folder: PathBuf,
}

impl Kept {
    /// The folder, where connections are to be kept and its path is short enough for sockets.
    pub(super) fn of(settings: &SshSettings) -> io::Result<Option<Self>> {
        let folder = settings.folder.join("kept");
        let fits = folder.as_os_str().len() + 1 + DIGEST <= LONGEST_SOCKET;
        if settings.keep.is_none() || !fits {
            return Ok(None);
        }
        folder::make_private(&folder)?;
        Ok(Some(Self { folder }))
    }

    /// The socket of the connection to the last of these hops.
    pub(super) fn socket(&self, hops: &[Hop]) -> PathBuf {
        self.folder.join(way::digest(hops))
    }
}

/// The right to make the connection behind a socket, for one at a time; nothing where the time is over. Sockets come and
/// go, and locks that are removed while others wait for them are none: so some share one, and there are never many.
pub(super) async fn lock(socket: &Path, within: Duration) -> io::Result<Option<File>> {
    let deadline = Instant::now() + within;
    let name = socket.file_name().unwrap_or_default().to_string_lossy();
    let file =
        folder::lockable(&socket.with_file_name(format!("lock-{}", name.get(..3).unwrap_or_default())))?;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(Some(file)),
            Err(TryLockError::WouldBlock) if Instant::now() >= deadline => return Ok(None),
            Err(TryLockError::WouldBlock) => tokio::time::sleep(PAUSE).await,
            Err(TryLockError::Error(error)) => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use orch_model::PublicKey;

    use super::*;

    fn hop() -> Hop {
        Hop {
            alias: "web".into(),
            address: "10.0.0.2".into(),
            port: 22,
            user: "ops".into(),
            host_keys: vec!["ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIE".parse().expect("it is a key")],
            proxy: None,
            generation: "1".into(),
        }
    }

    #[test]
    fn a_connection_is_found_again_only_by_what_it_was_made_with() {
        let kept = Kept { folder: "/k".into() };
        let other: PublicKey = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIF".parse().expect("it is a key");
        let same = kept.socket(&[hop()]);
        assert_eq!(same, kept.socket(&[hop()]));
        for hops in [
            vec![Hop { generation: "2".into(), ..hop() }],
            vec![Hop { port: 23, ..hop() }],
            vec![Hop { user: "root".into(), ..hop() }],
            vec![Hop { proxy: Some(vec!["nc".into()]), ..hop() }],
            vec![hop(), hop()],
        ] {
            assert_ne!(same, kept.socket(&hops));
        }
        // One whose life is known is told from others by that, and shows another key once; else its key is all there is.
        let ageless =
            |key: &PublicKey| Hop { host_keys: vec![key.clone()], generation: String::new(), ..hop() };
        assert_eq!(same, kept.socket(&[Hop { host_keys: vec![other.clone()], ..hop() }]));
        assert_ne!(kept.socket(&[ageless(&other)]), kept.socket(&[ageless(&hop().host_keys[0])]));
    }
}
