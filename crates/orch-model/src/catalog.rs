//! All files of a site as types, with every reference known to hold.
//!
//! A [`Catalog`] exists only where nothing is wrong with the files in its [`Scope`]; what it leaves open is what
//! only a request can say: which manifest, on which host, in which mode.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::borrow::Borrow;
use core::str::FromStr;

use crate::check;
use crate::decode::Decode;
use crate::files::{
    Host, Manifest, Posture, Preset, Site, Spec, bring_up_to_date, conceal_lines, conceal_secrets,
};
use crate::problem::{Problem, Problems};
use crate::resolve::secrets;
use crate::source::{FileKind, Source, Sources};
use crate::text::{self, Finding, Reporter};
use crate::unit::SecretRef;
use crate::word::{HostName, KeyName, ManifestName, PostureName, PresetName, SiteName, SpecName};

/// Which files are looked at.
#[derive(Debug, Clone, Copy)]
pub enum Scope<'s> {
    /// Every file of the site.
    Site,
    /// One manifest and what it reaches: a mistake in an unrelated file stops nobody's work.
    Manifest {
        /// The manifest.
        name: &'s ManifestName,
        /// The host that the command names.
        host: Option<&'s HostName>,
    },
    /// These hosts, and those on the way to them.
    Hosts(&'s BTreeSet<HostName>),
}

/// The files of a site in which every reference holds.
#[derive(Debug)]
pub struct Catalog<'a> {
    pub(crate) site: Parsed<'a, Site>,
    pub(crate) hosts: Files<'a, HostName, Host>,
    pub(crate) manifests: Files<'a, ManifestName, Manifest>,
    pub(crate) specs: Files<'a, SpecName, Spec>,
    pub(crate) presets: Files<'a, PresetName, Preset>,
    pub(crate) postures: Files<'a, PostureName, Posture>,
    warnings: Problems,
}

/// Reads the files of a site that are in scope, and reports all that is wrong with them.
pub fn parse<'a>(sources: &'a Sources, scope: Scope<'_>) -> Result<Catalog<'a>, Problems> {
    let mut catalog = Catalog {
        site: parse_site(sources),
        hosts: Files::index(sources, FileKind::Host),
        manifests: Files::index(sources, FileKind::Manifest),
        specs: Files::index(sources, FileKind::Spec),
        presets: Files::index(sources, FileKind::Preset),
        postures: Files::index(sources, FileKind::Posture),
        warnings: Problems::default(),
    };
    match scope {
        Scope::Site => catalog.parse_everything(),
        Scope::Manifest { name, host } => catalog.parse_reach(name, host)?,
        Scope::Hosts(hosts) => catalog.parse_hosts(hosts)?,
    }
    check::references(&mut catalog);
    let problems = catalog.take_problems(scope);
    if problems.has_errors() {
        return Err(problems);
    }
    catalog.warnings = problems;
    Ok(catalog)
}

/// A secret that a file of the site mentions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mention {
    /// Who mentions it, in words.
    pub by: String,
    /// Where its value is.
    pub secret: SecretRef,
}

/// What can be said of a site whatever else is wrong with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outline {
    /// The mark of everything that it owns.
    pub name: SiteName,
    /// The hosts that are this very computer.
    pub hosts_here: Vec<HostName>,
    /// Whether tokens without audience and expiry are still taken.
    pub accepts_legacy_tokens: bool,
    /// Where the keys are that sign tokens, where the site says so.
    pub signing_keys: BTreeMap<KeyName, SecretRef>,
}

/// Says of a site what can be said whatever else is wrong with it; fails only where its own file makes no sense.
pub fn outline(sources: &Sources) -> Result<Outline, Problems> {
    let mut site = parse_site(sources);
    let problems = site.take_problems();
    if problems.has_errors() {
        return Err(problems);
    }
    let site = site.value.unwrap_or_else(Site::placeholder);
    let mut hosts: Files<'_, HostName, Host> = Files::index(sources, FileKind::Host);
    hosts.parse_all();
    let hosts_here = hosts.names().filter(|name| matches!(hosts.get(name), Some(Host::Local(_))));
    let accepts_legacy_tokens = site.server.as_ref().is_some_and(|server| server.accept_legacy_tokens);
    let signing_keys = site.server.as_ref().map(|server| server.signing_keys.clone()).unwrap_or_default();
    let hosts_here = hosts_here.cloned().collect();
    Ok(Outline { name: site.site_name(), hosts_here, accepts_legacy_tokens, signing_keys })
}

