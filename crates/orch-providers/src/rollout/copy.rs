//! What a node lacks of a closure, as one stream: from the store here into the store there.

use std::io;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use orch_run::Progress;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

use crate::heard::Heard;
use crate::push::tail;

/// How much is taken at once.
const BITE: usize = 256 << 10;
/// After how many bytes somebody is told.
const TOLD: u64 = 8 << 20;

/// A stream that is about to flow.
pub(super) struct Stream<'s> {
    /// Writes the paths.
    pub(super) export: Command,
    /// Has them read on the node.
    pub(super) receive: Command,
    /// About how many bytes there are.
    pub(super) of: u64,
    /// Whom to tell.
    pub(super) progress: &'s Progress,
}

/// Why it did not flow, and the last lines of what tells more.
type Dry = (String, Vec<String>);

impl Stream<'_> {
    /// Has it flow to its end, within a limit. What ends early is not taken by the node.
    pub(super) async fn flow(mut self, limit: Duration) -> Result<(), Dry> {
        self.progress.say(&format!("copying {}", amount(self.of)));
        let (mut export, mut receive) = self
            .begin()
            .map_err(|error| (format!("what copies its system cannot be run here: {error}"), Vec::new()))?;
        let streams = (export.stdout.take(), receive.stdin.take());
        let (of_export, of_receive) = (export.stderr.take(), receive.stderr.take());
        let answer = receive.stdout.take();
        let all = async {
            let (_, here, there, _) = tokio::join!(
                self.pump(streams),
                Heard::all_of(of_export),
                Heard::all_of(of_receive),
                Heard::all_of(answer),
            );
            (export.wait().await, here, receive.wait().await, there)
        };
        let late = |_| (format!("copying its system took longer than {limit:?}"), Vec::new());
        let (sent, here, received, there) = tokio::time::timeout(limit, all).await.map_err(late)?;
        // Who cannot write any more because the reader ended has the lesser word.
        check(&received, "the node did not take its system", &there)?;
        check(&sent, "the store here did not give its system", &here)
    }

    fn begin(&mut self) -> io::Result<(Child, Child)> {
        let export = self.export.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let export = export.process_group(0).kill_on_drop(true).spawn()?;
        let receive = self.receive.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        Ok((export, receive.kill_on_drop(true).spawn()?))
    }

    /// Carries bytes from one to the other. Where that fails, how both ended tells why.
    async fn pump(&self, (from, into): (Option<ChildStdout>, Option<ChildStdin>)) -> Option<()> {
        let (mut from, mut into) = (from?, into?);
        let (mut bite, mut carried, mut told) = (vec![0; BITE], 0, 0);
        while let Ok(length @ 1..) = from.read(&mut bite).await {
            into.write_all(&bite[..length]).await.ok()?;
            carried += u64::try_from(length).unwrap_or_default();
            if carried - told >= TOLD {
                told = carried;
                self.progress.say(&format!(
                    "copying {} of {}",
                    amount(carried.min(self.of)),
                    amount(self.of)
                ));
            }
        }
        into.shutdown().await.ok()
    }
}

fn check(ended: &io::Result<ExitStatus>, what: &str, said: &Heard) -> Result<(), Dry> {
    let evidence = tail(&said.bytes);
    let last = evidence.last().cloned().unwrap_or_else(|| "it said nothing".into());
    match ended {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err((format!("{what} ({status}): {last}"), evidence)),
        Err(error) => Err((format!("{what}: {error}"), evidence)),
    }
}

/// A number of bytes, for people.
pub(super) fn amount(bytes: u64) -> String {
    match bytes {
        0..1_000_000 => format!("{} kB", bytes.div_ceil(1000)),
        1_000_000..10_000_000_000 => format!("{} MB", bytes / 1_000_000),
        _ => format!("{} GB", bytes / 1_000_000_000),
    }
}
