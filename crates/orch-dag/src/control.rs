//! The handle by which a run is held up or ended early, and the signal that its parts listen to.

use tokio::sync::watch;

/// How far a run has been ended early. Only ever goes up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Phase {
    Running,
    Stopping,
    Cancelled,
}

/// The handle by which runs are held up or ended early. Its clones are the same handle; one may be given to several runs,
/// and a run that stops by itself leaves it alone.
#[derive(Debug, Clone)]
pub struct Control {
    phase: watch::Sender<Phase>,
    paused: watch::Sender<bool>,
}

impl Control {
    /// A handle that has not been used yet.
    pub fn new() -> Self {
        Self { phase: watch::Sender::new(Phase::Running), paused: watch::Sender::new(false) }
    }

    /// Starts nothing new until [`resume`](Self::resume) is called. Running tasks come to their end, retries included.
    pub fn pause(&self) {
        self.paused.send_replace(true);
    }

    /// Goes on after a [`pause`](Self::pause).
    pub fn resume(&self) {
        self.paused.send_replace(false);
    }

    /// Whether nothing new is started for now.
    pub fn is_paused(&self) -> bool {
        *self.paused.borrow()
    }

    /// Starts nothing new from here on. Running tasks end their current attempt, with no retry after it.
    pub fn stop(&self) {
        self.raise(Phase::Stopping);
    }

    /// Starts nothing new and drops the futures of running tasks, at once or after the runner's grace.
    pub fn cancel(&self) {
        self.raise(Phase::Cancelled);
    }

    pub(crate) fn raise(&self, phase: Phase) {
        self.phase.send_if_modified(|current| {
            let higher = *current < phase;
            *current = phase.max(*current);
            higher
        });
    }

    pub(crate) fn phase(&self) -> Phase {
        *self.phase.borrow()
    }

    /// Waits until [`cancel`](Self::cancel) is called, and not at all where it has been. A stop is not waited for.
    ///
    /// For what goes on around a run, or after it, and is to end with it.
    pub async fn cancelled(&self) {
        self.reached(Phase::Cancelled).await;
    }

    async fn resumed(&self) {
        let _ = self.paused.subscribe().wait_for(|paused| !paused).await;
    }

    async fn reached(&self, phase: Phase) {
        // An error would mean that the sender is gone, but `self` is the sender.
        let _ = self.phase.subscribe().wait_for(|current| *current >= phase).await;
    }
}

impl Default for Control {
    fn default() -> Self {
        Self::new()
    }
}

/// What ends one run early: the caller's handle, or the run itself after a failure.
#[derive(Debug)]
pub(crate) struct Signal {
    pub(crate) given: Control,
    pub(crate) own: Control,
}

impl Signal {
    pub(crate) fn phase(&self) -> Phase {
        self.own.phase().max(self.given.phase())
    }

    /// Waits for as long as the run is paused. One that is ended early is waited for no longer.
    pub(crate) async fn resumed(&self) {
        tokio::select! {
            () = self.given.resumed() => {}
            () = self.reached(Phase::Stopping) => {}
        }
    }

    pub(crate) fn is_paused(&self) -> bool {
        self.given.is_paused()
    }

    /// Waits until the run is at `phase` or past it.
    pub(crate) async fn reached(&self, phase: Phase) {
        tokio::select! {
            () = self.own.reached(phase) => {}
            () = self.given.reached(phase) => {}
        }
    }
}
