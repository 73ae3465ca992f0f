//! A whole Debian with a systemd of its own, made once by debootstrap from where this computer's apt takes its packages,
//! and kept for later runs.

use std::env;
use std::fs::{self, File, OpenOptions};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use super::{Need, lacks, skip_unless_required};

/// What is in it besides the smallest system that can install packages.
const PACKAGES: &str =
    "systemd,systemd-sysv,dbus,libpam-systemd,openssh-server,sudo,fail2ban,python3-systemd";
/// What the tests can do without, and would have to copy each time.
const BALLAST: [&str; 6] = [
    "usr/share/doc",
    "usr/share/info",
    "usr/share/locale",
    "usr/share/man",
    "var/cache/apt",
    "var/lib/apt/lists",
];
/// Changes whenever what is made here does.
const RECIPE: &str = "1";

/// Where the root file system is. Where it cannot be had, the test's name and the reason are said, and the test has to
/// return.
#[track_caller]
pub(crate) fn debian() -> Option<&'static Path> {
    static MADE: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    let needs = ["debootstrap", "setpriv", "unshare", "nsenter", "mkfs.ext4", "tar"].map(Need::Program);
    if lacks(&[Need::Root, Need::Ssh]) || lacks(&needs) {
        return None;
    }
    match MADE.get_or_init(find_or_make) {
        Ok(path) => Some(path),
        Err(reason) => {
            skip_unless_required(reason);
            None
        }
    }
}

/// The same as a tar archive, made once too.
pub(crate) fn debian_archive(root: &Path) -> PathBuf {
    let archive = root.with_extension("tar");
    let _lock = lock(root.parent().unwrap());
    if !archive.exists() {
        let draft = archive.with_extension("draft");
        let mut tar = Command::new("tar");
        tar.arg("-cf").arg(&draft).args(["--numeric-owner", "-C"]).arg(root).arg(".");
        assert!(tar.status().unwrap().success());
        fs::rename(draft, &archive).unwrap();
    }
    archive
}

fn find_or_make() -> Result<PathBuf, String> {
    let cache =
        env::var_os("ORCH_LAB_CACHE").map_or_else(|| env!("CARGO_TARGET_TMPDIR").into(), PathBuf::from);
    fs::create_dir_all(&cache).map_err(|error| format!("`{}`: {error}", cache.display()))?;
    let Source { mirror, suite } =
        Source::of_this_computer().ok_or("its apt knows no mirror of its own system")?;
    let root = cache.join(format!("root-{suite}-{RECIPE}"));
    let _lock = lock(&cache);
    if !root.exists() {
        let draft = cache.join("root.draft");
        let _ = fs::remove_dir_all(&draft);
        debootstrap(&suite, &draft, &mirror, &cache.join("debootstrap.log"))?;
        prune(&draft).map_err(|error| format!("it cannot be finished: {error}"))?;
        fs::rename(draft, &root).map_err(|error| error.to_string())?;
    }
    Ok(root)
}

/// One at a time, also among the processes of several runs.
fn lock(cache: &Path) -> File {
    let file =
        OpenOptions::new().write(true).create(true).truncate(false).open(cache.join("root.lock")).unwrap();
    file.lock().unwrap();
    file
}

/// Makes the system in namespaces that end with this process: whoever kills it ends that too, and what was mounted.
fn debootstrap(suite: &str, into: &Path, mirror: &str, log: &Path) -> Result<(), String> {
    let output = File::create(log).map_err(|error| error.to_string())?;
    let errors = output.try_clone().map_err(|error| error.to_string())?;
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL", "unshare", "--mount", "--pid", "--fork", "--kill-child"]);
    command.args(["--mount-proc", "debootstrap", "--variant=minbase", &format!("--include={PACKAGES}")]);
    command.arg(suite).arg(into).arg(mirror).stdin(Stdio::null()).stdout(output).stderr(errors);
    if command.status().is_ok_and(|status| status.success()) {
        return Ok(());
    }
    let said = fs::read_to_string(log).unwrap_or_default();
    Err(format!("debootstrap failed: {}", said.lines().last().unwrap_or("it said nothing")))
}

/// Takes away what tests do not need, and what would reach beyond this computer.
fn prune(root: &Path) -> std::io::Result<()> {
    for folder in BALLAST.map(|name| root.join(name)).iter().filter(|folder| folder.exists()) {
        fs::remove_dir_all(folder)?;
    }
    fs::create_dir_all(root.join("var/cache/apt/archives/partial"))?;
    fs::create_dir_all(root.join("var/lib/apt/lists/partial"))?;
    fs::write(root.join("etc/apt/sources.list"), "")?;
    fs::write(root.join("etc/resolv.conf"), "")?;
    // Switched on by its package, and failing until it is told where the log is.
    fs::remove_file(root.join("etc/systemd/system/multi-user.target.wants/fail2ban.service"))
}

/// Where packages come from.
#[derive(Debug, PartialEq, Eq)]
struct Source {
    mirror: String,
    suite: String,
}

impl Source {
    /// Where this computer's apt takes its own system from.
    fn of_this_computer() -> Option<Self> {
        let about = fs::read_to_string("/etc/os-release").ok()?;
        let suite = about.lines().find_map(|line| line.strip_prefix("VERSION_CODENAME="))?.trim_matches('"');
        let lists = fs::read_dir("/etc/apt/sources.list.d").into_iter().flatten().flatten();
        let files = lists.map(|entry| entry.path()).chain([PathBuf::from("/etc/apt/sources.list")]);
        let texts = files.filter_map(|file| fs::read_to_string(file).ok());
        texts
            .into_iter()
            .find_map(|text| mirror_of(&text, suite))
            .map(|mirror| Self { mirror, suite: suite.into() })
    }
}

/// The mirror of a suite, by a list of sources in either of apt's two forms.
fn mirror_of(text: &str, suite: &str) -> Option<String> {
    let has_suite = |words: &str| words.split_whitespace().any(|word| word == suite);
    let line = text.lines().filter_map(|line| line.strip_prefix("deb ")).find(|line| has_suite(line));
    if let Some(line) = line {
        return line.split_whitespace().find(|word| word.starts_with("http")).map(str::to_owned);
    }
    text.split("\n\n").find_map(|entry| {
        let field = |name: &str| entry.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        let uri = field("URIs")?.split_whitespace().next()?;
        has_suite(field("Suites")?).then(|| uri.to_owned())
    })
}

#[test]
fn the_mirror_of_this_system_is_found_in_both_forms_of_sources() {
    let cases = [
        ("deb http://a.example/debian x main\n", Some("http://a.example/debian")),
        ("deb [signed-by=/k] http://a.example/debian x-updates x main\n", Some("http://a.example/debian")),
        ("# deb http://a.example/debian x main\n", None),
        (
            "Types: deb\nURIs: http://b.example/d\nSuites: other\n\nTypes: deb\nURIs: http://c.example/d\nSuites: x x-updates\n",
            Some("http://c.example/d"),
        ),
        ("Types: deb\nURIs: http://b.example/d\nSuites: x-security\n", None),
    ];
    for (text, mirror) in cases {
        assert_eq!(mirror_of(text, "x").as_deref(), mirror, "{text}");
    }
}
