//! Spec, posture, site and host to what the nodes of a spec become.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;

use crate::config::{File, Network, Nixos, Role, Run, Secret, Services, Ssh, User};
use crate::decode::Located;
use crate::files::{Defaults, Posture, Site, Spec, SpecFile, SpecSecret, SpecUser};
use crate::unit::SecretRef;
use crate::word::{KeyName, Package};

pub(super) fn resolve(spec: &Spec, posture: &Posture, site: &Site, defaults: &Defaults) -> Role {
    Role {
        domain: spec.identity.domain.clone().or_else(|| defaults.domain.clone()),
        network: network(spec, defaults),
        timezone: spec
            .config
            .timezone
            .clone()
            .or_else(|| defaults.timezone.clone())
            .unwrap_or_else(|| "UTC".parse().expect("UTC is a time zone")),
        users: users(spec, site),
        ssh: Ssh {
            port: u16::try_from(posture.ssh.port.get()).expect("a port is at most 65535"),
            permit_root_login: posture.ssh.permit_root_login,
            password_authentication: posture.ssh.password_authentication,
        },
        sudo_nopasswd: posture.sudo.nopasswd,
        fail2ban: posture.fail2ban.enabled,
        packages: packages([&site.packages, &spec.platform.packages, &posture.packages]),
        services: Services {
            enable: spec.platform.services.enable.clone(),
            disable: spec.platform.services.disable.iter().map(|unit| (**unit).clone()).collect(),
        },
        hypervisor: spec.platform.hypervisor,
        files: files(spec),
        secrets: secrets(spec),
        enroll_recipient: spec.enroll_recipient,
        nixos: spec.nixos.as_ref().map(|nixos| Nixos {
            modules: nixos.modules.clone(),
            rollout: nixos.rollout,
            install: nixos.install,
        }),
        health: spec.health.clone(),
        run: Run { trigger: spec.run.trigger, interval: spec.run.interval },
        config: spec.config.free.clone(),
    }
}

fn network(spec: &Spec, defaults: &Defaults) -> Network {
    let Some(fixed) = &spec.network else {
        return Network::Dhcp;
    };
    let dns = if fixed.dns.is_empty() { &defaults.dns_servers } else { &fixed.dns };
    Network::Static { ip: *fixed.ip, gateway: fixed.gateway.or(defaults.gateway), dns: dns.clone() }
}

fn users(spec: &Spec, site: &Site) -> Vec<User> {
    let keys_of = |names: &Option<Vec<Located<KeyName>>>| match names {
        None => site.ssh_keys.values().cloned().collect(),
        Some(names) => names.iter().filter_map(|name| site.ssh_keys.get(&**name)).cloned().collect(),
    };
    let user = |user: &SpecUser| User {
        name: (*user.name).clone(),
        sudo: user.sudo,
        ssh_keys: keys_of(&user.ssh_keys),
    };
    spec.access.users.iter().map(user).collect()
}

/// Every package once, in the order in which it is first asked for.
fn packages(lists: [&Vec<Package>; 3]) -> Vec<Package> {
    let mut seen = BTreeSet::new();
    lists.into_iter().flatten().filter(|package| seen.insert(*package)).cloned().collect()
}

fn files(spec: &Spec) -> Vec<File> {
    let file = |file: &SpecFile| File {
        path: (*file.path).clone(),
        content: file.content.clone(),
        mode: file.mode.clone(),
        owner: file.owner.clone(),
    };
    spec.files.iter().map(file).collect()
}

/// The secrets that a spec asks for.
pub(crate) fn secrets(spec: &Spec) -> Vec<Secret> {
    let secret = |secret: &SpecSecret| Secret {
        name: (*secret.name).clone(),
        from: secret.from.clone().unwrap_or_else(|| SecretRef::named(&secret.name)),
        path: (*secret.path).clone(),
        mode: secret.mode.clone(),
        owner: secret.owner.clone(),
    };
    spec.secrets.iter().map(secret).collect()
}
