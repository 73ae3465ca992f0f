//! Removing every machine that is kept in a folder, by what lies there alone: whoever made them, and whatever else is known of
//! them, they are found by their own marks.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use orch_model::{HostName, SiteName, UserName};
use orch_plan::{Action, HostView, Machine, MachineRef, Marks};
use orch_providers::local::{Local, Setup};
use orch_run::{HostLocks, Order, Permit, Progress, Provider as _, RunId, Scope, StateDir};

use crate::machines::Trouble;
use crate::told::told;

/// What the removal is called where somebody asks who has a lock.
const DOING: &str = "lab down";

/// Removes the machines of one host of this computer, those inside of others first. Nothing is removed where somebody works
/// with any of them, or where something lies among them that is not known to be one.
pub(crate) async fn clear(state: &Path, host: &HostName, program: PathBuf) -> Result<(), Trouble> {
    let failed = |error: &dyn std::error::Error| Trouble(told(error));
    let state = StateDir::locate(Some(state)).map_err(|error| failed(&error))?;
    if !state.local().join(host.as_str()).exists() {
        return Ok(());
    }
    let site = state.local();
    let (host, user) = (host.clone(), UserName::root());
    let local =
        Local::new(Setup { host: host.clone(), state: state.clone(), site, user, program, reach: None });
    let sites =
        marks(&look(&local, &host).await?)?.into_iter().map(|(_, marks)| marks.site.clone()).collect();
    let permits = permits(&state, &host, sites)?;
    // What was seen before the locks were had may be another's by now.
    let machines = look(&local, &host).await?;
    for (machine, marks) in innermost_first(&machines, marks(&machines)?) {
        let permit = permits.iter().find(|(site, _)| *site == marks.site).map(|(_, permit)| permit);
        let permit =
            permit.ok_or_else(|| Trouble(format!("machine `{}` was made just now", machine.name)))?;
        local.apply(&destroy(machine, marks), permit).await.map_err(|error| failed(&error))?;
    }
    for (_, permit) in permits.iter().take(1) {
        local.tidy(permit).await.map_err(|error| failed(&error))?;
    }
    Ok(())
}

/// The names of the hosts that have a folder below this one; none where there is none.
pub(crate) fn hosts_below(folder: &Path) -> io::Result<BTreeSet<HostName>> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(BTreeSet::new()),
        entries => entries?,
    };
    let mut hosts = BTreeSet::new();
    for entry in entries {
        // What is not called as a host can be is none.
        hosts.extend(entry?.file_name().to_str().and_then(|name| name.parse::<HostName>().ok()));
    }
    Ok(hosts)
}

async fn look(local: &Local, host: &HostName) -> Result<Vec<Machine>, Trouble> {
    let seen = local.observe(&Scope { host: host.clone(), node: None }).await;
    let HostView::Seen { machines, .. } = seen.map_err(|error| Trouble(told(&error)))? else {
        return Err(Trouble("they cannot be seen".into()));
    };
    Ok(machines)
}

fn marks(machines: &[Machine]) -> Result<Vec<(&Machine, &Marks)>, Trouble> {
    let marked = |machine: &Machine| {
        Trouble(format!("`{}` lies among them and is not known to be one of ours", machine.name))
    };
    machines
        .iter()
        .map(|machine| Ok((machine, machine.marks.as_ref().ok_or_else(|| marked(machine))?)))
        .collect()
}

/// The leave of every site that has machines there, so that no run of any of them is under way.
fn permits(
    state: &StateDir,
    host: &HostName,
    mut sites: BTreeSet<SiteName>,
) -> Result<Vec<(SiteName, Permit)>, Trouble> {
    if sites.is_empty() {
        sites.insert("lab".parse().expect("it is a name"));
    }
    let hosts = BTreeSet::from([host.clone()]);
    let permit = |site: SiteName| {
        let locks = HostLocks::take(state, &site, &hosts, &RunId::new(), DOING);
        Ok((site, Permit::under(locks.map_err(|error| Trouble(told(&error)))?)))
    };
    sites.into_iter().map(permit).collect()
}

