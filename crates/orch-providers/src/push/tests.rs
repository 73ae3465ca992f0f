//! What a push makes of what a node answers. The node is a list of answers here; real ones are in `tests/`.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use orch_model::{
    AgeRecipient, ApplyReport, ApplyStatus, Config, HealthReport, Identity, KeyName, ManifestName, Mode,
    NodeKeys, Parcel, Request, ResourceReport, Scope, Sources, parse, resolve,
};
use orch_run::{Configured, Ended, Progress, Target, TransportError, Treasury, TreasuryError};
use uuid::Uuid;

use super::{Binary, Limits, Part, Program, What, configure, inspect};
use crate::remote::{Remote, RunAs};

/// A node that gives these answers, one after the other, and keeps what it was asked.
struct Node {
    answers: Mutex<VecDeque<Result<Ended, &'static str>>>,
    asked: Mutex<Vec<String>>,
    given: Mutex<Vec<String>>,
}

impl Node {
    fn answering(answers: impl IntoIterator<Item = Result<Ended, &'static str>>) -> Self {
        Self {
            answers: Mutex::new(answers.into_iter().collect()),
            asked: Mutex::default(),
            given: Mutex::default(),
        }
    }

    /// The programs that were run, by their names, with the first argument of ours.
    fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }

    async fn configure(&self, program: &Program, config: &Config) -> Result<Configured, TransportError> {
        let deadline = tokio::time::Instant::now() + Duration::from_mins(1);
        let treasury: Arc<dyn Treasury> = Arc::new(Packer);
        let what = What { config, treasury: &treasury, part: Part::Whole };
        configure(self, program, &target(), what, &Limits::default(), deadline).await
    }
}

#[async_trait]
impl Remote for Node {
    async fn run(
        &self,
        argv: &[String],
        _: RunAs,
        input: &[u8],
        _: Duration,
    ) -> Result<Ended, TransportError> {
        let asked = if argv[0].contains("orch-node") { &argv[1] } else { &argv[0] };
        self.asked.lock().unwrap().push(asked.clone());
        self.given.lock().unwrap().push(String::from_utf8_lossy(input).into_owned());
        let answer = self.answers.lock().unwrap().pop_front().unwrap_or_else(|| Ok(ended(0, "")));
        answer.map_err(|why| TransportError::Unreachable {
            node: target().identity,
            why: why.into(),
            evidence: vec![],
        })
    }
}

/// Packs the names of what it is asked for; `gone` cannot be opened.
struct Packer;

impl Treasury for Packer {
    fn token(&self, mention: &orch_model::SecretRef) -> Result<orch_run::Secret, TreasuryError> {
        orch_run::NoTreasury.token(mention)
    }

    fn pack(&self, _: &Config, names: &[KeyName], to: &AgeRecipient) -> Result<Parcel, TreasuryError> {
        let names: Vec<&str> = names.iter().map(KeyName::as_str).collect();
        if names.contains(&"gone") {
            return Err(TreasuryError { what: "it is gone".into(), hint: "bring it back".into() });
        }
        Ok(Parcel::new(format!("{} for {to}", names.join("+"))))
    }

    fn admit(&self, _: &Config, _: &AgeRecipient) -> Result<Vec<String>, TreasuryError> {
        unreachable!("that is not for who brings a configuration")
    }

    fn is_known(&self, _: &AgeRecipient) -> Result<bool, TreasuryError> {
        Ok(false)
    }

    fn has_files(&self) -> bool {
        true
    }

    fn dismiss(&self, _: &Identity, _: &AgeRecipient) -> Result<Vec<String>, TreasuryError> {
        unreachable!("that is not for who brings a configuration")
    }
}

fn target() -> Target {
    let identity = "m.web@father".parse().unwrap();
    Target { identity, uuid: Uuid::nil(), mode: Mode::Push, progress: Progress::to_nobody() }
}

fn there() -> Program {
    Program::There("/bin/orch-node".into())
}

fn ended(code: i32, stdout: &str) -> Ended {
    Ended { code: Some(code), stdout: stdout.into(), stderr: b"a last word\n".to_vec() }
}

pub(crate) fn config(spec: &str) -> Config {
    let spec = format!("schema_version: 1\n{spec}\n");
    let manifest = "{ schema_version: 2, name: m, nodes: [ { name: web, type: vm, spec: base, preset: small, image: x } ] }";
    let sources = Sources::from_texts([
        ("site.yaml", "name: home"),
        ("hosts/father.yaml", "provider: local"),
        ("presets/small.yaml", "{ cores: 1, memory: 1024, disk: 10 }"),
        ("specs/base.yaml", &*spec),
        ("manifests/m.yaml", manifest),
    ]);
    let (name, host): (ManifestName, _) = ("m".parse().unwrap(), "father".parse().unwrap());
    let catalog = parse(&sources, Scope::Manifest { name: &name, host: Some(&host) });
    let catalog = catalog.unwrap_or_else(|problems| panic!("{problems}"));
    let fleet = resolve(&catalog, &Request { manifest: name.clone(), host: Some(host.clone()), mode: None });
    fleet.unwrap_or_else(|problems| panic!("{problems}")).nodes[0].config.clone().unwrap()
}

