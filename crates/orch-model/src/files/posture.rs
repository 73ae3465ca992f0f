//! `postures/<name>.yaml`: how a node is secured.

use alloc::vec::Vec;

use crate::decode::{Within, choice, record};
use crate::word::Package;

choice! {
    /// Whether root may log in over SSH, in the words of `sshd_config`.
    pub enum RootLogin as "value of permit_root_login" {
        /// Never.
        No = "no",
        /// With a key.
        ProhibitPassword = "prohibit-password",
        /// With a key, for the command that the key names.
        ForcedCommandsOnly = "forced-commands-only",
        /// With a password too.
        Yes = "yes",
    }
}

choice! {
    /// Whether a password is enough, in the words of `sshd_config`.
    pub enum YesNo as "value of password_authentication" {
        /// No.
        No = "no",
        /// Yes.
        Yes = "yes",
    }
}

record! {
    /// How the SSH server answers.
    pub(crate) struct SshPosture as "ssh posture" {
        /// The port it listens on.
        port: Within<1, 65535> = Within::new::<22>(),
        /// Whether root may log in.
        permit_root_login: RootLogin = RootLogin::ProhibitPassword,
        /// Whether a password is enough.
        password_authentication: YesNo = YesNo::No,
    }
}

record! {
    /// How `sudo` asks.
    pub(crate) struct SudoPosture as "sudo posture" {
        /// Whether users with sudo need no password for it.
        nopasswd: bool = false,
    }
}

record! {
    /// Whether addresses that guess passwords are shut out.
    pub(crate) struct Fail2banPosture as "fail2ban posture" {
        /// Whether fail2ban runs.
        enabled: bool = false,
    }
}

record! {
    /// A posture: how a node is secured. One without any key means: SSH by keys only, and nothing else.
    pub(crate) struct Posture as "posture" {
        /// How the SSH server answers.
        ssh: SshPosture,
        /// How `sudo` asks.
        sudo: SudoPosture,
        /// Whether addresses that guess passwords are shut out.
        fail2ban: Fail2banPosture,
        /// Packages that the posture needs; they come after the spec's.
        packages: Vec<Package>,
    }
}

impl Default for Posture {
    /// What holds where a spec names no posture and the site has none called `dev`.
    fn default() -> Self {
        <Self as crate::decode::Decode>::absent().expect("every key of a posture may be left out")
    }
}
