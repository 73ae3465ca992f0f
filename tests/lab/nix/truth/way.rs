//! The ways in which an activation can go, as lines that a stand-in system runs.

use rustix::process::Signal;

/// What the activation of a new system does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    /// Nothing wrong; with nobody in the way, the node keeps it.
    Good,
    Exits,
    Hangs,
    KillsSshd,
    BreaksNetwork,
    FillsDisk,
    Reboots,
    PowersOff,
    FailsLater,
}

/// Says that everything is done, and waits until the fault was made.
const GATE: &str = ": > /run/truth/did; while [ ! -e /run/truth/go ]; do sleep 0.02; done";

/// What the system before does when it is activated: as units of a real one would, it has everything run and free again.
pub(super) const UNDO: &str = "mkdir -p /run/truth\n\
    rm -f /var/filler\n\
    ip link set eth0 up || exit 1\n\
    : > /run/orch/sshd-wanted\n\
    kill -HUP 1\n\
    : > /run/truth/well";

/// What holds on a node that is well: nothing has failed, and there is room for a file.
pub(super) const HEALTH: &str =
    "[{ command: [sh, -c, \"test -e /run/truth/well && echo well > /var/well\"] }]";

impl Way {
    pub(super) const ALL: [Self; 9] = [
        Self::Good,
        Self::Exits,
        Self::Hangs,
        Self::KillsSshd,
        Self::BreaksNetwork,
        Self::FillsDisk,
        Self::Reboots,
        Self::PowersOff,
        Self::FailsLater,
    ];

    /// The lines of its activation.
    pub(super) fn lines(self) -> String {
        let (before, after) = match self {
            Self::Good => ("", ""),
            Self::Exits => ("", "echo it is broken >&2; exit 7"),
            Self::Hangs => ("", "sleep 600"),
            Self::KillsSshd => (KILL_SSHD, ""),
            Self::BreaksNetwork => ("ip link set eth0 down || exit 1", ""),
            Self::FillsDisk => (FILL, ""),
            Self::Reboots => ("", "kill -INT 1; sleep 600"),
            Self::PowersOff => ("", "kill -TERM 1; sleep 600"),
            Self::FailsLater => ("rm /run/truth/well", ""),
        };
        format!("{before}\n{GATE}\n{after}\n")
    }

    /// What it says to the first process of the machine, where it does.
    pub(super) const fn signal(self) -> Option<Signal> {
        match self {
            Self::Reboots => Some(Signal::INT),
            Self::PowersOff => Some(Signal::TERM),
            _ => None,
        }
    }

    /// Whether its activation comes to an end by itself, so that a confirmation is waited for.
    pub(super) const fn is_waited_with(self) -> bool {
        !matches!(self, Self::Exits | Self::Hangs | Self::Reboots | Self::PowersOff)
    }
}

/// Init is told not to start the server again before it is ended, with every connection that it has.
const KILL_SSHD: &str = "rm /run/orch/sshd-wanted\n\
    kill -HUP 1\n\
    for round in 1 2 3; do\n\
      sleep 0.2\n\
      for process in /proc/[0-9]*; do\n\
        read -r name < $process/comm && case $name in sshd*) kill -9 ${process#/proc/} ;; esac\n\
      done\n\
    done";

/// All the room that there is, to the last block.
const FILL: &str = "end=0 piece=268435456\n\
    while [ $piece -ge 512 ]; do\n\
      if fallocate --offset $end --length $piece /var/filler 2> /dev/null\n\
      then end=$((end + piece))\n\
      else piece=$((piece / 2))\n\
      fi\n\
    done";
