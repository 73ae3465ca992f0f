//! Whatever is asked, there is an answer.

use orch_lab::{Api, Asked};

use crate::world::{TOKEN, world};

/// Numbers that look random and are the same every time.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % sides
    }

    fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        from[self.roll(from.len())]
    }
}

const PARTS: &[&str] = &[
    "nodes",
    "pve1",
    "qemu",
    "lxc",
    "100",
    "101",
    "9000",
    "config",
    "status",
    "start",
    "stop",
    "current",
    "clone",
    "resize",
    "template",
    "agent",
    "network-get-interfaces",
    "storage",
    "local",
    "local-zfs",
    "content",
    "upload",
    "access",
    "ticket",
    "users",
    "root@pam",
    "token",
    "acl",
    "cluster",
    "resources",
    "nextid",
    "tasks",
    "UPID:::::::::",
    "UPID:pve1:x",
    "log",
    "pools",
    "snapshot",
    "%ff%00",
    "99999999999",
    "interfaces",
    "-1",
    "version",
    "é",
    "",
];
const NAMES: &[&str] = &[
    "vmid",
    "newid",
    "size",
    "disk",
    "scsi0",
    "net0",
    "ide2",
    "name",
    "tags",
    "delete",
    "cicustom",
    "sshkeys",
    "memory",
    "cores",
    "path",
    "roles",
    "tokens",
    "username",
    "password",
    "snapname",
    "content",
    "filename",
    "limit",
    "start",
    "rootfs",
    "ostemplate",
    "boot",
    "agent",
    "full",
    "storage",
    "type",
    "vms",
    "poolid",
    "expire",
    "import-from",
];
const VALUES: &[&str] = &[
    "",
    "101",
    "102",
    "9000",
    "-1",
    "1e99",
    "NaN",
    "local-zfs:8",
    "local-zfs:1e30",
    "local-zfs:-5",
    "local-zfs:",
    ":",
    "local:iso/../x.iso",
    "local-zfs:0,import-from=local:import/x.qcow2",
    "=,=,=",
    "virtio",
    "model=,macaddr=",
    "+1G",
    "18446744073709551615T",
    "18446744073709551615",
    "0.5G",
    ".",
    "..",
    "%",
    "scsi0",
    "scsi0,ide2,unused0",
    "order=;;;",
    "\u{0}",
    "é",
    "1",
    "local:vztmpl/x.tar.zst",
    "none,media=cdrom",
    "user=local:snippets/x",
    "99999999999999999999",
    "root@pam!lab",
    "/",
];

#[tokio::test]
async fn no_question_is_too_strange() {
    let world = world();
    world.copy(101, "web").await;
    let mut dice = Dice(7);
    for _ in 0..6000 {
        let path: Vec<&str> = (0..dice.roll(8)).map(|_| dice.pick(PARTS)).collect();
        let path = match dice.roll(3) {
            0 => path.join("/"),
            1 => format!("nodes/pve1/qemu/{}", path.join("/")),
            _ => {
                let call =
                    ["config", "clone", "resize", "status/start", "status/stop", "template", "snapshot"];
                format!(
                    "nodes/pve1/{}/{}/{}",
                    dice.pick(&["qemu", "lxc"]),
                    dice.pick(&["101", "102", "9000"]),
                    dice.pick(&call)
                )
            }
        };
        let pairs: Vec<String> = (0..dice.roll(4))
            .map(|_| format!("{}={}", dice.pick(NAMES), crate::world::encode(dice.pick(VALUES))))
            .collect();
        let kind = dice.pick(&[
            "",
            "application/json",
            "multipart/form-data; boundary=",
            "multipart/form-data; boundary=a",
        ]);
        let body = if kind.starts_with("multipart") {
            format!("--a\r\n\r\n--a{}", pairs.join("--"))
        } else {
            pairs.join("&")
        };
        let asked = Asked {
            method: dice.pick(&["GET", "POST", "PUT", "DELETE", "PATCH"]).into(),
            path: format!("/api2/json/{path}"),
            query: if dice.roll(2) == 0 { pairs.join("&") } else { String::new() },
            headers: [("authorization", TOKEN), ("content-type", kind)]
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .into(),
            body: body.into_bytes(),
        };
        let told = format!("{} {} {pairs:?}", asked.method, asked.path);
        let answer = world.pve.answer(asked).await;
        assert!([200, 400, 401, 403, 500, 501].contains(&answer.status), "{told}: {}", answer.status);
        let reason = answer.reason.unwrap_or_default();
        assert!(!reason.chars().any(char::is_control), "{told}: a reason is one line of text");
    }
}

