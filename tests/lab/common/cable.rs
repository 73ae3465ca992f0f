//! The link between a machine and the network that it is attached to.

use std::process::Command;

use super::Outcome;

/// The other end of a machine's cable, in the network that it is attached to.
pub(crate) struct Cable {
    network: String,
    link: String,
}

impl Cable {
    /// The cable of the only machine that is attached to the bridge of this network.
    pub(crate) fn in_network(network: String) -> Self {
        let listed = Outcome::of(&mut ip(&network, &["-o", "link", "show", "master", "orch0"]), "ip link");
        let link = listed.ends_with(0).stdout;
        let link = link.split(": ").nth(1).unwrap().split('@').next().unwrap().to_owned();
        Self { network, link }
    }

    pub(crate) fn set(&self, state: &str) {
        Outcome::of(&mut ip(&self.network, &["link", "set", &self.link, state]), "ip link set").ends_with(0);
    }
}

fn ip(network: &str, words: &[&str]) -> Command {
    let mut command = Command::new("nsenter");
    command.arg(format!("--net={network}")).arg("ip").args(words);
    command
}
