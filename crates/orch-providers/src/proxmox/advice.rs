//! What to try next, by what Proxmox says.

/// The way out of what these words tell of.
pub(super) fn hint(words: &str) -> String {
    if let Some((path, privilege)) = missing_privilege(words) {
        // A role on a deeper path takes the place of those above it, so one that has this privilege alone would take away the rest.
        return format!(
            "give the token the privilege {privilege} at {path}: `pveum role modify <role> --append 1 --privs \"{privilege}\"` with the role that it has there or above (`pveum acl list`), or where it has none `pveum acl modify {path} --tokens 'user@realm!name' --roles <role>`"
        );
    }
    let has = |any: &[&str]| any.iter().any(|text| words.contains(text));
    let known = [
        (
            // Where several privileges would do, Proxmox names none.
            &["Permission check failed"][..],
            "give the token VM.Allocate at /vms, with the other privileges that making machines takes: see `pveum user token permissions <user> <token>`",
        ),
        (
            &["powerdown failed"][..],
            "its system does not shut down when asked: have it run the QEMU guest agent or heed the power button, or stop it by hand (`qm stop <VMID>`), and run again",
        ),
        (
            &[
                "no space left",
                "No space left",
                "out of space",
                "not enough free space",
                "insufficient free space",
            ][..],
            "make room on the datastore, or choose another `datastore` for the host",
        ),
        (
            &["lock file", "is locked"][..],
            "others work on the same machine or storage: wait for them (`pvesh get /cluster/tasks`), and run again",
        ),
        (
            &["not enough memory", "Cannot allocate memory", "cannot allocate memory", "out of memory"][..],
            "free memory on the host, or give the node less",
        ),
        (
            &["already exists"][..],
            "a disk of an earlier machine with this VMID is left: look at it (`pvesm list <storage>`), and remove it if nobody needs it (`pvesm free <volume>`)",
        ),
        (
            &["powerdown failed", "shutdown failed"][..],
            "shut the machine down yourself: what was changed takes effect when it starts again",
        ),
        (&["vcpus allowed"][..], "give the node no more cores than the host has"),
        (
            &["hostname lookup", "no such cluster node", "does not exist in cluster"][..],
            "see whether `node` in the host's file is the name that `pvesh get /nodes` shows",
        ),
        (
            &["storage '", "no such storage"][..],
            "see whether the storage exists on that node and may hold this (`pvesm status`)",
        ),
        (
            &["does not exist", "no such file", "unable to find configuration file", "No such file"][..],
            "see whether the image or template is there (`pvesm list <storage>`, `qm list`), and how the host's `images` name it",
        ),
        (&["protection"][..], "take the protection off the machine by hand if it is to go"),
        (&["bridge"][..], "see whether `bridge` in the host's file is a bridge of that node"),
    ];
    let found = known.iter().find(|(texts, _)| has(texts));
    found
        .map_or("look at the task in Proxmox, mend what it complains about, and run again", |(_, hint)| hint)
        .to_owned()
}

/// The path and the privilege that a token lacks, from `Permission check failed (/vms/101, VM.Allocate)`.
fn missing_privilege(words: &str) -> Option<(&str, &str)> {
    let (_, rest) = words.split_once("Permission check failed (")?;
    let (path, privileges) = rest.split_once(')')?.0.split_once(", ")?;
    Some((path, privileges.split('|').next().unwrap_or(privileges)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_privilege_is_named_with_its_path_and_the_command_that_grants_it() {
        let said = hint("Permission check failed (/storage/local, Datastore.AllocateTemplate)");
        assert!(said.contains("Datastore.AllocateTemplate at /storage/local"), "{said}");
        assert!(said.contains("pveum acl modify /storage/local --tokens"), "{said}");
        let said = hint("Permission check failed (/vms/101, VM.GuestAgent.Audit|VM.GuestAgent.Unrestricted)");
        assert!(said.contains("--append 1 --privs \"VM.GuestAgent.Audit\"`"), "{said}");
    }

    #[test]
    fn causes_have_hints_of_their_own() {
        assert!(hint("zfs error: out of space").contains("make room"));
        assert!(hint("hostname lookup 'pveX' failed - failed to get address info").contains("`node`"));
        assert!(hint("start failed: not enough memory").contains("memory"));
        assert!(hint("VM quit/powerdown failed - got timeout").contains("qm stop"));
        assert!(hint("Permission check failed").contains("VM.Allocate"));
        assert!(hint("whatever").contains("run again"));
    }
}
