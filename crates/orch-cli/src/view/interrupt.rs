//! Ctrl-C and a polite kill: the first lets running steps end, the second cuts them off. After the run it ends the program.

use std::io;

use orch_run::Control;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::task::JoinHandle;

use super::screen::Canvas;
use crate::output;

/// What is said after the second signal.
const CUTTING_OFF: &str = "cutting off what runs; run again afterwards to heal what it leaves";

/// What the first signal leads to.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum AfterStop {
    /// The command ends.
    End,
    /// What was made is destroyed.
    CleanUp,
}

impl AfterStop {
    const fn words(self) -> &'static str {
        match self {
            Self::End => "stopping: what runs comes to its end, nothing new is begun; once more cuts it off",
            Self::CleanUp => {
                "stopping: what runs comes to its end, then what was made is destroyed; once more cuts it off"
            }
        }
    }
}

/// Whoever listens for signals.
pub(crate) struct Interrupts(Option<JoinHandle<()>>);

impl Interrupts {
    /// Listens from now on. Where the system does not allow that, signals end the program as they always do.
    pub(crate) fn listen(control: Control, after_stop: AfterStop, canvas: Option<Canvas>) -> Self {
        Self(signals().ok().map(|signals| tokio::spawn(obey(signals, control, after_stop, canvas))))
    }

    /// The run is over: from now on a signal ends the program, as it does where nobody listens. Once somebody has listened, the
    /// system would not do so by itself any more.
    pub(crate) fn end(self) {
        let Some(listener) = self.0 else { return };
        listener.abort();
        if let Ok(signals) = signals() {
            tokio::spawn(obey_at_once(signals));
        }
    }
}

type Signals = (Signal, Signal);

fn signals() -> io::Result<Signals> {
    Ok((signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?))
}

async fn obey_at_once((mut interrupt, mut terminate): Signals) {
    /// What a shell says of a program that was ended by Ctrl-C.
    const INTERRUPTED: i32 = 130;
    next(&mut interrupt, &mut terminate).await;
    std::process::exit(INTERRUPTED);
}

async fn obey(
    (mut interrupt, mut terminate): Signals,
    control: Control,
    after_stop: AfterStop,
    canvas: Option<Canvas>,
) {
    let say = |text: &str| match &canvas {
        Some(canvas) => canvas.say(text),
        None => output::note(&text),
    };
    next(&mut interrupt, &mut terminate).await;
    say(after_stop.words());
    control.stop();
    next(&mut interrupt, &mut terminate).await;
    say(CUTTING_OFF);
    control.cancel();
}

async fn next(interrupt: &mut Signal, terminate: &mut Signal) {
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
}
