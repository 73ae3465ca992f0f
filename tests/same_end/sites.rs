//! Random sites: each makes sense to whoever reads it, and not each can be made true.

use proptest::collection::{btree_map, btree_set, vec};
use proptest::option;
use proptest::prelude::*;
use proptest::sample::{select, subsequence};
use serde_json::{Map, Value as Json, json};

use crate::site::{KEYS, Plot};

/// What can be made true comes first in each list; a spec that is tame takes that alone.
struct List<const N: usize>([&'static str; N], usize);

/// Names of users. One is there already, and one is the name of a group that others are in.
const USERS: List<7> = List(["alice", "bob", "_odd-1", "root", "old", "nobody", "staff"], 6);
const KEY_NAMES: [&str; 3] = ["alice@laptop", "b.o_b", "3"];
const PACKAGES: List<6> = List(["htop", "vim", "libc6:amd64", "htop=1.0", "g++", "nonsense"], 5);
const UNITS: List<5> = List(["chrony", "nginx", "rpcbind", "getty@tty1.service", "ghost"], 4);
const ZONES: List<4> = List(["UTC", "Europe/Berlin", "Etc/UTC", "Mars/Olympus"], 3);
const OWNERS: List<4> = List(["root", "old", "alice", "nobody-here"], 2);

/// Paths of files: new and old, through links, below each other, and such as nobody may write.
const PATHS: List<20> = List(
    [
        "/etc/motd",
        "/etc/hosts",
        "/srv/b",
        "/srv/with space/ö\u{301} 'quoted' \"twice\" $x",
        "/srv/-rf",
        "/linked/inside",
        "/was-link",
        "/home/alice/.profile",
        "/etc/ssh/sshd_config.d/60-mine.conf",
        "/new/deep/below/nothing",
        "/srv/a",
        "/srv/a/b",
        "/srv/a/b/c",
        "/was-folder",
        "/home/alice/.ssh/authorized_keys",
        "/etc/ssh/sshd_config",
        "/etc/sudoers.d/orch-alice",
        "/etc/hostname",
        "/var/lib/orch/mine",
        "/proc/version",
    ],
    10,
);

/// Whether everything that a spec asks for can be had, on a machine that has nothing against it.
#[derive(Debug, Clone, Copy)]
enum Temper {
    Tame,
    Wild,
}

impl Temper {
    fn of<const N: usize>(self, List(all, tame): &'static List<N>) -> &'static [&'static str] {
        match self {
            Self::Tame => &all[..*tame],
            Self::Wild => all,
        }
    }
}

pub(crate) fn plot() -> impl Strategy<Value = Plot> {
    let node = "[a-z][a-z0-9-]{0,20}[a-z0-9]";
    (site(), host(), option::of(posture()), spec(), node).prop_map(|(site, host, posture, spec, node)| Plot {
        site,
        host,
        posture,
        spec,
        node,
    })
}

fn site() -> impl Strategy<Value = Json> {
    (packages(Temper::Tame), defaults(), vec(select(&KEYS[..]), KEY_NAMES.len())).prop_map(
        |(packages, defaults, keys)| {
            let ssh_keys: Map<String, Json> =
                KEY_NAMES.iter().zip(keys).map(|(name, key)| ((*name).into(), json!(key))).collect();
            let mut site = json!({ "name": "lab", "ssh_keys": ssh_keys, "packages": packages });
            site.as_object_mut().unwrap().extend(defaults);
            site
        },
    )
}

fn host() -> impl Strategy<Value = Json> {
    defaults().prop_map(|mut host| {
        host.insert("provider".into(), json!("local"));
        Json::Object(host)
    })
}

/// What nodes take over; a host says it too.
fn defaults() -> impl Strategy<Value = Map<String, Json>> {
    let domain = option::of(select(&["example.org", "Core", "a.b-c.d"][..]));
    (domain, option::of(select(Temper::Tame.of(&ZONES)))).prop_map(|(domain, timezone)| {
        without_nulls([("domain", json!(domain)), ("timezone", json!(timezone))])
    })
}

fn posture() -> impl Strategy<Value = Json> {
    let root = select(&["no", "prohibit-password", "forced-commands-only", "yes"][..]);
    let ssh = (1_u16.., root, select(&["no", "yes"][..]));
    (ssh, any::<bool>(), any::<bool>(), packages(Temper::Tame)).prop_map(
        |((port, root, password), nopasswd, fail2ban, packages)| {
            json!({
                "ssh": { "port": port, "permit_root_login": root, "password_authentication": password },
                "sudo": { "nopasswd": nopasswd },
                "fail2ban": { "enabled": fail2ban },
                "packages": packages,
            })
        },
    )
}

pub(crate) fn spec() -> impl Strategy<Value = Json> {
    prop_oneof![tempered(Temper::Tame), tempered(Temper::Wild)]
}

fn tempered(temper: Temper) -> impl Strategy<Value = Json> {
    let identity = option::of("[a-z][a-z0-9-]{0,30}");
    let parts =
        (identity, network(), users(temper), platform(temper), config(temper), files(temper), rest(temper));
    parts.prop_map(|(hostname, network, users, platform, config, files, rest)| {
        let identity = without_nulls([("hostname", json!(hostname))]);
        let mut spec = without_nulls([
            ("schema_version", json!(1)),
            ("identity", json!(identity)),
            ("network", network),
            ("access", json!({ "posture": "some", "users": users })),
            ("platform", platform),
            ("config", Json::Object(config)),
            ("files", json!(files)),
        ]);
        spec.extend(rest);
        Json::Object(spec)
    })
}

fn network() -> impl Strategy<Value = Json> {
    let fixed = Just(json!({ "ip": "10.0.0.5/24", "dns": ["10.0.0.1"] }));
    prop_oneof![4 => Just(Json::Null), 1 => fixed]
}

fn users(temper: Temper) -> impl Strategy<Value = Vec<Json>> {
    let keys = option::of(subsequence(KEY_NAMES.to_vec(), 0..=KEY_NAMES.len()));
    btree_map(select(temper.of(&USERS)), (any::<bool>(), keys), 0..4).prop_map(|users| {
        let user = |(name, (sudo, keys)): (&str, (bool, Option<Vec<&str>>))| {
            without_nulls([("name", json!(name)), ("sudo", json!(sudo)), ("ssh_keys", json!(keys))]).into()
        };
        users.into_iter().map(user).collect()
    })
}

fn platform(temper: Temper) -> impl Strategy<Value = Json> {
    let hypervisor = option::weighted(0.1, Just("proxmox"));
    (packages(temper), btree_map(select(temper.of(&UNITS)), any::<bool>(), 0..4), hypervisor).prop_map(
        |(packages, units, hypervisor)| {
            let named = |wish: bool| -> Vec<&str> {
                units.iter().filter(|(_, runs)| **runs == wish).map(|(unit, _)| *unit).collect()
            };
            Json::Object(without_nulls([
                ("packages", json!(packages)),
                ("services", json!({ "enable": named(true), "disable": named(false) })),
                ("hypervisor", json!(hypervisor)),
            ]))
        },
    )
}

fn packages(temper: Temper) -> impl Strategy<Value = Vec<&'static str>> {
    // Mostly none: where nothing installs packages, one is enough to fail.
    prop_oneof![2 => Just(Vec::new()), 1 => subsequence(temper.of(&PACKAGES).to_vec(), 0..3)]
}

/// The time zone, and keys that nobody has a meaning for.
fn config(temper: Temper) -> impl Strategy<Value = Map<String, Json>> {
    let zone = option::weighted(0.6, select(temper.of(&ZONES)));
    let free = btree_map("[a-z_]{1,8}", anything(), 0..3);
    (zone, free).prop_map(|(zone, free)| {
        let mut config: Map<String, Json> = free.into_iter().collect();
        config.remove("timezone");
        config.extend(without_nulls([("timezone", json!(zone))]));
        config
    })
}

fn anything() -> impl Strategy<Value = Json> {
    let leaf = prop_oneof![
        any::<bool>().prop_map(Json::from),
        any::<i32>().prop_map(Json::from),
        any::<String>().prop_map(Json::from),
    ];
    leaf.prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Json::from),
            btree_map("[a-z]{1,4}", inner, 0..4).prop_map(|map| Json::Object(map.into_iter().collect())),
        ]
    })
}

