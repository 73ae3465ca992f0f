//! What must be true of any bytes that stand in a file of a site.
//!
//! Shared by libFuzzer (`fuzz_targets/parse.rs`) and by the driver that needs no nightly
//! (`crates/orch-model/tests/fuzz.rs`).

use orch_model::{Catalog, HostName, Place, Problems, Request, Scope, Source, Sources, parse, resolve};

/// The files that an input may stand in; its first byte chooses one.
const PATHS: [&str; 10] = [
    "site.yaml",
    "hosts/father.yaml",
    "manifests/web.yaml",
    "specs/base.yaml",
    "presets/small.yaml",
    "postures/dev.yaml",
    "manifests/web.json",
    "manifests/web.toml",
    "specs/base.json",
    "hosts/father.toml",
];

/// What stands in the files that the input does not replace.
const OTHERS: [(&str, &str); 6] = [
    ("site", "domain: home.example\nssh_keys: {a@b: ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIE}\n"),
    ("hosts", "provider: local\n"),
    (
        "manifests",
        "schema_version: 2\nname: web\nnodes: [{name: a, type: vm, spec: base, preset: small, count: 2}]\n",
    ),
    ("specs", "schema_version: 1\naccess: {users: [{name: ops, ssh_keys: [a@b]}]}\n"),
    ("presets", "cores: 1\nmemory: 512\ndisk: 1\n"),
    ("postures", "sudo: {nopasswd: true}\n"),
];

/// Reads the input as a file of a site and checks all that is promised of it.
pub(crate) fn run(data: &[u8]) {
    let Some((choice, content)) = data.split_first() else {
        return;
    };
    let path = PATHS[usize::from(*choice) % PATHS.len()];
    let sources = site_with(path, content);
    match parse(&sources, Scope::Site) {
        Err(problems) => check_problems(&problems, &sources),
        Ok(catalog) => {
            check_problems(catalog.warnings(), &sources);
            check_fleets(&catalog, &sources);
        }
    }
}

/// The small site, in which one file says what the input says.
fn site_with(path: &str, content: &[u8]) -> Sources {
    let folder = |path: &str| path.split(['/', '.']).next().unwrap_or_default().to_owned();
    let others = PATHS.iter().take(OTHERS.len()).zip(OTHERS);
    let others = others.filter(|(_, (other, _))| folder(path) != *other);
    let others = others.filter_map(|(path, (_, text))| source(path, text.as_bytes()));
    Sources::new(others.chain(source(path, content)).collect())
}

fn source(path: &str, content: &[u8]) -> Option<Source> {
    Some(Source { path: path.to_owned(), place: Place::of(path)?, content: Ok(content.to_vec()) })
}

/// Every problem lies within its file and cannot drive a terminal.
fn check_problems(problems: &Problems, sources: &Sources) {
    for problem in problems.iter() {
        let Some(file) = &problem.file else { continue };
        let source =
            sources.iter().find(|source| source.path == *file).expect("a problem names a file of the site");
        let Ok(bytes) = &source.content else { continue };
        let line = bytes.split(|byte| *byte == b'\n').nth(problem.position.line - 1);
        let line = line.expect("a problem's line is one of the file");
        // A byte order mark is not counted, and characters may have several bytes: never more columns than bytes.
        assert!((1..=line.len() + 1).contains(&problem.position.column), "{problem}");
        if let Some(excerpt) = &problem.excerpt {
            let length = excerpt.line.chars().count();
            assert!(excerpt.width >= 1 && excerpt.indent <= length && length <= 200, "{problem}");
        }
    }
    let told = problems.to_string();
    assert!(!told.contains(|c: char| c.is_control() && c != '\n'), "a control character is told: {told:?}");
}

/// What could be parsed resolves, or says why not; the same way twice.
fn check_fleets(catalog: &Catalog<'_>, sources: &Sources) {
    let host: HostName = "father".parse().expect("father is a host name");
    for manifest in catalog.manifests() {
        let request = Request { manifest: manifest.clone(), host: Some(host.clone()), mode: None };
        match (resolve(catalog, &request), resolve(catalog, &request)) {
            (Ok(first), Ok(second)) => {
                let bytes = serde_json::to_vec(&first).expect("a fleet can be written");
                assert_eq!(bytes, serde_json::to_vec(&second).expect("a fleet can be written"));
            }
            (Err(first), Err(second)) => {
                assert_eq!(first, second);
                check_problems(&first, sources);
            }
            _ => unreachable!("a request is answered in two ways"),
        }
    }
}
