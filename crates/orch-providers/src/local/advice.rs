//! What to do about what stands in the way of a machine: which setting of this computer it is, and how it is changed.

use std::fs;
use std::path::Path;

use rustix::io::Errno;

use super::boot::{Need, Trouble};
use super::machine::is_root;

/// What to do about trouble.
pub(crate) fn advice(trouble: &Trouble) -> String {
    let setting = |name: &str| {
        let path = Path::new("/proc/sys").join(name.replace('.', "/"));
        fs::read_to_string(path).ok().map(|text| text.trim().to_owned())
    };
    advise(trouble, is_root(), setting)
}

fn advise(trouble: &Trouble, is_root: bool, setting: impl Fn(&str) -> Option<String>) -> String {
    const OTHERWISE: &str = "see what the last lines say; in a container, run it with more rights";
    let Some(need) = trouble.need else { return OTHERWISE.into() };
    let is = |name: &str, value: &str| setting(name).is_some_and(|found| found == value);
    let allowing = |change: &str| format!("allow it with `sysctl {change}`, or run as root");
    if !is_root && is_refusal(trouble) {
        if need == Need::UserNamespace && is("kernel.unprivileged_userns_clone", "0") {
            return allowing("kernel.unprivileged_userns_clone=1");
        }
        // There a user namespace may be made, but nothing may be done in it.
        if is_in_user_namespace(need) && is("kernel.apparmor_restrict_unprivileged_userns", "1") {
            return allowing("kernel.apparmor_restrict_unprivileged_userns=0");
        }
    }
    if let Some(limit) = limit_of(need) {
        if is(limit, "0") {
            return format!("allow it with `sysctl {limit}=10000`");
        }
        if trouble.is(Errno::NOSPC) {
            let most = setting(limit).map_or_else(String::new, |most| format!(", which is {most}"));
            return format!("as many as may be are there: raise `{limit}`{most}, with `sysctl {limit}=…`");
        }
    }
    remedy(need).unwrap_or(OTHERWISE).into()
}

/// Whether the kernel, or a guard of it, said no.
fn is_refusal(trouble: &Trouble) -> bool {
    trouble.is(Errno::PERM) || trouble.is(Errno::ACCESS)
}

/// Whether it is done in the user namespace of those who are not root, or is that namespace itself.
const fn is_in_user_namespace(need: Need) -> bool {
    !matches!(need, Need::Disk | Need::Libraries)
}

/// The setting that says how many of something there may be.
const fn limit_of(need: Need) -> Option<&'static str> {
    match need {
        Need::UserNamespace => Some("user.max_user_namespaces"),
        Need::MountNamespace => Some("user.max_mnt_namespaces"),
        Need::PidNamespace => Some("user.max_pid_namespaces"),
        Need::NetworkNamespace => Some("user.max_net_namespaces"),
        Need::UtsNamespace => Some("user.max_uts_namespaces"),
        Need::IpcNamespace => Some("user.max_ipc_namespaces"),
        Need::CgroupNamespace => Some("user.max_cgroup_namespaces"),
        Need::Ids | Need::Kernel | Need::Bridge | Need::Pair | Need::Disk | Need::Libraries => None,
    }
}

/// What helps where no setting is to blame.
const fn remedy(need: Need) -> Option<&'static str> {
    match need {
        Need::UserNamespace => Some("run as root, or on a kernel with user namespaces (CONFIG_USER_NS)"),
        Need::Ids => Some(
            "see whether /etc/subuid and /etc/subgid grant this user what they should, and whether `newuidmap` and \
             `newgidmap` are setuid root",
        ),
        Need::Kernel => Some(
            "in a container, /proc and /sys must be whole for new ones to be allowed: run it with more rights, or \
             outside of it",
        ),
        Need::Bridge => Some("load the module with `modprobe bridge`, or use a kernel with CONFIG_BRIDGE"),
        Need::Pair => Some("load the module with `modprobe veth`, or use a kernel with CONFIG_VETH"),
        Need::Disk => {
            Some("see whether loop devices are allowed here (`modprobe loop`), and whether there is room")
        }
        Need::Libraries => {
            Some("name an `orch-node` that needs no libraries, because it is linked statically, in ORCH_NODE")
        }
        Need::MountNamespace
        | Need::PidNamespace
        | Need::NetworkNamespace
        | Need::UtsNamespace
        | Need::IpcNamespace
        | Need::CgroupNamespace => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Names and values.
    type Settings<'s> = &'s [(&'s str, &'s str)];

    const APPARMOR: (&str, &str) = ("kernel.apparmor_restrict_unprivileged_userns", "1");

    /// What somebody who is not root is told on a computer with these settings.
    fn told(need: Need, errno: Errno, settings: Settings<'_>) -> String {
        let trouble =
            Trouble { words: "whatever".into(), need: Some(need), errno: Some(errno.raw_os_error()) };
        let setting = |name: &str| {
            settings.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        };
        advise(&trouble, false, setting)
    }

    #[test]
    fn advice_names_the_setting_that_is_to_blame() {
        let cases: [(Need, Errno, Settings<'_>, &str); 10] = [
            (
                Need::UserNamespace,
                Errno::PERM,
                &[("kernel.unprivileged_userns_clone", "0")],
                "sysctl kernel.unprivileged_userns_clone=1",
            ),
            (Need::UserNamespace, Errno::ACCESS, &[APPARMOR], "apparmor_restrict_unprivileged_userns=0"),
            // Since Ubuntu 24.04 the namespace is made, and then has no rights.
            (Need::Ids, Errno::PERM, &[APPARMOR], "apparmor_restrict_unprivileged_userns=0"),
            (Need::MountNamespace, Errno::PERM, &[APPARMOR], "apparmor_restrict_unprivileged_userns=0"),
            (Need::Bridge, Errno::OPNOTSUPP, &[APPARMOR], "modprobe bridge"),
            (
                Need::UserNamespace,
                Errno::NOSPC,
                &[("user.max_user_namespaces", "0")],
                "sysctl user.max_user_namespaces=10000",
            ),
            (
                Need::PidNamespace,
                Errno::NOSPC,
                &[("user.max_pid_namespaces", "12")],
                "raise `user.max_pid_namespaces`, which is 12",
            ),
            (Need::UserNamespace, Errno::INVAL, &[], "CONFIG_USER_NS"),
            (Need::Ids, Errno::PERM, &[], "newuidmap"),
            (Need::Kernel, Errno::PERM, &[], "/proc and /sys must be whole"),
        ];
        for (need, errno, settings, advice) in cases {
            let told = told(need, errno, settings);
            assert!(told.contains(advice), "{need:?} {errno:?} {settings:?}: {told}");
        }
    }

    #[test]
    fn root_is_not_told_of_what_holds_for_others() {
        let errno = Some(Errno::PERM.raw_os_error());
        let trouble = Trouble { words: String::new(), need: Some(Need::Kernel), errno };
        let advice = advise(&trouble, true, |_| Some("1".into()));
        assert!(!advice.contains("apparmor"), "{advice}");
    }
}