fn files(temper: Temper) -> impl Strategy<Value = Vec<Json>> {
    let usual = select(&["0644", "0600", "4755", "0000", "1777", "0751"][..]).prop_map(str::to_owned);
    let mode = prop_oneof![4 => usual, 1 => "[0-7]{4}"];
    let owner = select(temper.of(&OWNERS));
    // Both may be left out.
    let inside = (content(), option::of(mode), option::of(owner)).prop_map(|(content, mode, owner)| {
        without_nulls([("content", json!(content)), ("mode", json!(mode)), ("owner", json!(owner))])
    });
    let paths = btree_set(select(temper.of(&PATHS)), 0..5).prop_map(Vec::from_iter).prop_shuffle();
    (paths, vec(inside, PATHS.0.len())).prop_map(|(paths, insides)| {
        let file = |(path, mut inside): (&str, Map<String, Json>)| {
            inside.insert("path".into(), json!(path));
            Json::Object(inside)
        };
        paths.into_iter().zip(insides).map(file).collect()
    })
}

fn content() -> impl Strategy<Value = String> {
    prop_oneof![
        any::<String>(),
        "[\\x00-\\x7f]{0,40}",
        Just(String::new()),
        Just("no end of line".to_owned()),
        Just("\u{feff}\r\n\u{2028}\u{202e}{{ x }} $(id) `id`\n".to_owned()),
        (1_usize..300_000).prop_map(|length| "0123456789abcde\n".repeat(length / 16)),
    ]
}

