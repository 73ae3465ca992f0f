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
        assert!(!reason.contains('\n'), "{told}: a reason is one line");
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