impl Catalog<'_> {
    /// What is out of date, though it can be used.
    pub fn warnings(&self) -> &Problems {
        &self.warnings
    }

    /// Whether the site has a name of its own, by `name` or `domain`. Machines are marked with it, so two sites without one
    /// take each other's machines for their own.
    pub fn is_site_named(&self) -> bool {
        self.site.value.as_ref().is_some_and(|site| site.name.is_some() || site.defaults().domain.is_some())
    }

    /// Whether tokens without audience and expiry are still taken.
    pub fn accepts_legacy_tokens(&self) -> bool {
        let server = self.site.value.as_ref().and_then(|site| site.server.as_ref());
        server.is_some_and(|server| server.accept_legacy_tokens)
    }

    /// Every secret that a file which was read mentions.
    pub fn mentions(&self) -> Vec<Mention> {
        let mut mentions = Vec::new();
        let mut add = |by: String, secret: SecretRef| mentions.push(Mention { by, secret });
        let server = self.site.value.as_ref().and_then(|site| site.server.as_ref());
        for (key, secret) in server.into_iter().flat_map(|server| &server.signing_keys) {
            add(format!("signing key `{key}` of the site"), secret.clone());
        }
        for (name, host) in self.hosts.names().filter_map(|name| Some((name, self.hosts.get(name)?))) {
            if let Some(secret) = host.mention() {
                add(format!("host `{name}`"), secret.clone());
            }
        }
        for (name, spec) in self.specs.names().filter_map(|name| Some((name, self.specs.get(name)?))) {
            for secret in secrets(spec) {
                add(format!("secret `{}` of spec `{name}`", secret.name), secret.from);
            }
        }
        mentions
    }

    /// The names of the manifests, read or not.
    pub fn manifests(&self) -> impl Iterator<Item = &ManifestName> {
        self.manifests.names()
    }

    /// The names of the hosts, read or not.
    pub fn hosts(&self) -> impl Iterator<Item = &HostName> {
        self.hosts.names()
    }

    /// What the manifest says it is for.
    pub fn description(&self, manifest: &ManifestName) -> Option<&str> {
        self.manifests.get(manifest)?.description.as_deref()
    }

    /// Whether a node of the manifest is placed by nobody but the request.
    pub fn needs_host(&self, manifest: &ManifestName) -> bool {
        let homeless = |manifest: &Manifest| {
            manifest.nodes.iter().any(|node| node.parent.is_none() && node.host.is_none())
        };
        self.manifests.get(manifest).is_some_and(homeless)
    }

    /// How many nodes the manifest describes.
    pub fn node_count(&self, manifest: &ManifestName) -> usize {
        let count = |manifest: &Manifest| manifest.nodes.iter().map(|node| node.count.get() as usize).sum();
        self.manifests.get(manifest).map_or(0, count)
    }

    fn parse_everything(&mut self) {
        self.hosts.parse_all();
        self.manifests.parse_all();
        self.specs.parse_all();
        self.presets.parse_all();
        self.postures.parse_all();
    }

    fn parse_reach(&mut self, name: &ManifestName, host: Option<&HostName>) -> Result<(), Problems> {
        let manifest = self.manifests.require(name, "manifest");
        let host = host.and_then(|host| self.hosts.require(host, "host"));
        let unknown: Vec<Problem> = manifest.into_iter().chain(host).collect();
        if !unknown.is_empty() {
            return Err(Problems::new(unknown));
        }
        if let Some(manifest) = self.manifests.get(name) {
            for node in manifest.nodes.iter() {
                self.hosts.parse_if_known(node.host.as_deref());
                self.specs.parse_if_known(node.spec.as_deref());
                self.presets.parse_if_known(node.preset.as_deref());
            }
        }
        for spec in self.specs.parsed() {
            match spec.posture() {
                Ok(named) => self.postures.parse_if_known(Some(named)),
                Err(default) => self.postures.parse_if_known(Some(&default)),
            }
        }
        Ok(())
    }

    fn parse_hosts(&mut self, names: &BTreeSet<HostName>) -> Result<(), Problems> {
        let unknown: Vec<Problem> =
            names.iter().filter_map(|name| self.hosts.require(name, "host")).collect();
        if !unknown.is_empty() {
            return Err(Problems::new(unknown));
        }
        self.parse_ways();
        Ok(())
    }

    /// Reads the hosts on the way to those that were read.
    fn parse_ways(&mut self) {
        let mut seen = 0;
        while seen < self.hosts.parsed.len() {
            seen = self.hosts.parsed.len();
            let jumps: Vec<HostName> = self.hosts.parsed().filter_map(|host| host.jump().cloned()).collect();
            for jump in &jumps {
                self.hosts.parse_if_known(Some(jump));
            }
        }
    }

    fn take_problems(&mut self, scope: Scope<'_>) -> Problems {
        let mut all = self.site.take_problems();
        let mut take = |problems: Problems| all = core::mem::take(&mut all).and(problems);
        take(self.hosts.take_problems(scope));
        take(self.manifests.take_problems(scope));
        take(self.specs.take_problems(scope));
        take(self.presets.take_problems(scope));
        take(self.postures.take_problems(scope));
        all
    }
}

