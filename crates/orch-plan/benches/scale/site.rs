//! The site of the benchmarks: racks of twenty machines, however many racks.

use std::fmt::Write as _;

/// What stands beside the manifest.
pub(crate) const FILES: [(&str, &str); 8] = [
    ("site.yaml", "{ name: bench, domain: bench.example, timezone: Europe/Berlin, packages: [curl] }"),
    (
        "hosts/pve.yaml",
        "{ provider: proxmox, api_endpoint: 'https://pve:8006', api_token: 'secret:pve', datastore: zfs, \
         vmid_range: [100000, 999999], images: { '*': 'local:import/debian-13.qcow2' } }",
    ),
    ("presets/small.yaml", "{ cores: 1, memory: 1024, disk: 10 }"),
    ("presets/large.yaml", "{ cores: 8, memory: 32768, disk: 256 }"),
    ("postures/dev.yaml", "{ ssh: { permit_root_login: prohibit-password }, packages: [net-tools] }"),
    ("specs/pve.yaml", "{ schema_version: 1, platform: { hypervisor: proxmox }, health: [{ tcp: 22 }] }"),
    (
        "specs/db.yaml",
        "{ schema_version: 1, access: { users: [{ name: ops, sudo: true }] }, platform: { packages: [postgresql] }, \
         secrets: [{ name: db-password, path: /run/secrets/db }], health: [{ tcp: 5432 }] }",
    ),
    (
        "specs/web.yaml",
        "{ schema_version: 1, access: { users: [{ name: ops, sudo: true }] }, \
         platform: { packages: [nginx, htop], services: { enable: [nginx] } }, \
         files: [{ path: /etc/motd, content: 'Made by orch.' }], health: [{ unit: nginx.service }] }",
    ),
];

/// Racks of twenty: a machine that hosts, a database on it, and eighteen servers that wait for the database.
pub(crate) fn manifest(count: u32) -> String {
    let mut text = String::from("schema_version: 2\nname: m\npattern: tiered\nnodes:\n");
    for number in 0..count {
        let rack = number / 20;
        let (name, spec, preset) = match number % 20 {
            0 => (format!("rack-{rack}"), "pve", "large"),
            1 => (format!("db-{rack}"), "db", "small"),
            _ => (format!("web-{number}"), "web", "small"),
        };
        let kind = if spec == "pve" { "pve" } else { "vm" };
        write!(
            text,
            "  - name: {name}\n    type: {kind}\n    spec: {spec}\n    preset: {preset}\n    image: debian-13\n    \
             tags: [{spec}, zone-{}]\n",
            rack % 7
        )
        .expect("text can be written");
        if spec != "pve" {
            writeln!(text, "    parent: rack-{rack}").expect("text can be written");
        }
        if spec == "web" {
            writeln!(text, "    depends_on: [db-{rack}]").expect("text can be written");
        }
    }
    text
}
