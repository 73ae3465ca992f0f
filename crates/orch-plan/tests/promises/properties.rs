//! What holds for every fleet in every world, by trying many.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use orch_model::{Fleet, Size};
use orch_plan::{
    Abilities, Action, Applied, DiskAbility, Goal, HostView, Machine, MachineRef, MachineState, Marks,
    Observed, Plan, Selection, Selector, Verb, Verdict, plan,
};
use proptest::prelude::*;
use proptest::sample::Index;
use uuid::Uuid;

use crate::simulate::World;
use crate::site::fleet;

/// One node of a manifest, with links to nodes before it.
#[derive(Debug, Clone)]
#[expect(clippy::struct_excessive_bools, reason = "each is a coin that is thrown on its own")]
struct Draft {
    is_pve: bool,
    is_large: bool,
    has_spec: bool,
    insists: bool,
    on_metal: bool,
    parent: Option<Index>,
    depends_on: Vec<Index>,
}

/// One machine of a world.
#[derive(Debug, Clone)]
struct Sighting {
    whose: Whose,
    state: MachineState,
    is_large: bool,
    disk: u32,
    is_old_image: bool,
    /// Whether its configuration is the wanted one, another, none or cannot be told.
    config: u8,
    vmid: Option<u32>,
    has_our_name: bool,
}

#[derive(Debug, Clone)]
enum Whose {
    Node(Index),
    Leftover,
    OtherSite(Index),
    OtherManifest(Index),
    OtherHost(Index),
    Nobody(Index),
}

#[derive(Debug, Clone)]
struct Case {
    fleet: Fleet,
    observed: Observed,
    goal: Goal,
    /// Which of the steps that may come next comes next.
    choices: Vec<Index>,
    /// After how many actions the first run is killed.
    killed_after: usize,
}

fn drafts() -> impl Strategy<Value = Vec<Draft>> {
    let draft = (
        any::<[bool; 5]>(),
        proptest::option::weighted(0.6, any::<Index>()),
        proptest::collection::vec(any::<Index>(), 0..3),
    );
    let draft = draft.prop_map(|([is_pve, is_large, has_spec, insists, on_metal], parent, depends_on)| {
        Draft { is_pve, is_large, has_spec, insists, on_metal, parent, depends_on }
    });
    proptest::collection::vec(draft, 1..8)
}

/// The list under `nodes:`. Names run against the file order, so that neither helps the other.
fn manifest(drafts: &[Draft]) -> String {
    let mut text = String::new();
    for (place, draft) in drafts.iter().enumerate() {
        let before = &drafts[..place];
        let name = |place: usize| format!("n{}", drafts.len() - place);
        let kind = if draft.is_pve { "pve" } else { "vm" };
        write!(text, "- {{ name: {}, type: {kind}", name(place)).expect("text can be written");
        let hosts: Vec<usize> = (0..place).filter(|place| before[*place].is_pve).collect();
        let mut add = |key: &str, value: &str| write!(text, ", {key}: {value}").expect("text can be written");
        match &draft.parent {
            Some(parent) if !hosts.is_empty() => add("parent", &name(*parent.get(&hosts))),
            _ if draft.on_metal => add("host", "metal"),
            _ => {}
        }
        let needs: BTreeSet<usize> = match place {
            0 => BTreeSet::new(),
            _ => draft.depends_on.iter().map(|need| need.index(place)).collect(),
        };
        add("depends_on", &format!("[{}]", needs.into_iter().map(name).collect::<Vec<_>>().join(", ")));
        if draft.is_large {
            add("preset", "large");
        }
        if draft.has_spec {
            add("spec", "base");
        }
        if draft.insists {
            add("vmid", &format!("{}", 10_000 + 2 * place));
        }
        text.push_str(" }\n");
    }
    text
}

fn sightings() -> impl Strategy<Value = Vec<Sighting>> {
    let whose = prop_oneof![
        8 => any::<Index>().prop_map(Whose::Node),
        1 => Just(Whose::Leftover),
        1 => any::<Index>().prop_map(Whose::OtherSite),
        1 => any::<Index>().prop_map(Whose::OtherManifest),
        1 => any::<Index>().prop_map(Whose::OtherHost),
        2 => any::<Index>().prop_map(Whose::Nobody),
    ];
    let state = prop_oneof![
        4 => Just(MachineState::Running),
        1 => Just(MachineState::Stopped),
        1 => Just(MachineState::Partial),
    ];
    let seen = (
        whose,
        state,
        any::<bool>(),
        prop_oneof![3 => Just(10_u32), 1 => 1_u32..100],
        prop::bool::weighted(0.2),
        0_u8..4,
        proptest::option::of(10_000_u32..10_014),
        any::<bool>(),
    );
    let seen = seen.prop_map(|(whose, state, is_large, disk, is_old_image, config, vmid, has_our_name)| {
        Sighting { whose, state, is_large, disk, is_old_image, config, vmid, has_our_name }
    });
    proptest::collection::vec(seen, 0..14)
}