fn parse_site(sources: &Sources) -> Parsed<'_, Site> {
    let mut files = sources.of_kind(FileKind::Site);
    match files.next() {
        None => Parsed { value: Site::absent(), reporter: Reporter::new("site.yaml") },
        Some(source) => {
            let mut parsed = Parsed::read(source);
            for second in files {
                let message = format!("`{}` is a site file too, and a site has one", second.path);
                parsed.reporter.report(Finding::about_file(message));
            }
            parsed
        }
    }
}

/// One file: what could be read of it, and where to say what is wrong with it.
#[derive(Debug)]
pub(crate) struct Parsed<'a, T> {
    pub(crate) value: Option<T>,
    pub(crate) reporter: Reporter<'a>,
}

impl<'a, T: Decode> Parsed<'a, T> {
    fn read(source: &'a Source) -> Self {
        let mut reporter = Reporter::new(&source.path);
        let value = Self::decode(source, &mut reporter);
        Self { value, reporter }
    }

    fn decode(source: &'a Source, reporter: &mut Reporter<'a>) -> Option<T> {
        let text = text::decode_utf8(source, reporter)?;
        let Some(mut value) = text::read(source.place.format, text, reporter) else {
            conceal_lines(source.place.kind, text, reporter);
            return None;
        };
        conceal_secrets(source.place.kind, &value, reporter);
        // A file in which everything is left out says the same as none.
        if value.data == text::Data::Null
            && let Some(absent) = T::absent()
        {
            return Some(absent);
        }
        bring_up_to_date(source.place.kind, &mut value, reporter)?;
        T::decode(&value, reporter)
    }

    fn take_problems(&mut self) -> Problems {
        let emptied = self.reporter.emptied();
        core::mem::replace(&mut self.reporter, emptied).finish()
    }
}

/// The files of one kind: every name is known, and those in scope are read.
#[derive(Debug)]
pub(crate) struct Files<'a, N, T> {
    kind: FileKind,
    sources: BTreeMap<N, &'a Source>,
    parsed: BTreeMap<N, Parsed<'a, T>>,
    /// Files whose name cannot be a key, or is another file's key too. The former matter where the whole site does,
    /// the latter also wherever the name is used, because it is open which file is meant.
    misplaced: Vec<(Option<N>, Problem)>,
}