fn resource(kind: &str, name: &str) -> ResourceReport {
    ResourceReport { kind: kind.into(), name: name.into(), changed: false, skipped: None, detail: None }
}

pub(crate) fn report(config: &Config, resources: Vec<ResourceReport>, error: Option<&str>) -> ApplyReport {
    ApplyReport {
        phase: "config".into(),
        status: if error.is_some() { ApplyStatus::Failed } else { ApplyStatus::Complete },
        node: config.node.clone(),
        spec: config.spec.clone(),
        spec_digest: config.digest(),
        mode: Mode::Push,
        started_at: "2026-01-01T00:00:00Z".into(),
        finished_at: "2026-01-01T00:00:01Z".into(),
        attempts: 1,
        resources,
        health: Vec::new(),
        error: error.map(str::to_owned),
    }
}

fn line(value: &impl serde::Serialize) -> String {
    serde_json::to_string(value).unwrap() + "\n"
}

#[tokio::test]
async fn a_node_that_is_as_wanted_costs_one_round_trip() {
    let config = config("");
    let answer = report(&config, vec![resource("hostname", "web")], None);
    let node = Node::answering([Ok(ended(0, &line(&answer)))]);
    let done = node.configure(&there(), &config).await.unwrap();
    assert_eq!(
        (done, node.asked()),
        (Configured { changed: false, notes: vec![], keys: None }, vec!["push".to_owned()])
    );
}

#[tokio::test]
async fn what_was_skipped_is_told_once_for_each_reason() {
    let config = config("");
    let skip =
        |kind: &str, name, why: &str| ResourceReport { skipped: Some(why.into()), ..resource(kind, name) };
    let changed = ResourceReport { changed: true, ..resource("file", "/etc/motd") };
    let resources = vec![
        skip("package", "htop", "not installable here"),
        changed,
        skip("service", "chrony", "no systemd here"),
        skip("package", "vim", "not installable here"),
    ];
    let node = Node::answering([Ok(ended(0, &line(&report(&config, resources, None))))]);
    let done = node.configure(&there(), &config).await.unwrap();
    let notes = [
        "skipped: service chrony (no systemd here)",
        "skipped: package htop, package vim (not installable here)",
    ];
    assert_eq!(done, Configured { changed: true, notes: notes.map(str::to_owned).into(), keys: None });
}

#[tokio::test]
async fn what_went_wrong_is_told_with_its_evidence() {
    let config = config("health: [ { tcp: 22 } ]");
    let broken = ResourceReport { detail: Some("no such owner".into()), ..resource("file", "/etc/motd") };
    let failed = report(&config, vec![broken], Some("file /etc/motd: no such owner"));
    let complete = report(&config, vec![], None);
    let other = report(&self::config("config: { a: 1 }"), vec![], None);
    let cases = [
        (
            ended(1, &line(&failed)),
            "file /etc/motd: no such owner",
            vec!["file /etc/motd: no such owner", "a last word"],
        ),
        (
            ended(0, &line(&complete)),
            "it was configured, and did not say whether it is healthy",
            vec!["a last word"],
        ),
        (
            ended(0, &line(&other)),
            "it answered for another configuration, of `m.web@father`",
            vec!["a last word"],
        ),
        (ended(127, ""), "the program that configures it is not there yet", vec!["a last word"]),
        (
            ended(126, "{}"),
            "the program that configures it ended with code 126 and no answer",
            vec!["a last word"],
        ),
        (
            Ended { code: None, ..ended(0, "") },
            "the program that configures it was killed",
            vec!["a last word"],
        ),
    ];
    for (answer, why, evidence) in cases {
        let node = Node::answering([Ok(answer.clone())]);
        let error = node.configure(&there(), &config).await.unwrap_err();
        assert_eq!(
            error.to_string(),
            format!("node `m.web@father` could not apply its configuration: {why}")
        );
        assert_eq!(error.evidence(), evidence, "{why}");
        assert_eq!(node.asked(), ["push"], "who is not late is not told to stop: {why}");
    }
    let check = HealthReport { check: "tcp 22".into(), healthy: true, why: None };
    let healthy = ended(0, &line(&ApplyReport { health: vec![check], ..complete }));
    assert!(Node::answering([Ok(healthy)]).configure(&there(), &config).await.is_ok(), "the control");
}

