//! The roles that every installation has, and what they allow.

use std::collections::BTreeSet;

use super::state::State;

const VM_USER: &str =
    "VM.Audit VM.Backup VM.Config.CDROM VM.Config.Cloudinit VM.Console VM.GuestAgent.Audit VM.PowerMgmt";
const VM_ADMIN: &str = "VM.Allocate VM.Clone VM.Config.CPU VM.Config.Disk VM.Config.HWType VM.Config.Memory \
    VM.Config.Network VM.Config.Options VM.GuestAgent.FileRead VM.GuestAgent.FileSystemMgmt VM.GuestAgent.FileWrite \
    VM.GuestAgent.Unrestricted VM.Migrate VM.Replicate VM.Snapshot VM.Snapshot.Rollback";
const DATASTORE_USER: &str = "Datastore.AllocateSpace Datastore.Audit";
const DATASTORE_ADMIN: &str =
    "Datastore.Allocate Datastore.AllocateSpace Datastore.AllocateTemplate Datastore.Audit";
const SDN_USER: &str = "SDN.Audit SDN.Use";
const AUDITOR: &str =
    "Datastore.Audit Mapping.Audit Pool.Audit SDN.Audit Sys.Audit VM.Audit VM.GuestAgent.Audit";
const REST: &str = "Group.Allocate Mapping.Audit Mapping.Modify Mapping.Use Permissions.Modify Pool.Allocate Pool.Audit \
    Realm.Allocate Realm.AllocateUser SDN.Allocate Sys.AccessNetwork Sys.Audit Sys.Console Sys.Incoming Sys.Modify \
    Sys.PowerMgmt Sys.Syslog User.Modify";
const SYS_ADMIN: &str = "Sys.Audit Sys.Console Sys.Syslog Mapping.Audit Mapping.Modify Mapping.Use";

/// The roles by their names.
pub(super) const NAMES: &[&str] = &[
    "Administrator",
    "NoAccess",
    "PVEAdmin",
    "PVEAuditor",
    "PVEDatastoreAdmin",
    "PVEDatastoreUser",
    "PVEPoolAdmin",
    "PVESDNUser",
    "PVESysAdmin",
    "PVETemplateUser",
    "PVEVMAdmin",
    "PVEVMUser",
];

fn lists(role: &str) -> &'static [&'static str] {
    match role {
        "Administrator" => &[VM_USER, VM_ADMIN, DATASTORE_ADMIN, SDN_USER, REST],
        "PVEAdmin" => {
            &[VM_USER, VM_ADMIN, DATASTORE_ADMIN, SDN_USER, AUDITOR, "Pool.Allocate SDN.Allocate User.Modify"]
        }
        "PVEAuditor" => &[AUDITOR],
        "PVEDatastoreAdmin" => &[DATASTORE_ADMIN],
        "PVEDatastoreUser" => &[DATASTORE_USER],
        "PVEPoolAdmin" => &["Pool.Allocate Pool.Audit"],
        "PVESDNUser" => &[SDN_USER],
        "PVESysAdmin" => &[SYS_ADMIN],
        "PVETemplateUser" => &["VM.Audit VM.Clone"],
        "PVEVMAdmin" => &[VM_USER, VM_ADMIN],
        "PVEVMUser" => &[VM_USER],
        _ => &[],
    }
}

/// What a role allows: one of every installation, or one that was made.
pub(super) fn privileges(state: &State, role: &str) -> BTreeSet<String> {
    if let Some(made) = state.roles.get(role) {
        return made.clone();
    }
    lists(role).iter().flat_map(|list| list.split_whitespace()).map(str::to_owned).collect()
}

/// Everything that there is to allow.
pub(super) fn all() -> BTreeSet<String> {
    privileges(&State::default(), "Administrator")
}