impl<'a, N: Ord + Clone + FromStr<Err = String>, T: Decode> Files<'a, N, T> {
    fn index(sources: &'a Sources, kind: FileKind) -> Self {
        let mut files =
            Self { kind, sources: BTreeMap::new(), parsed: BTreeMap::new(), misplaced: Vec::new() };
        for source in sources.of_kind(kind) {
            match source.place.stem.parse() {
                Ok(name) => files.insert(name, source),
                Err(why) => files.misplace(None, source, format!("the file's name {why}")),
            }
        }
        files
    }

    fn insert(&mut self, name: N, source: &'a Source) {
        if let Some(first) = self.sources.get(&name) {
            let message = format!("`{}` has the same name: a {} is one file", first.path, self.kind);
            self.misplace(Some(&name), source, message);
            return;
        }
        self.sources.insert(name, source);
    }

    fn misplace(&mut self, name: Option<&N>, source: &Source, message: String) {
        let mut reporter = Reporter::new(&source.path);
        reporter.report(Finding::about_file(message));
        self.misplaced.extend(reporter.finish().iter().map(|problem| (name.cloned(), problem.clone())));
    }

    fn parse_all(&mut self) {
        let unread = self.sources.iter().map(|(name, source)| (name.clone(), Parsed::read(source)));
        self.parsed = unread.collect();
    }

    fn parse_if_known(&mut self, name: Option<&N>) {
        if let Some((name, source)) = name.and_then(|name| self.sources.get_key_value(name))
            && !self.parsed.contains_key(name)
        {
            self.parsed.insert(name.clone(), Parsed::read(source));
        }
    }

    /// Reads the file that a request names; a problem where there is none.
    fn require(&mut self, name: &N, noun: &str) -> Option<Problem>
    where
        N: Borrow<str>,
    {
        self.parse_if_known(Some(name));
        (!self.is_known(name)).then(|| self.unknown(name, noun))
    }

    /// Says that a request names a file that is not there.
    pub(crate) fn unknown(&self, name: &N, noun: &str) -> Problem
    where
        N: Borrow<str>,
    {
        let names = self.sources.keys().map(Borrow::borrow);
        let cx = Reporter::new("");
        let name: &str = name.borrow();
        let problem =
            Problem::with_request(format!("there is no {noun} `{name}` in {}/", self.kind.folder()));
        match crate::decode::suggestion(name, names, &cx) {
            Some(hint) => problem.hint(hint),
            None => problem,
        }
    }

    /// Whether a file of this name exists, broken or not.
    pub(crate) fn is_known(&self, name: &N) -> bool {
        self.sources.contains_key(name)
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &N> + Clone {
        self.sources.keys()
    }

    pub(crate) fn get(&self, name: &N) -> Option<&T> {
        self.parsed.get(name)?.value.as_ref()
    }

    /// Starts a report about a file that was read.
    pub(crate) fn reporter(&self, name: &N) -> Option<Reporter<'a>> {
        self.parsed.get(name).map(|parsed| parsed.reporter.emptied())
    }

    pub(crate) fn parsed(&self) -> impl Iterator<Item = &T> {
        self.parsed.values().filter_map(|parsed| parsed.value.as_ref())
    }

    /// Each file that could be read, with the place for what is wrong with it.
    pub(crate) fn each(&mut self) -> impl Iterator<Item = (&N, &T, &mut Reporter<'a>)> {
        self.parsed.iter_mut().filter_map(|(name, parsed)| {
            let Parsed { value, reporter } = parsed;
            value.as_ref().map(|value| (name, value, reporter))
        })
    }

    fn take_problems(&mut self, scope: Scope<'_>) -> Problems {
        let mut all: Vec<Problem> = Vec::new();
        for (name, problem) in self.misplaced.drain(..) {
            let is_used = name.is_some_and(|name| self.parsed.contains_key(&name));
            if is_used || matches!(scope, Scope::Site) {
                all.push(problem);
            }
        }
        for parsed in self.parsed.values_mut() {
            all.extend(parsed.take_problems().iter().cloned());
        }
        Problems::new(all)
    }
}