fn abilities() -> impl Strategy<Value = Abilities> {
    let disk = prop_oneof![Just(DiskAbility::Fixed), Just(DiskAbility::Grow), Just(DiskAbility::Any)];
    (any::<bool>(), any::<bool>(), disk).prop_map(|(cores, memory, disk)| Abilities { cores, memory, disk })
}

/// A world that can be: what lives on a node is there only where that node is, and a name or VMID is one machine's.
fn observe(fleet: &Fleet, sightings: &[Sighting], abilities: Abilities, metal_answers: bool) -> Observed {
    let mut observed = Observed::default();
    for host in fleet.hosts.keys() {
        let answers = host.as_str() != "metal" || metal_answers;
        let view = if answers {
            HostView::Seen { machines: Vec::new(), abilities }
        } else {
            HostView::Unreachable { why: "it is off".into() }
        };
        observed.hosts.insert(host.clone(), view);
    }
    let of_nodes = |at: &usize| match &sightings[*at].whose {
        Whose::Node(index) => index.index(fleet.nodes.len()),
        _ => fleet.nodes.len(),
    };
    let mut order: Vec<usize> = (0..sightings.len()).collect();
    order.sort_by_key(of_nodes);
    for at in order {
        place(fleet, &mut observed, &sightings[at], at);
    }
    observed
}

fn place(fleet: &Fleet, observed: &mut Observed, sighting: &Sighting, at: usize) {
    let node = match &sighting.whose {
        Whose::Node(index)
        | Whose::OtherSite(index)
        | Whose::OtherManifest(index)
        | Whose::OtherHost(index)
        | Whose::Nobody(index) => index.get(&fleet.nodes),
        Whose::Leftover => &fleet.nodes[0],
    };
    let host = &node.identity.host;
    let Some(HostView::Seen { machines, .. }) = observed.hosts.get_mut(host) else {
        return;
    };
    let is_ours = |machine: &Machine| machine.marks.as_ref().is_some_and(|marks| marks.site == fleet.site);
    let parent_is_there = node.parent.as_ref().is_none_or(|parent| {
        machines.iter().any(|other| is_ours(other) && other.marks.as_ref().is_some_and(|m| m.node == *parent))
    });
    if matches!(sighting.whose, Whose::Node(_)) && !parent_is_there {
        return;
    }
    let on_proxmox = host.as_str() == "pve" && node.parent.is_none();
    let vmid = sighting.vmid.filter(|vmid| on_proxmox && machines.iter().all(|m| m.vmid != Some(*vmid)));
    let name = if at.is_multiple_of(2) { node.identity.plain_name() } else { node.identity.distinct_name() };
    let is_free = machines.iter().all(|other| other.name != name);
    let name = if sighting.has_our_name && is_free { name } else { format!("machine-{at}") };
    machines.push(Machine {
        id: format!("id-{at}"),
        name,
        marks: marks(fleet, &sighting.whose, at),
        inside: None,
        state: sighting.state,
        size: Size {
            cores: if sighting.is_large { 4 } else { 1 },
            memory: if sighting.is_large { 8192 } else { 1024 },
            disk: sighting.disk,
        },
        kind: None,
        image: sighting.is_old_image.then(|| "old".to_owned()),
        vmid,
        keys: orch_plan::Keys::Unknown,
        applied: match (sighting.config, &node.config) {
            (0, Some(config)) => Applied::Digest(config.digest()),
            (1, _) => Applied::Digest(orch_model::Digest::of_bytes(b"other")),
            (2, _) => Applied::Never,
            _ => Applied::Unknown,
        },
    });
}

