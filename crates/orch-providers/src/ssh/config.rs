//! What `ssh` reads: a configuration and the pinned keys, as text.

use std::fmt::Write as _;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use orch_model::PublicKey;

use super::quote;
use super::settings::{SshSettings, Whereabouts};
use super::way::Hop;

/// How a hop is reached through the one before it.
pub(super) enum Jump {
    /// By the name of the one before it, in whatever file this text is put.
    ByName,
    /// By the configuration in this file. `ssh` itself would not quote the name of the file.
    Through(PathBuf),
}

/// One hop with what is written of it.
pub(super) struct Entry<'a> {
    /// The hop.
    pub(super) hop: &'a Hop,
    /// The alias of the hop before it.
    pub(super) before: Option<&'a str>,
    /// The file with its pinned key.
    pub(super) known_hosts: &'a Path,
    /// The socket of its connection, where it has a shared one.
    pub(super) control: Option<&'a Path>,
}

/// The whole configuration. What cannot be written in one is an error in words.
pub(super) fn render(entries: &[Entry<'_>], jump: &Jump, settings: &SshSettings) -> Result<String, String> {
    let mut text = String::new();
    for entry in entries {
        text.push_str(&host(entry, jump, settings)?);
    }
    text.push_str(&everywhere(settings)?);
    Ok(text)
}

fn host(entry: &Entry<'_>, jump: &Jump, settings: &SshSettings) -> Result<String, String> {
    let hop = entry.hop;
    let mut text = format!(
        "Host {}\n    HostName {}\n    Port {}\n    User {}\n    HostKeyAlias {}\n    UserKnownHostsFile {}\n",
        hop.alias,
        hop.address.replace('%', "%%"),
        hop.port,
        hop.user,
        hop.pin(),
        path(entry.known_hosts)?,
    );
    if let Some(control) = entry.control {
        writeln!(text, "    ControlPath {}", path(control)?).expect("a string takes any text");
    }
    if let Some(way) = way_to(entry, jump, settings)? {
        writeln!(text, "    {way}").expect("a string takes any text");
    }
    text.push('\n');
    Ok(text)
}

/// The line that says how to get to a hop that is not simply there.
fn way_to(entry: &Entry<'_>, jump: &Jump, settings: &SshSettings) -> Result<Option<String>, String> {
    if let Some(proxy) = &entry.hop.proxy {
        let words = proxy.iter().map(|word| word.to_str().ok_or("a proxy's words are not UTF-8"));
        let words: Vec<&str> = words.collect::<Result<_, _>>()?;
        return Ok(Some(proxy_command(&words)));
    }
    let Some(before) = entry.before else { return Ok(None) };
    Ok(Some(match jump {
        Jump::ByName => format!("ProxyJump {before}"),
        Jump::Through(config) => {
            let (ssh, config) = (plain(&settings.ssh)?, plain(config)?);
            let words = [ssh, "-F", config, "-W"].map(|word| quote::word(&word.replace('%', "%%")));
            format!("ProxyCommand {} '[%h]:%p' {before}", words.join(" "))
        }
    }))
}

fn proxy_command(words: &[&str]) -> String {
    let words: Vec<String> = words.iter().map(|word| quote::word(word).replace('%', "%%")).collect();
    format!("ProxyCommand {}", words.join(" "))
}

/// What holds for every hop. Nothing is taken from the user's own configuration or known hosts, and no agent asked but one that
/// was named.
fn everywhere(settings: &SshSettings) -> Result<String, String> {
    let mut identity = path(&settings.identity)?;
    for more in &settings.more_identities {
        write!(identity, "\n    IdentityFile {}", path(more)?).expect("a string takes any text");
    }
    let (only, agent) = match &settings.agent {
        None => ("yes", "none".to_owned()),
        Some(socket) => ("no", path(socket)?),
    };
    Ok(format!(
        "Host *
    IdentityFile {identity}
    IdentitiesOnly {only}
    IdentityAgent {agent}
    BatchMode yes
    PreferredAuthentications publickey
    StrictHostKeyChecking yes
    GlobalKnownHostsFile /dev/null
    CheckHostIP no
    UpdateHostKeys no
    ForwardAgent no
    ConnectTimeout {connect}
    ServerAliveInterval {interval}
    ServerAliveCountMax {count}
    ControlPersist {idle}
{kex}",
        connect = settings.connect.as_secs().max(1),
        interval = settings.alive_interval.as_secs().max(1),
        count = settings.alive_count,
        idle = settings.keep.unwrap_or(settings.idle).as_secs().max(1),
        kex = match settings.whereabouts {
            Whereabouts::Here => "    KexAlgorithms ^curve25519-sha256\n",
            Whereabouts::Elsewhere => "",
        },
    ))
}

/// The lines that pin a hop's keys.
pub(super) fn known_host(hop: &Hop) -> String {
    let line = |key: &PublicKey| {
        let mut words = key.as_str().split(' ');
        let (kind, key) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        format!("{} {kind} {key}\n", hop.pin())
    };
    hop.host_keys.iter().map(line).collect()
}

/// A path as a value: quoted, with nothing in it expanded.
fn path(path: &Path) -> Result<String, String> {
    let text = plain(path)?;
    if text.contains("${") {
        return Err(format!("ssh would read a variable in the path `{text}`"));
    }
    let text = text.replace('%', "%%").replace('\\', "\\\\").replace('"', "\\\"");
    Ok(format!("\"{text}\""))
}

/// A path that can be written in a line of text.
fn plain(path: &Path) -> Result<&str, String> {
    let has_control = path.as_os_str().as_bytes().iter().any(u8::is_ascii_control);
    let refuse = || format!("the path `{}` cannot be written in an ssh_config", path.display());
    path.to_str().filter(|_| !has_control).ok_or_else(refuse)
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    fn hop(alias: &str, proxy: Option<Vec<std::ffi::OsString>>) -> Hop {
        Hop {
            alias: alias.into(),
            address: "10.0.0.5".into(),
            port: 2222,
            user: "ops".into(),
            host_keys: vec!["ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIE made by a person".parse().unwrap()],
            proxy,
            generation: String::new(),
        }
    }

    /// What `ssh` itself understands of a configuration.
    fn understood(text: &str, alias: &str) -> String {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("config");
        std::fs::write(&file, text).unwrap();
        let shown = Command::new("ssh").arg("-G").arg("-F").arg(&file).arg(alias).output().unwrap();
        String::from_utf8(shown.stdout).unwrap()
    }

    #[test]
    fn ssh_understands_paths_and_proxies_as_they_were_meant() {
        if Command::new("ssh").arg("-V").output().is_err() {
            return println!("skipped: there is no ssh");
        }
        let settings = SshSettings::new("/x".into(), "/a b/\"it's\" 100% #1/id".into());
        let proxy = hop("p", Some(vec!["/opt/my tools/orch".into(), "100%".into(), "it's".into()]));
        let inner = hop("inner", None);
        let known = Path::new("/k h/known hosts");
        let entry = |hop, before| Entry { hop, before, known_hosts: known, control: None };
        let entries = [entry(&proxy, None), entry(&inner, Some("p"))];
        let jump = Jump::Through("/a b/100%/config".into());
        let text = render(&entries, &jump, &settings).unwrap();

        let shown = understood(&text, "p");
        assert!(shown.contains("identityfile /a b/\"it's\" 100%% #1/id\n"), "{shown}");
        assert!(
            shown.contains("userknownhostsfile \"/k h/known hosts\"\n")
                || shown.contains("userknownhostsfile /k h/known hosts\n"),
            "{shown}"
        );
        assert!(shown.contains("proxycommand '/opt/my tools/orch' 100%% 'it'\\''s'\n"), "{shown}");
        let shown = understood(&text, "inner");
        assert!(shown.contains("proxycommand ssh -F '/a b/100%%/config' -W '[%h]:%p' p\n"), "{shown}");
        assert!(
            shown.contains("stricthostkeychecking true\n") && shown.contains("identitiesonly yes\n"),
            "{shown}"
        );
        assert!(render(&entries, &Jump::ByName, &settings).unwrap().contains("    ProxyJump p\n"));
    }

    #[test]
    fn a_path_that_ssh_would_understand_as_something_else_is_refused() {
        for hostile in ["/a\nHost *", "/${HOME}/id", "/a\u{7}"] {
            let settings = SshSettings::new("/x".into(), hostile.into());
            assert!(render(&[], &Jump::ByName, &settings).is_err(), "{hostile:?}");
        }
    }

    #[test]
    fn a_pinned_key_is_known_by_the_hops_name_and_nothing_else() {
        assert_eq!(known_host(&hop("web", None)), "orch-web ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIE\n");
    }
}