#[tokio::test]
async fn who_is_late_is_told_to_stop_and_counts_as_a_time_limit() {
    let node = Node::answering([Ok(ended(4, ""))]);
    let error = node.configure(&there(), &config("")).await.unwrap_err();
    assert!(error.is_late() && !error.is_passing(), "{error}");
    assert_eq!(
        (error.evidence(), node.asked()),
        (&["a last word".to_owned()][..], vec!["push".to_owned(), "cancel".to_owned()])
    );
}

#[test]
fn a_node_says_that_its_time_is_over_before_nobody_listens_any_more() {
    let limits = Limits::default();
    for (left, of_node) in [(600, 585), (40, 30), (0, 0)] {
        assert_eq!(limits.of_node(Duration::from_secs(left)), Duration::from_secs(of_node));
    }
}

#[tokio::test]
async fn a_missing_program_is_brought_and_counts_only_when_it_is_whole() {
    let config = config("");
    let complete = || Ok(ended(0, &line(&report(&config, vec![], None))));
    let program = Program::Upload(Arc::new(Binary::new(b"a program".to_vec())));
    assert_eq!(program.path(), "/var/lib/orch/bin/orch-node-d69ea8cda2433733");
    let fine = || Ok(ended(0, ""));
    let missing = || Ok(ended(127, ""));

    let steps = [missing(), fine(), fine(), fine(), fine(), fine(), complete()];
    let node = Node::answering(steps);
    node.configure(&program, &config).await.unwrap();
    assert_eq!(node.asked(), ["push", "install", "find", "dd", "chmod", "mv", "push"]);

    let node = Node::answering([missing(), fine(), fine(), Err("the connection broke")]);
    assert!(node.configure(&program, &config).await.unwrap_err().is_passing());
    assert_eq!(node.asked(), ["push", "install", "find", "dd", "rm"], "what was cut is never given its name");

    let node = Node::answering([missing(), fine(), fine(), Ok(ended(1, ""))]);
    let error = node.configure(&program, &config).await.unwrap_err();
    assert!(error.to_string().ends_with("could not be brought there: `dd` failed"), "{error}");
    assert_eq!(error.evidence(), ["a last word"]);
}

#[tokio::test]
async fn looking_asks_once_and_brings_nothing() {
    let config = config("");
    let program = Program::Upload(Arc::new(Binary::new(b"a program".to_vec())));
    let node = Node::answering([Ok(ended(127, ""))]);
    let error = inspect(&node, &program, &target(), &config, &Limits::default()).await.unwrap_err();
    assert!(error.to_string().ends_with("is not there yet"), "{error}");
    assert_eq!(node.asked(), ["inspect"]);
}

fn keys() -> NodeKeys {
    NodeKeys { age: format!("age1{}", "q".repeat(58)).parse().unwrap(), host_key: None, settled: true }
}

fn lacks(names: &str) -> Ended {
    ended(6, &format!("{}{{\"lacking\":[{names}]}}\n", line(&keys())))
}

#[tokio::test]
async fn a_node_that_lacks_secrets_is_given_those_and_no_others() {
    let config = config("");
    let done = Ok(ended(0, &(line(&keys()) + &line(&report(&config, vec![], None)))));
    let node = Node::answering([Ok(lacks(r#""db","api""#)), done]);
    let configured = node.configure(&there(), &config).await.unwrap();
    assert_eq!((configured.changed, configured.keys), (false, Some(keys())));
    assert_eq!(node.asked(), ["push", "push"]);
    let given = node.given.lock().unwrap();
    assert!(!given[0].contains("parcel"), "nothing is sent that was not asked for");
    assert!(given[1].contains(&format!(r#""parcel":"db+api for {}""#, keys().age)));
}

#[tokio::test]
async fn one_that_still_lacks_them_is_a_failure_and_not_asked_for_ever() {
    let node = Node::answering([Ok(lacks(r#""db""#)), Ok(lacks(r#""db""#))]);
    let failed = node.configure(&there(), &config("")).await.unwrap_err();
    assert!(failed.to_string().contains("it still lacks secrets that it was given"), "{failed}");
    assert_eq!(node.asked(), ["push", "push"]);
}

#[tokio::test]
async fn a_secret_that_cannot_be_opened_says_so_and_what_to_do() {
    let node = Node::answering([Ok(lacks(r#""gone""#))]);
    let failed = node.configure(&there(), &config("")).await.unwrap_err();
    assert!(failed.to_string().contains("it is gone (bring it back)"), "{failed}");
    assert_eq!(node.asked(), ["push"]);
}