fn marks(fleet: &Fleet, whose: &Whose, at: usize) -> Option<Marks> {
    let name = |index: &Index| index.get(&fleet.nodes).name().clone();
    let host = |index: &Index| index.get(&fleet.nodes).identity.host.clone();
    let uuid = Uuid::from_u128(at as u128 / 2);
    let of = |index: &Index| Marks {
        site: fleet.site.clone(),
        manifest: fleet.manifest.clone(),
        node: name(index),
        host: host(index),
        uuid,
    };
    match whose {
        Whose::Node(index) => Some(of(index)),
        Whose::Leftover => Some(Marks {
            site: fleet.site.clone(),
            manifest: fleet.manifest.clone(),
            node: "gone".parse().expect("gone names a node"),
            host: fleet.nodes[0].identity.host.clone(),
            uuid,
        }),
        Whose::OtherSite(index) => {
            Some(Marks { site: "away".parse().expect("away names a site"), ..of(index) })
        }
        Whose::OtherManifest(index) => {
            Some(Marks { manifest: "n".parse().expect("n names a manifest"), ..of(index) })
        }
        Whose::OtherHost(index) => {
            Some(Marks { host: "mars".parse().expect("mars names a host"), ..of(index) })
        }
        Whose::Nobody(_) => None,
    }
}

fn goals() -> impl Strategy<Value = (Vec<(Index, bool)>, bool)> {
    let only = prop_oneof![
        2 => Just(Vec::new()),
        1 => proptest::collection::vec((any::<Index>(), any::<bool>()), 1..5),
    ];
    (only, any::<bool>())
}

fn cases(verb: Verb) -> impl Strategy<Value = Case> {
    let choices = proptest::collection::vec(any::<Index>(), 1..20);
    let world = (sightings(), abilities(), prop::bool::weighted(0.9));
    (drafts(), world, goals(), choices, 0_usize..12).prop_map(
        move |(drafts, (sightings, abilities, metal_answers), (only, replace), choices, killed_after)| {
            let fleet = fleet(&manifest(&drafts));
            let observed = observe(&fleet, &sightings, abilities, metal_answers);
            let selector = |(index, children): &(Index, bool)| {
                let name = index.get(&fleet.nodes).name().clone();
                if *children { Selector::WithChildren(name) } else { Selector::Name(name) }
            };
            let only = Selection::of(only.iter().map(selector).collect());
            Case { observed, goal: Goal { only, replace, ..Goal::of(verb) }, choices, killed_after, fleet }
        },
    )
}

impl Case {
    fn plan(&self, observed: &Observed) -> Plan {
        plan(&self.fleet, observed, &self.goal).expect("the goal picks nodes of the fleet")
    }

    fn world(&self) -> World<'_> {
        World::new(&self.fleet, self.observed.clone())
    }

    /// Chooses among what may come next as the case says, over and over.
    fn chooser(&self) -> impl FnMut(usize) -> usize {
        let mut choices = self.choices.iter().cycle();
        move |count| choices.next().map_or(0, |index| index.index(count))
    }

    fn is_ours(&self, machine: &Machine) -> bool {
        let marks = machine.marks.as_ref();
        marks.is_some_and(|marks| {
            marks.site == self.fleet.site
                && marks.manifest == self.fleet.manifest
                && self.fleet.hosts.contains_key(&marks.host)
        })
    }

    /// All that is not ours, byte for byte.
    fn strangers(&self, observed: &Observed) -> String {
        let machines =
            observed.hosts.iter().flat_map(|(host, view)| view.machines().iter().map(move |m| (host, m)));
        let strangers: Vec<_> = machines.filter(|(_, machine)| !self.is_ours(machine)).collect();
        serde_json::to_string(&strangers).expect("machines can be written as JSON")
    }

    fn ours(&self, observed: &Observed) -> usize {
        observed.hosts.values().flat_map(HostView::machines).filter(|machine| self.is_ours(machine)).count()
    }
}

fn actions(plan: &Plan) -> impl Iterator<Item = &Action> {
    plan.nodes.iter().flat_map(|node| node.down.iter().chain(&node.up))
}

