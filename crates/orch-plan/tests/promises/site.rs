//! A small site, and worlds written down one machine a line.
//!
//! Nothing here decides anything: texts become a [`Fleet`] by the real parser and resolver, and lines become an
//! [`Observed`] field by field.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::str::FromStr;

use expect_test::Expect;
use orch_model::{Digest, Fleet, HostName, Request, Scope, Size, Sources, parse, resolve};
use orch_plan::{
    Abilities, Applied, DiskAbility, Goal, HostView, Machine, MachineState, Marks, Observed, Plan, Selection,
    Verb, plan,
};
use uuid::Uuid;

/// What the test site holds beside its manifest `m`: three hosts, two sizes, three specs.
const FILES: [(&str, &str); 9] = [
    ("site.yaml", "name: home"),
    (
        "hosts/pve.yaml",
        "provider: proxmox
api_endpoint: https://pve.example:8006
api_token: secret:pve
datastore: zfs
vmid_range: [10000, 10009]
images: { '*': debian-13, pve: pve-9 }",
    ),
    ("hosts/metal.yaml", "provider: local"),
    (
        "hosts/cloud.yaml",
        "{ provider: hetzner, token: secret:cloud, location: nbg1, server_types: { small: cx22, large: cx42 }, images: { '*': debian-13 } }",
    ),
    ("presets/small.yaml", "{ cores: 1, memory: 1024, disk: 10 }"),
    ("presets/large.yaml", "{ cores: 4, memory: 8192, disk: 64 }"),
    ("specs/base.yaml", "schema_version: 1"),
    ("specs/pve.yaml", "{ schema_version: 1, platform: { hypervisor: proxmox } }"),
    (
        "specs/web.yaml",
        "{ schema_version: 1, secrets: [{ name: tls, path: /run/tls }, { name: db, path: /run/db }] }",
    ),
];

/// The nodes of manifest `m` on host `pve`, from the list that stands under `nodes:`.
pub(crate) fn fleet(nodes: &str) -> Fleet {
    fleet_of(&FILES, &manifest(nodes))
}

/// The same, with some files of the site written otherwise.
pub(crate) fn fleet_where(changed: &[(&'static str, &'static str)], nodes: &str) -> Fleet {
    let mut files: BTreeMap<&str, &str> = FILES.into_iter().collect();
    files.extend(changed.iter().copied());
    let files: Vec<_> = files.into_iter().collect();
    fleet_of(&files, &manifest(nodes))
}

fn manifest(nodes: &str) -> String {
    let pattern = if nodes.contains("parent:") { "tiered" } else { "flat" };
    format!("schema_version: 2\nname: m\npattern: {pattern}\nnodes:\n{nodes}\n")
}

fn fleet_of(files: &[(&str, &str)], manifest: &str) -> Fleet {
    let texts = files.iter().copied().chain([("manifests/m.yaml", manifest)]);
    let sources = Sources::from_texts(texts);
    let name = "m".parse().expect("m names a manifest");
    let host: HostName = "pve".parse().expect("pve names a host");
    let scope = Scope::Manifest { name: &name, host: Some(&host) };
    let catalog = parse(&sources, scope).unwrap_or_else(|problems| unreachable!("{problems}\n{manifest}"));
    let request = Request { manifest: name.clone(), host: Some(host.clone()), mode: None };
    resolve(&catalog, &request).unwrap_or_else(|problems| unreachable!("{problems}\n{manifest}"))
}

/// A world from lines. A host that no line speaks of is there and empty.
///
/// ```text
/// pve/101 m-web node=web stopped cores=4     a machine: host, id, name; with `node=` it bears our marks
/// pve/105 db vmid=105                        a stranger's machine
/// pve can cores,disk=grow                    what can be changed in place there; otherwise what is common
/// pve unreachable no route                   it did not answer
/// pve unseen                                 nobody looked
/// ```
///
/// A marked machine is running, of size `small`, with the configuration that the fleet wants, unless it says
/// `stopped` or `partial`, `cores=` `memory=` `disk=`, `config=never|other|unknown`, `image=` `type=` `vmid=`. Its
/// marks may say `site=` `manifest=` `host=`, and `mark=` stands for its uuid, otherwise made from the id.
pub(crate) fn world(fleet: &Fleet, lines: &str) -> Observed {
    let seen = HostView::Seen { machines: Vec::new(), abilities: Abilities::COMMON };
    let mut observed =
        Observed { hosts: fleet.hosts.keys().map(|host| (host.clone(), seen.clone())).collect() };
    for line in lines.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let (place, rest) = line.split_once(' ').expect("a line has a place and more");
        match place.split_once('/') {
            Some((host, id)) => {
                let host = host.parse().expect("a host's name");
                let machine = machine(fleet, &host, id, rest);
                let view = observed.hosts.entry(host).or_insert_with(|| seen.clone());
                let HostView::Seen { machines, .. } = view else { unreachable!("{line}") };
                machines.push(machine);
            }
            None => describe_host(&mut observed, &place.parse().expect("a host's name"), rest),
        }
    }
    observed
}

fn describe_host(observed: &mut Observed, host: &HostName, about: &str) {
    match about.split_once(' ').unwrap_or((about, "")) {
        ("unseen", _) => {
            observed.hosts.remove(host);
        }
        ("unreachable", why) => {
            observed.hosts.insert(host.clone(), HostView::Unreachable { why: why.to_owned() });
        }
        ("can", words) => {
            let Some(HostView::Seen { abilities, .. }) = observed.hosts.get_mut(host) else {
                unreachable!("{about}")
            };
            let words: Vec<&str> = words.split(',').collect();
            let disk = match () {
                () if words.contains(&"disk=any") => DiskAbility::Any,
                () if words.contains(&"disk=grow") => DiskAbility::Grow,
                () => DiskAbility::Fixed,
            };
            *abilities =
                Abilities { cores: words.contains(&"cores"), memory: words.contains(&"memory"), disk };
        }
        other => unreachable!("{other:?}"),
    }
}