fn innermost_first<'m>(
    machines: &'m [Machine],
    mut marked: Vec<(&'m Machine, &'m Marks)>,
) -> Vec<(&'m Machine, &'m Marks)> {
    let around = |machine: &Machine| machines.iter().find(|other| machine.inside.as_ref() == Some(&other.id));
    // A record that names itself, or one that names it, is nobody's; it does not keep this from ending.
    let depth = |machine: &'m Machine| {
        std::iter::successors(Some(machine), |inner| around(inner)).take(machines.len()).count()
    };
    marked.sort_by_key(|(machine, _)| std::cmp::Reverse(depth(machine)));
    marked
}

fn destroy(machine: &Machine, marks: &Marks) -> Order {
    let machine = MachineRef { id: machine.id.clone(), name: machine.name.clone(), uuid: marks.uuid };
    order(marks, Action::Destroy { machine })
}

fn order(marks: &Marks, action: Action) -> Order {
    Order {
        site: marks.site.clone(),
        identity: marks.identity(),
        uuid: marks.uuid,
        action,
        enrolment: None,
        progress: Progress::to_nobody(),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use orch_model::{NodeKind, Size};
    use orch_plan::MachineSpec;
    use uuid::Uuid;

    use super::*;

    const SMALL: Size = Size { cores: 1, memory: 512, disk: 1 };

    fn local(state: &Path) -> Local {
        Local::new(Setup {
            host: host(),
            state: StateDir::locate(Some(state)).expect("it is named"),
            site: state.to_owned(),
            user: UserName::root(),
            program: "orch".into(),
            reach: None,
        })
    }

    pub(crate) fn host() -> HostName {
        "father".parse().expect("a name")
    }

    /// Leaves what a killed driver leaves: machines that are there, one of them inside of another.
    pub(crate) fn leave_machines(state: &Path) {
        for node in ["around", "inside"] {
            let (name, kind, image) = (node.to_owned(), NodeKind::Vm, "this-machine".to_owned());
            let machine = MachineSpec { name, kind, image, size: SMALL, vmid: None, parent: None };
            let (uuid, site) = (Uuid::new_v4(), "home".parse().expect("a name"));
            let (manifest, node) = ("m".parse().expect("a name"), node.parse().expect("a name"));
            let marks = Marks { site, manifest, node, host: host(), uuid };
            let order = order(&marks, Action::Create { machine });
            local(state).leave_half_made(&order).expect("it can be written down");
        }
        // Inside of one that does not run nothing can be made; it could before that was switched off.
        let file = state.join("local/father/inside/machine.json");
        let mut record: serde_json::Value =
            crate::state::read(&file).expect("it is JSON").expect("it is there");
        record["inside"] = "around".into();
        crate::state::write(&file, &record).expect("it can be written");
    }

    #[tokio::test]
    async fn all_machines_of_a_folder_go_by_their_own_marks_and_those_inside_first() {
        let folder = tempfile::tempdir().expect("a folder can be made");
        leave_machines(folder.path());
        let seen = look(&local(folder.path()), &host()).await.expect("they are seen");
        assert_eq!(seen.len(), 2);
        let order: Vec<&str> = innermost_first(&seen, marks(&seen).expect("they are ours"))
            .iter()
            .map(|(machine, _)| machine.name.as_str())
            .collect();
        assert_eq!(order, ["inside", "around"]);
        for _ in 0..2 {
            clear(folder.path(), &host(), "orch".into()).await.expect("nobody is in the way");
            assert!(!folder.path().join("local/father").exists());
        }
    }

    #[tokio::test]
    async fn nothing_is_removed_while_a_run_has_the_host_or_something_else_lies_there() {
        let folder = tempfile::tempdir().expect("a folder can be made");
        leave_machines(folder.path());
        let state = StateDir::locate(Some(folder.path())).expect("it is named");
        let (site, hosts) = ("home".parse().expect("a name"), BTreeSet::from([host()]));
        let run = HostLocks::take(&state, &site, &hosts, &RunId::new(), "create m").expect("it is free");
        let held = clear(folder.path(), &host(), "orch".into()).await.expect_err("it is in use");
        assert!(held.0.contains("create m"), "{held}");
        drop(run);
        fs::create_dir(folder.path().join("local/father/else")).expect("it can be made");
        let strange = clear(folder.path(), &host(), "orch".into()).await.expect_err("it is not ours");
        assert!(strange.0.contains("`else`"), "{strange}");
        assert!(folder.path().join("local/father/around").exists());
    }
}