fn is_blocked(verdict: Verdict) -> bool {
    matches!(verdict, Verdict::NeedsReplace | Verdict::Refused)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// The simulator checks on its way that parents are there before children, that children are gone before
    /// parents, that no name or VMID is taken twice, and that each action is confirmed when read back.
    #[test]
    fn what_was_created_is_unchanged_when_planned_again(case in cases(Verb::Create)) {
        let first = case.plan(&case.observed);
        let mut world = case.world();
        world.run(&first, &mut case.chooser());
        prop_assert_eq!(case.strangers(&world.observed), case.strangers(&case.observed));
        let second = case.plan(&world.observed);
        for (before, after) in first.nodes.iter().zip(&second.nodes) {
            let is_settled = after.verdict == Verdict::Unchanged || is_blocked(before.verdict);
            let is_settled = is_settled && (after.is_noop() || before.verdict == Verdict::Refused);
            prop_assert!(is_settled, "{}\nthen\n{}", first, second);
        }
    }

    /// What was refused at first may become possible by what was done, as when a VMID becomes free; it ends.
    #[test]
    fn creating_again_and_again_comes_to_rest(case in cases(Verb::Create)) {
        let mut world = case.world();
        for _ in 0..=case.fleet.nodes.len() {
            let plan = case.plan(&world.observed);
            world.run(&plan, &mut case.chooser());
        }
        let last = case.plan(&world.observed);
        prop_assert!(last.is_noop(), "{}", last);
    }

    #[test]
    fn a_run_that_was_killed_anywhere_is_healed_by_running_it_again(case in cases(Verb::Create)) {
        let mut world = case.world();
        let first = case.plan(&world.observed);
        world.run_until(&first, &mut case.chooser(), case.killed_after);
        prop_assert_eq!(case.strangers(&world.observed), case.strangers(&case.observed));
        let again = case.plan(&world.observed);
        world.run(&again, &mut case.chooser());
        let last = case.plan(&world.observed);
        for (before, after) in first.nodes.iter().zip(&last.nodes) {
            // A machine that was renamed by hand cannot come back where strangers took both of its names meanwhile.
            let is_nameless = after.why.iter().any(|why| why.contains("belong to other machines"));
            let is_settled = after.verdict == Verdict::Unchanged || is_blocked(before.verdict) || is_nameless;
            prop_assert!(is_settled, "{}\nthen\n{}\nthen\n{}", first, again, last);
        }
    }

    #[test]
    fn nothing_of_ours_is_left_after_destroy_and_nothing_else_is_touched(case in cases(Verb::Destroy)) {
        let first = case.plan(&case.observed);
        let mut world = case.world();
        world.run(&first, &mut case.chooser());
        prop_assert_eq!(case.strangers(&world.observed), case.strangers(&case.observed));
        let second = case.plan(&world.observed);
        prop_assert!(second.is_noop(), "{}", second);
        if case.goal.only == Selection::All {
            prop_assert_eq!(case.ours(&world.observed), 0, "{}", first);
        }
    }

    #[test]
    fn a_destruction_that_was_killed_anywhere_is_finished_by_the_next(case in cases(Verb::Destroy)) {
        let mut world = case.world();
        let first = case.plan(&world.observed);
        world.run_until(&first, &mut case.chooser(), case.killed_after);
        let again = case.plan(&world.observed);
        world.run(&again, &mut case.chooser());
        prop_assert!(case.plan(&world.observed).is_noop());
    }

    #[test]
    fn config_changes_no_machine_and_a_second_one_nothing(case in cases(Verb::Config)) {
        let first = case.plan(&case.observed);
        prop_assert!(actions(&first).all(|action| action.verb() == "configure"));
        let mut world = case.world();
        world.run(&first, &mut case.chooser());
        prop_assert!(case.plan(&world.observed).is_noop());
    }

    #[test]
    fn every_plan_is_the_same_twice_reads_back_and_names_only_what_is_ours(
        case in prop_oneof![cases(Verb::Create), cases(Verb::Config), cases(Verb::Destroy)]
    ) {
        let plan = case.plan(&case.observed);
        let bytes = serde_json::to_string(&plan).expect("a plan can be written as JSON");
        prop_assert_eq!(&serde_json::to_string(&case.plan(&case.observed)).expect("the same"), &bytes);
        prop_assert_eq!(&serde_json::from_str::<Plan>(&bytes).expect("a plan reads back"), &plan);
        let ours: Vec<MachineRef> = case.observed.hosts.values().flat_map(HostView::machines)
            .filter(|machine| case.is_ours(machine))
            .map(|machine| MachineRef {
                id: machine.id.clone(),
                name: machine.name.clone(),
                uuid: machine.marks.as_ref().map(|marks| marks.uuid).unwrap_or_default(),
            })
            .collect();
        for machine in actions(&plan).filter_map(Action::machine) {
            prop_assert!(ours.contains(machine), "{:?}", machine);
        }
        for (place, node) in plan.nodes.iter().enumerate() {
            prop_assert!(node.verdict == Verdict::Destroy || node.needs.iter().all(|need| *need < place));
            prop_assert!(!is_blocked(node.verdict) || node.down.is_empty() && !node.why.is_empty());
            prop_assert!(node.verdict != Verdict::Refused || node.is_noop());
        }
    }
}
