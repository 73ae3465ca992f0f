//! The parameters of the calls that the lab answers, for when the published description is not at hand.
//!
//! One line for each call: method, path, parameters. `!` is required, `:i` an integer, `:n` a number, `:b` a switch, `:v` the
//! id of a guest, `:d` a DNS name, `:t` tags, `:u` percent-encoded text; `[n]` is followed by a number when it is sent.
//! Words that begin with `@` stand for the lists below.

use std::collections::BTreeMap;

use super::schema::{Rule, expression};

const QEMU: &str = "acpi:b affinity agent amd-sev arch args audio0 autostart:b balloon:i bios boot bootdisk cdrom cicustom \
    cipassword citype ciupgrade:b ciuser cores:i cpu cpulimit:n cpuunits:i description efidisk0 force:b freeze:b hookscript \
    hostpci[n] hotplug hugepages ide[n] import-working-storage ipconfig[n] ivshmem keephugepages:b keyboard kvm:b \
    localtime:b lock machine memory migrate_downtime:n migrate_speed:i name:d nameserver net[n] numa:b numa[n] onboot:b \
    ostype parallel[n] protection:b reboot:b rng0 sata[n] scsi[n] scsihw searchdomain serial[n] shares:i smbios1 smp:i \
    sockets:i spice_enhancements sshkeys:u startdate startup tablet:b tags:t tdf:b template:b tpmstate0 unused[n] usb[n] \
    vcpus:i vga virtio[n] virtiofs[n] vmgenid vmstatestorage watchdog";
const LXC: &str = "arch cmode console:b cores:i cpulimit:n cpuunits:i debug:b description dev[n] features hookscript \
    hostname:d lock memory:i mp[n] nameserver net[n] onboot:b ostype protection:b rootfs searchdomain startup swap:i tags:t \
    template:b timezone tty:i unprivileged:b unused[n]";

