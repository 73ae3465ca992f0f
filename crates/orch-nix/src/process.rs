//! A program of Nix, run to its end within a limit: in a process group of its own, and ended with all that it started
//! where nobody waits for it any longer.

use std::io;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, BufReader};
use tokio::process::{Child, Command};
use tokio::time::{Instant, MissedTickBehavior, interval, timeout_at};

/// How much of what a program answers is taken. An answer that is longer is none.
const MOST_ANSWERED: usize = 256 << 20;
/// How much of one line of its messages is kept.
const MOST_OF_A_LINE: usize = 64 << 10;
/// How often a program that runs is looked at.
const BEAT: Duration = Duration::from_millis(20);
/// How long what it left behind may hold its streams open after its end.
const GRACE: Duration = Duration::from_secs(2);

/// How a program ended, and what it answered.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) status: ExitStatus,
    pub(crate) stdout: Vec<u8>,
}

/// Runs a program to its end. `hear` is told every line of its messages; `beat` is told now and then that it still
/// runs, with its id.
pub(crate) async fn finish(
    mut command: Command,
    limit: Duration,
    mut hear: impl FnMut(&str),
    mut beat: impl FnMut(u32),
) -> io::Result<Ended> {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
    let mut group = Group::of(command.spawn()?);
    let (stdout, stderr) = (group.child.stdout.take(), group.child.stderr.take());
    let deadline = Instant::now() + limit;
    let late = |_| io::Error::new(io::ErrorKind::TimedOut, format!("it did not end within {limit:?}"));
    let mut answered = Vec::new();
    {
        let answer = read_all(stdout, &mut answered);
        let messages = read_lines(stderr, &mut hear);
        let streams = async { tokio::try_join!(answer, messages) };
        tokio::pin!(streams);
        let mut beats = interval(BEAT);
        beats.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut open = true;
        loop {
            tokio::select! {
                ended = &mut streams, if open => { ended?; open = false; }
                status = timeout_at(deadline, group.child.wait()) => {
                    status.map_err(late)??;
                    group.waited = true;
                    break;
                }
                _ = beats.tick() => if let Some(pid) = group.child.id() { beat(pid) },
            }
        }
        // What it started may live on and hold its streams open, so their end is not waited for without a limit.
        if open {
            let _ = timeout_at(Instant::now() + GRACE, streams).await;
        }
    }
    let status = group.child.wait().await?;
    Ok(Ended { status, stdout: answered })
}

/// A program with all that it starts. Whoever lets go of it before its end ends it.
struct Group {
    child: Child,
    pid: Option<Pid>,
    waited: bool,
}

impl Group {
    fn of(child: Child) -> Self {
        let pid = child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
        Self { child, pid, waited: false }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // Once it was waited for, its id may be another's.
        if let (false, Some(pid)) = (self.waited, self.pid) {
            let _ = kill_process_group(pid, Signal::KILL);
        }
    }
}

async fn read_all(stream: Option<impl AsyncRead + Unpin>, into: &mut Vec<u8>) -> io::Result<()> {
    let Some(stream) = stream else { return Ok(()) };
    stream.take(MOST_ANSWERED as u64 + 1).read_to_end(into).await?;
    if into.len() > MOST_ANSWERED {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "it answered more than is taken"));
    }
    Ok(())
}

/// Hands on line by line what a program says; of a line that is too long, its beginning.
async fn read_lines(stream: Option<impl AsyncRead + Unpin>, hear: &mut impl FnMut(&str)) -> io::Result<()> {
    let Some(stream) = stream else { return Ok(()) };
    let mut stream = BufReader::with_capacity(MOST_OF_A_LINE, stream);
    let mut line = Vec::new();
    loop {
        let there = stream.fill_buf().await?;
        if there.is_empty() {
            break;
        }
        let end = there.iter().position(|&byte| byte == b'\n');
        let part = &there[..end.unwrap_or(there.len())];
        let room = MOST_OF_A_LINE.saturating_sub(line.len());
        line.extend_from_slice(&part[..part.len().min(room)]);
        let used = end.map_or(there.len(), |end| end + 1);
        stream.consume(used);
        if end.is_some() {
            hear(&String::from_utf8_lossy(&line));
            line.clear();
        }
    }
    if !line.is_empty() {
        hear(&String::from_utf8_lossy(&line));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    async fn run(script: &str, limit: Duration) -> (io::Result<Ended>, Vec<String>) {
        let mut heard = Vec::new();
        let ended = finish(shell(script), limit, |line| heard.push(line.to_owned()), |_| {}).await;
        (ended, heard)
    }

    #[tokio::test]
    async fn what_a_program_answers_and_says_is_taken_apart() {
        let (ended, heard) =
            run("echo one >&2; head -c 200000 /dev/zero; printf two >&2; exit 3", Duration::from_mins(1))
                .await;
        let ended = ended.unwrap();
        assert_eq!((ended.status.code(), ended.stdout.len()), (Some(3), 200_000));
        assert_eq!(heard, ["one", "two"]);
    }

    #[tokio::test]
    async fn a_program_is_ended_at_its_limit_with_all_that_it_started() {
        let (ended, heard) = run("sleep 60 & echo $! >&2; wait", Duration::from_millis(300)).await;
        assert_eq!(ended.unwrap_err().kind(), io::ErrorKind::TimedOut);
        let stat = format!("/proc/{}/stat", heard[0]);
        let gone = || std::fs::read_to_string(&stat).map_or(true, |stat| stat.contains(") Z "));
        for _ in 0..200 {
            if gone() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        panic!("what the program started outlived it");
    }

    #[tokio::test]
    async fn a_line_without_an_end_is_bounded() {
        let (ended, heard) = run("head -c 300000 /dev/zero | tr '\\0' x >&2", Duration::from_mins(1)).await;
        assert!(ended.unwrap().status.success());
        assert_eq!(heard.iter().map(String::len).collect::<Vec<_>>(), [MOST_OF_A_LINE]);
    }
}