/// Secrets at places in memory and on the disk, and for somebody whom there may not be.
fn secrets(temper: Temper) -> impl Strategy<Value = Json> {
    let all = [
        json!({ "name": "key", "path": "/run/key" }),
        json!({ "name": "token", "path": "/etc/app/token", "mode": "0440" }),
        json!({ "name": "other", "from": "secret:secrets/all.json#key", "path": "/run/secrets/other" }),
        json!({ "name": "empty", "path": "/run/secrets/empty", "mode": "0644" }),
        json!({ "name": "theirs", "from": "secret:token", "path": "/run/theirs", "owner": "nobody-here" }),
    ];
    let count = if matches!(temper, Temper::Wild) { all.len() } else { all.len() - 1 };
    subsequence(all[..count].to_vec(), 0..=count).prop_map(|secrets| json!(secrets))
}

/// What is not done yet and said so, what fails, and what is looked at in the end.
fn rest(temper: Temper) -> impl Strategy<Value = Map<String, Json>> {
    let nixos = option::weighted(0.1, Just(json!({ "modules": ["a.nix"] })));
    let secrets = option::weighted(0.3, secrets(temper));
    let health = option::weighted(0.2, Just(json!([{ "command": ["true"] }])));
    let run = option::of((1_u32..90).prop_map(|minutes| json!({ "interval": format!("{minutes}m") })));
    (nixos, secrets, health, run).prop_map(|(nixos, secrets, health, run)| {
        let rest = [("nixos", nixos), ("secrets", secrets), ("health", health), ("run", run)]
            .map(|(key, value)| (key, json!(value)));
        without_nulls(rest)
    })
}

fn without_nulls<const N: usize>(entries: [(&str, Json); N]) -> Map<String, Json> {
    let said = entries.into_iter().filter(|(_, value)| !value.is_null());
    said.map(|(key, value)| (key.to_owned(), value)).collect()
}