const CALLS: &str = "
GET /version
POST /access/ticket username! password! realm otp path privs new-format:b tfa-challenge
GET /access/users/{userid}/token userid!
GET /access/users/{userid}/token/{tokenid} userid! tokenid!
POST /access/users/{userid}/token/{tokenid} userid! tokenid!:k comment expire:i privsep:b
DELETE /access/users/{userid}/token/{tokenid} userid! tokenid!
PUT /access/acl path! roles! users groups tokens propagate:b delete:b
GET /cluster/resources type
GET /cluster/nextid vmid:v
GET /nodes/{node}/tasks node! errors:b limit:i since:i source start:i statusfilter typefilter until:i userfilter vmid:v
GET /nodes/{node}/tasks/{upid}/status node! upid!
GET /nodes/{node}/tasks/{upid}/log node! upid! limit:i start:i download:b
GET /nodes/{node}/qemu node! full:b
POST /nodes/{node}/qemu node! vmid!:v archive bwlimit:i live-restore:b pool start:b storage unique:b @qemu
GET /nodes/{node}/qemu/{vmid}/config node! vmid!:v current:b snapshot
POST /nodes/{node}/qemu/{vmid}/config node! vmid!:v background_delay:i delete digest revert skiplock:b @qemu
PUT /nodes/{node}/qemu/{vmid}/config node! vmid!:v delete digest revert skiplock:b @qemu
POST /nodes/{node}/qemu/{vmid}/clone node! vmid!:v newid!:v bwlimit:i description format full:b name:d pool snapname storage target
POST /nodes/{node}/qemu/{vmid}/template node! vmid!:v disk
PUT /nodes/{node}/qemu/{vmid}/resize node! vmid!:v disk! size!:s digest skiplock:b
DELETE /nodes/{node}/qemu/{vmid} node! vmid!:v purge:b destroy-unreferenced-disks:b skiplock:b
GET /nodes/{node}/qemu/{vmid}/status/current node! vmid!:v
POST /nodes/{node}/qemu/{vmid}/status/start node! vmid!:v skiplock:b timeout:i machine force-cpu targetstorage
POST /nodes/{node}/qemu/{vmid}/status/stop node! vmid!:v skiplock:b timeout:i keepActive:b overrule-shutdown:b migratedfrom
POST /nodes/{node}/qemu/{vmid}/status/shutdown node! vmid!:v skiplock:b timeout:i forceStop:b keepActive:b
POST /nodes/{node}/qemu/{vmid}/status/reboot node! vmid!:v timeout:i
GET /nodes/{node}/qemu/{vmid}/agent/network-get-interfaces node! vmid!:v
POST /nodes/{node}/qemu/{vmid}/snapshot node! vmid!:v snapname! description vmstate:b
GET /nodes/{node}/lxc node!
POST /nodes/{node}/lxc node! vmid!:v ostemplate! bwlimit:n force:b ignore-unpack-errors:b password pool restore:b ssh-public-keys start:b storage unique:b @lxc
GET /nodes/{node}/lxc/{vmid}/config node! vmid!:v current:b snapshot
PUT /nodes/{node}/lxc/{vmid}/config node! vmid!:v delete digest revert @lxc
POST /nodes/{node}/lxc/{vmid}/clone node! vmid!:v newid!:v bwlimit:n description full:b hostname:d pool snapname storage target
PUT /nodes/{node}/lxc/{vmid}/resize node! vmid!:v disk! size!:s digest
DELETE /nodes/{node}/lxc/{vmid} node! vmid!:v purge:b destroy-unreferenced-disks:b force:b
POST /nodes/{node}/lxc/{vmid}/status/shutdown node! vmid!:v timeout:i forceStop:b
GET /nodes/{node}/storage/{storage}/content node! storage! content vmid:v
POST /nodes/{node}/storage/{storage}/upload node! storage! content! filename! checksum checksum-algorithm tmpfilename
POST /nodes/{node}/storage/{storage}/download-url node! storage! content! filename! url! checksum checksum-algorithm compression verify-certificates:b
POST /pools poolid! comment
PUT /pools/{poolid} poolid! comment delete:b storage vms allow-move:b
";

/// The table, as the description would be read.
pub(super) fn calls() -> BTreeMap<String, BTreeMap<String, Rule>> {
    CALLS.lines().filter(|line| !line.is_empty()).map(call).collect()
}

fn call(line: &str) -> (String, BTreeMap<String, Rule>) {
    let mut words = line.split(' ');
    let name = [words.next(), words.next()].map(Option::unwrap_or_default).join(" ");
    let words = words.flat_map(|word| match word {
        "@qemu" => QEMU.split_whitespace().collect(),
        "@lxc" => LXC.split_whitespace().collect(),
        word => vec![word],
    });
    (name, words.map(parameter).collect())
}

fn parameter(word: &str) -> (String, Rule) {
    let (name, kind) = word.split_once(':').unwrap_or((word, ""));
    let is_optional = !name.ends_with('!');
    let kinds = match kind {
        "i" | "v" => "integer",
        "n" => "number",
        "b" => "boolean",
        _ => "string",
    };
    let pattern = match kind {
        "s" => expression(r"\+?\d+(\.\d+)?[KMGT]?"),
        "k" => expression(r"[A-Za-z][A-Za-z0-9\.\-_]+"),
        _ => None,
    };
    let format = match kind {
        "d" => Some("dns-name"),
        "t" => Some("pve-tag-list"),
        "u" => Some("urlencoded"),
        _ => None,
    };
    let (least, most) = if kind == "v" { (Some(100.0), Some(999_999_999.0)) } else { (None, None) };
    let rule = Rule {
        kind: kinds.into(),
        is_optional,
        pattern,
        least,
        most,
        format: format.map(str::to_owned),
        ..Rule::default()
    };
    (name.trim_end_matches('!').to_owned(), rule)
}
