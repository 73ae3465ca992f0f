//! What a node is doing, told to the server while it does it: the latest line, at most every so often. Nobody is waited
//! for, and nobody who does not listen is an error.

use std::ops::ControlFlow;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use orch_model::printable;
use orch_model::pull::Telling;
use orch_model::token::Bearer;

use super::client::Client;
use super::presence::Headers;
use crate::push::{Follower, pass_on};
use crate::signals::Signals;

const PAUSE: Duration = Duration::from_millis(300);
/// How long one telling may take: the result is told after it.
const LIMIT: Duration = Duration::from_secs(2);
/// No more of a line is told.
const LONGEST: usize = 300;

/// Does some work whose words are told to the server, and passed on to whoever follows here.
pub(super) fn while_telling<T>(
    client: &mut Client<'_>,
    (token, headers): (&Bearer, &Headers),
    signals: &Signals,
    work: impl FnOnce(&mut Follower<'_>) -> T,
) -> T {
    thread::scope(|scope| {
        let (lines, heard) = channel();
        scope.spawn(move || tell(client, token, headers, &heard));
        send_last_line(&lines, b"the configuration is being applied");
        work(&mut |text| {
            send_last_line(&lines, text);
            let _ = pass_on(text);
            if signals.is_stop_asked() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })
        // The lines end here, and who tells them with them.
    })
}

fn send_last_line(lines: &Sender<String>, text: &[u8]) {
    let text = String::from_utf8_lossy(text);
    if let Some(line) = text.lines().rev().find(|line| !line.trim().is_empty()) {
        let line = printable(line).chars().take(LONGEST).collect();
        // Nobody tells any more once the work is done.
        let _ = lines.send(line);
    }
}

fn tell(client: &mut Client<'_>, token: &Bearer, headers: &Headers, lines: &Receiver<String>) {
    let mut next = lines.recv().ok();
    while let Some(doing) = next {
        // A server that does not listen now may do so for the next line.
        let _ = client.tell(token, headers, &Telling::Progress { doing }, LIMIT);
        next = latest(lines, Instant::now() + PAUSE);
    }
}

/// The latest of the lines that come until then, or the first one after it; nothing at their end.
fn latest(lines: &Receiver<String>, until: Instant) -> Option<String> {
    let mut latest = None;
    loop {
        match lines.recv_timeout(until.saturating_duration_since(Instant::now())) {
            Ok(line) => latest = Some(line),
            Err(RecvTimeoutError::Disconnected) => return None,
            Err(RecvTimeoutError::Timeout) => return latest.or_else(|| lines.recv().ok()),
        }
    }
}