fn machine(fleet: &Fleet, host: &HostName, id: &str, about: &str) -> Machine {
    let mut words = about.split_whitespace();
    let name = words.next().expect("a machine has a name").to_owned();
    let words: Vec<&str> = words.collect();
    let said = |key: &str| words.iter().find_map(|word| word.strip_prefix(key)?.strip_prefix('='));
    let number = |key: &str| said(key).map(|text| text.parse::<u32>().expect("a number"));
    let word = |key: &str, default: &str| said(key).unwrap_or(default).to_owned();
    let marks = said("node").map(|node| Marks {
        site: word("site", fleet.site.as_str()).parse().expect("a site's name"),
        manifest: word("manifest", fleet.manifest.as_str()).parse().expect("a manifest's name"),
        node: node.parse().expect("a node's name"),
        host: word("host", host.as_str()).parse().expect("a host's name"),
        uuid: said("mark").map_or_else(|| mark(id), mark),
    });
    Machine {
        id: id.to_owned(),
        name,
        inside: said("inside").map(str::to_owned),
        state: match () {
            () if words.contains(&"stopped") => MachineState::Stopped,
            () if words.contains(&"partial") => MachineState::Partial,
            () => MachineState::Running,
        },
        size: Size {
            cores: number("cores").unwrap_or(1),
            memory: number("memory").unwrap_or(1024),
            disk: number("disk").unwrap_or(10),
        },
        kind: said("type").map(|kind| kind.parse().expect("a type")),
        image: said("image").map(str::to_owned),
        vmid: number("vmid"),
        keys: orch_plan::Keys::Unknown,
        applied: match said("config") {
            Some("never") => Applied::Never,
            Some("other") => Applied::Digest(Digest::of_bytes(b"other")),
            Some("unknown") => Applied::Unknown,
            _ => wanted(fleet, marks.as_ref()).map_or(Applied::Unknown, Applied::Digest),
        },
        marks,
    }
}

fn wanted(fleet: &Fleet, marks: Option<&Marks>) -> Option<Digest> {
    let node = fleet.nodes.iter().find(|node| Some(node.name()) == marks.map(|marks| &marks.node))?;
    Some(node.config.as_ref()?.digest())
}

/// The uuid that a short text stands for.
pub(crate) fn mark(text: &str) -> Uuid {
    Uuid::from_u128(text.bytes().fold(0, |number, byte| number << 8 | u128::from(byte)))
}

/// A goal as on the command line: `create --replace --only a,tag:b,c+`.
pub(crate) fn goal(text: &str) -> Goal {
    let mut words = text.split_whitespace();
    let verb = match words.next() {
        Some("create") => Verb::Create,
        Some("config") => Verb::Config,
        Some("destroy") => Verb::Destroy,
        other => unreachable!("{other:?}"),
    };
    let mut goal = Goal::of(verb);
    while let Some(word) = words.next() {
        match word {
            "--replace" => goal.replace = true,
            "--reboot" => goal.reboot = true,
            "--rollback-succeeded" => goal.staging.rollback_succeeded = true,
            "--strategy" => goal.staging.strategy = next(&mut words),
            "--max-fail" => goal.staging.max_fail = Some(next(&mut words)),
            "--batch" => {
                let shares = words.next().expect("--batch takes shares").split(',');
                goal.staging.batches = shares.map(|text| text.parse().expect("a share")).collect();
            }
            "--only" => {
                let selectors = words.next().expect("--only takes selectors").split(',');
                goal.only = Selection::of(selectors.map(|text| text.parse().expect("a selector")).collect());
            }
            other => unreachable!("{other}"),
        }
    }
    goal
}

fn next<'w, T: FromStr<Err: Debug>>(words: &mut impl Iterator<Item = &'w str>) -> T {
    words.next().expect("the option takes a value").parse().expect("the value can be read")
}

/// A plan where the goal can be planned.
pub(crate) fn planned(goal_text: &str, fleet: &Fleet, observed: &Observed) -> Plan {
    plan(fleet, observed, &goal(goal_text)).unwrap_or_else(|problems| unreachable!("{problems}"))
}

/// Compares what a person reads of a plan. Digests are left out: they have a test of their own.
pub(crate) fn check(goal_text: &str, nodes: &str, lines: &str, expected: &Expect) {
    check_fleet(goal_text, &fleet(nodes), lines, expected);
}

/// The same, for a fleet that is there already.
pub(crate) fn check_fleet(goal_text: &str, fleet: &Fleet, lines: &str, expected: &Expect) {
    let shown = match plan(fleet, &world(fleet, lines), &goal(goal_text)) {
        Ok(plan) => without_digests(&plan.to_string()),
        Err(problems) => format!("{problems}\n"),
    };
    expected.assert_eq(&shown);
}

fn without_digests(text: &str) -> String {
    let lines = text.lines().filter(|line| !line.starts_with("plan "));
    let lines = lines.map(|line| match line.split_once(" (") {
        Some((start, rest)) if line.trim_start().starts_with("configure ") => {
            format!("{start}{}", rest.split_once(')').map_or("", |(_, end)| end))
        }
        _ => line.to_owned(),
    });
    lines.map(|line| line + "\n").collect()
}
