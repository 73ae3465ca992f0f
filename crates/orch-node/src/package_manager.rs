//! The program that installs packages on the node: apt, dnf or pacman, whichever is there.
//!
//! The name of a package is data: it stands after `--`, where nothing is taken for an option.

use std::collections::BTreeSet;
use std::time::Duration;

use orch_model::Package;

use crate::error::ApplyError;
use crate::node::Node;
use crate::tool::Tool;

const QUERY_LIMIT: Duration = Duration::from_secs(30);
const INSTALL_LIMIT: Duration = Duration::from_mins(30);

/// A package manager, with the program that says what is installed.
pub(crate) enum PackageManager {
    Apt { get: Tool, query: Tool, dpkg: Option<Tool> },
    Dnf { dnf: Tool, rpm: Tool },
    Pacman { pacman: Tool },
}

impl PackageManager {
    /// The one of the node, where there is one.
    pub(crate) fn of(node: &Node) -> Option<Self> {
        let apt = || {
            let (get, query) = (node.tool("apt-get")?, node.tool("dpkg-query")?);
            Some(Self::Apt { get, query, dpkg: node.tool("dpkg") })
        };
        let dnf = || Some(Self::Dnf { dnf: node.tool("dnf")?, rpm: node.tool("rpm")? });
        let pacman = || Some(Self::Pacman { pacman: node.tool("pacman")? });
        apt().or_else(dnf).or_else(pacman)
    }

    /// Which of these packages are installed.
    pub(crate) fn installed(&self, packages: &[Package]) -> Result<BTreeSet<Package>, ApplyError> {
        if packages.is_empty() {
            return Ok(BTreeSet::new());
        }
        match self {
            Self::Apt { query, .. } => installed_debs(query, packages),
            Self::Dnf { rpm, .. } => one_by_one(rpm, &["-q", "--whatprovides", "--"], packages),
            Self::Pacman { pacman } => one_by_one(pacman, &["-Q", "--"], packages),
        }
    }

    /// Installs packages, all in one call.
    pub(crate) fn install(&self, packages: &[Package]) -> Result<(), ApplyError> {
        let names = packages.iter().map(Package::as_str);
        match self {
            Self::Apt { get, dpkg, .. } => install_debs(get, dpkg.as_ref(), names),
            Self::Dnf { dnf, .. } => call(dnf, &["-y", "install", "--"], names, &[]),
            Self::Pacman { pacman } => call(pacman, &["-S", "--noconfirm", "--needed", "--"], names, &[]),
        }
    }
}

fn call<'a>(
    tool: &Tool,
    args: &[&'a str],
    names: impl Iterator<Item = &'a str>,
    variables: &[(&str, &str)],
) -> Result<(), ApplyError> {
    let args: Vec<&str> = args.iter().copied().chain(names).collect();
    tool.need(&args, variables, INSTALL_LIMIT).map(drop)
}

/// What apt is told each time: to wait for whoever has the lock, to take a name for nothing but a name, and to ask nobody
/// about settings that were changed by hand, which stay.
const APT: [&str; 10] = [
    "-q",
    "-y",
    "-o",
    "DPkg::Lock::Timeout=120",
    "-o",
    "APT::Cmd::Pattern-Only=true",
    "-o",
    "Dpkg::Options::=--force-confdef",
    "-o",
    "Dpkg::Options::=--force-confold",
];
const APT_VARIABLES: [(&str, &str); 1] = [("DEBIAN_FRONTEND", "noninteractive")];

/// Installs with apt. Where that fails, an earlier run may have been cut, which is brought to its end first; and what apt
/// does not know may be newer than its lists, so these are fetched and it is asked again.
fn install_debs<'a>(
    get: &Tool,
    dpkg: Option<&Tool>,
    names: impl Iterator<Item = &'a str> + Clone,
) -> Result<(), ApplyError> {
    let install = [&APT[..], &["--no-install-recommends", "install", "--"]].concat();
    let Err(first) = call(get, &install, names.clone(), &APT_VARIABLES) else { return Ok(()) };
    if let Some(dpkg) = dpkg {
        // Whatever stands in its way stands in the way of what follows too, which says so with the package's name.
        let rest = ["--force-confdef", "--force-confold", "--configure", "-a"];
        let _ = dpkg.need(&rest, &APT_VARIABLES, INSTALL_LIMIT);
    }
    let update = [&APT[..], &["update"]].concat();
    let has_lists = get.need(&update, &APT_VARIABLES, INSTALL_LIMIT).is_ok();
    match call(get, &install, names, &APT_VARIABLES) {
        // Without new lists nothing new can be said: what was said first is why.
        Err(_) if !has_lists => Err(first),
        ended => ended,
    }
}

/// Asks dpkg for all at once. It tells of those that it knows, and fails where there is one that it does not.
fn installed_debs(query: &Tool, packages: &[Package]) -> Result<BTreeSet<Package>, ApplyError> {
    let format = "-f=${binary:Package}\t${Package}\t${Version}\t${db:Status-Status}\n";
    let names = packages.iter().map(|package| Deb::of(package).name);
    let args: Vec<&str> = ["-W", format, "--"].into_iter().chain(names).collect();
    let said = query.ask(&args, QUERY_LIMIT)?.stdout;
    let said = String::from_utf8_lossy(&said);
    let rows: Vec<Vec<&str>> = said.lines().map(|line| line.split('\t').collect()).collect();
    let is_there = |package: &&Package| rows.iter().any(|row| Deb::of(package).is_in(row));
    Ok(packages.iter().filter(is_there).cloned().collect())
}

/// The name of a package as apt takes it: `name[:architecture][=version|/release]`.
struct Deb<'a> {
    name: &'a str,
    version: Option<&'a str>,
}

impl<'a> Deb<'a> {
    fn of(package: &'a Package) -> Self {
        let text = package.as_str();
        let (name, version) =
            text.split_once('=').map_or((text, None), |(name, version)| (name, Some(version)));
        Self { name: name.split('/').next().unwrap_or(name), version }
    }

    fn is_in(&self, row: &[&str]) -> bool {
        let [full, short, version, "installed"] = row else { return false };
        (self.name == *full || self.name == *short) && self.version.is_none_or(|wanted| wanted == *version)
    }
}

fn one_by_one(tool: &Tool, args: &[&str], packages: &[Package]) -> Result<BTreeSet<Package>, ApplyError> {
    let mut installed = BTreeSet::new();
    for package in packages {
        let args: Vec<&str> = args.iter().copied().chain([package.as_str()]).collect();
        if tool.ask(&args, QUERY_LIMIT)?.is_success() {
            installed.insert(package.clone());
        }
    }
    Ok(installed)
}