/// A method, a path, and parameters; a `?` is some id.
type Sense = (&'static str, &'static str, &'static [(&'static str, &'static str)]);

/// Calls that mean something, with parameters that do.
const CALLS: &[Sense] = &[
    ("POST", "/nodes/pve1/qemu", &[("vmid", "?"), ("scsi0", "local-zfs:1"), ("net0", "virtio,bridge=vmbr0")]),
    (
        "POST",
        "/nodes/pve1/lxc",
        &[("vmid", "?"), ("ostemplate", "local:vztmpl/x.tar.zst"), ("rootfs", "local-zfs:1")],
    ),
    ("POST", "/nodes/pve1/qemu/?/clone", &[("newid", "?"), ("full", "1")]),
    ("POST", "/nodes/pve1/qemu/9000/clone", &[("newid", "?"), ("name", "a")]),
    (
        "PUT",
        "/nodes/pve1/qemu/?/config",
        &[("memory", "64"), ("ide2", "local-zfs:cloudinit"), ("delete", "net0")],
    ),
    ("POST", "/nodes/pve1/qemu/?/config", &[("boot", "order=scsi0"), ("cicustom", "user=local:snippets/x")]),
    ("PUT", "/nodes/pve1/lxc/?/config", &[("memory", "64"), ("mp0", "local-zfs:1,mp=/x")]),
    ("GET", "/nodes/pve1/qemu/?/config", &[]),
    ("PUT", "/nodes/pve1/qemu/?/resize", &[("disk", "scsi0"), ("size", "+1G")]),
    ("PUT", "/nodes/pve1/lxc/?/resize", &[("disk", "rootfs"), ("size", "9G")]),
    ("POST", "/nodes/pve1/qemu/?/status/start", &[]),
    ("POST", "/nodes/pve1/qemu/?/status/stop", &[]),
    ("POST", "/nodes/pve1/qemu/?/status/shutdown", &[("timeout", "1")]),
    ("POST", "/nodes/pve1/qemu/?/status/reset", &[]),
    ("POST", "/nodes/pve1/lxc/?/status/start", &[]),
    ("POST", "/nodes/pve1/qemu/?/template", &[]),
    ("POST", "/nodes/pve1/qemu/?/snapshot", &[("snapname", "s1")]),
    ("POST", "/nodes/pve1/qemu/?/snapshot/s1/rollback", &[]),
    ("GET", "/nodes/pve1/qemu/?/agent/network-get-interfaces", &[]),
    ("GET", "/nodes/pve1/lxc/?/interfaces", &[]),
    ("DELETE", "/nodes/pve1/qemu/?", &[("purge", "1")]),
    ("DELETE", "/nodes/pve1/lxc/?", &[("force", "1")]),
    ("POST", "/pools", &[("poolid", "p")]),
    ("PUT", "/pools/p", &[("vms", "?")]),
    ("PUT", "/access/acl", &[("path", "/vms"), ("roles", "PVEVMUser"), ("tokens", "root@pam!lab")]),
    ("GET", "/nodes/pve1/tasks", &[("start", "1"), ("limit", "5"), ("source", "all")]),
    ("GET", "/cluster/resources", &[]),
    ("GET", "/nodes/pve1/storage/local-zfs/content", &[("vmid", "?")]),
];

#[tokio::test]
async fn no_call_breaks_by_one_strange_parameter() {
    let world = world();
    let mut dice = Dice(11);
    let mut well = 0;
    for _ in 0..6000 {
        let &(method, path, pairs) = &CALLS[dice.roll(CALLS.len())];
        let ids = ["101", "102", "103", "104", "9000"];
        let path = path.replace('?', dice.pick(&ids));
        let mut pairs: Vec<(&str, &str)> = pairs.to_vec();
        for pair in &mut pairs {
            pair.1 = if pair.1 == "?" { dice.pick(&ids) } else { pair.1 };
        }
        if dice.roll(3) == 0 {
            let strange = (dice.pick(NAMES), dice.pick(VALUES));
            match pairs.len() {
                0 => pairs.push(strange),
                count => {
                    let place = dice.roll(count);
                    pairs[place].1 = strange.1;
                }
            }
        }
        let said = world.ask(method, &path, &pairs).await;
        assert!([200, 400, 500].contains(&said.status), "{method} {path} {pairs:?}: {said:?}");
        well += usize::from(said.status == 200);
        tokio::task::yield_now().await;
    }
    assert!(well > 1000, "most calls meant something, and {well} went well");
    // What was begun comes to an end, and whatever failed has said why.
    loop {
        let running = world.get("/nodes/pve1/tasks?source=active").await;
        if running.as_array().unwrap().is_empty() {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn credentials_can_be_anything() {
    let world = world();
    let strange = [
        "",
        "=",
        "!",
        "root@pam!",
        "!lab=0123",
        "root@pam!lab",
        "root@pam!lab=",
        "root@pam!lab=0123=",
        "é!é=é",
    ];
    for token in strange {
        let said =
            world.by("authorization", &format!("PVEAPIToken={token}")).ask("GET", "/version", &[]).await;
        assert_eq!(said.status, 401, "{token}");
        let said =
            world.by("cookie", &format!("PVEAuthCookie={token}::PVE:::")).ask("GET", "/version", &[]).await;
        assert_eq!(said.status, 401, "{token}");
    }
}
