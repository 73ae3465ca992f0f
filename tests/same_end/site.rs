//! A site with one node, as files that a test writes and the program reads.

use std::fs;
use std::path::{Path, PathBuf};

use orch_model::{Config, Identity, Mode, Request, Scope, parse, resolve};
use orch_run::know_secrets;
use orch_secrets::sops::{Policy, encrypt};
use orch_secrets::{Format, Identities, Keyring, Reader, Vault, seal};
use serde_json::{Value as Json, json};

/// What a site says: its files, with a random part in each.
#[derive(Debug, Clone)]
pub(crate) struct Plot {
    pub(crate) site: Json,
    pub(crate) host: Json,
    /// The posture `some`, where there is one.
    pub(crate) posture: Option<Json>,
    pub(crate) spec: Json,
    pub(crate) node: String,
}

impl Default for Plot {
    fn default() -> Self {
        Self {
            site: json!({ "name": "lab", "ssh_keys": { "alice@laptop": KEYS[0] } }),
            host: json!({ "provider": "local" }),
            posture: None,
            spec: json!({ "schema_version": 1 }),
            node: "web".into(),
        }
    }
}

/// Public keys that nobody has the other half of.
pub(crate) const KEYS: [&str; 3] = [
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIE1 alice@laptop",
    "ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAAB with a long comment, and \"quotes\"",
    "ecdsa-sha2-nistp256 AAAAE2VjZHNhLXNoYTItbmlzdHAyNTY=",
];

/// The same, written down.
pub(crate) struct Site {
    pub(crate) root: PathBuf,
    pub(crate) node: Identity,
    /// Who opens its secrets.
    pub(crate) identities: Identities,
}

/// The values that a spec may mention, by their names.
const SECRETS: &str =
    r#"{ "key": "hunter2", "token": "a longer one, with \u00fc and\n a line", "empty": "" }"#;

impl Site {
    pub(crate) fn write(plot: &Plot, root: PathBuf) -> Self {
        let node = format!("m.{}@h", plot.node).parse().unwrap();
        let identity = seal::Identity::generate();
        let policy = Policy::of([Reader::from(identity.recipient())]);
        let identities = Identities::of(Keyring::of([identity]));
        let site = Self { root, node, identities };
        let sealed = encrypt("secrets/all.json", Format::Json, SECRETS.as_bytes(), &policy).unwrap();
        site.put_bytes("secrets/all.json", &sealed);
        site.put("site.json", &plot.site);
        site.put("hosts/h.json", &plot.host);
        site.put("presets/small.json", &json!({ "cores": 1, "memory": 512, "disk": 1 }));
        if let Some(posture) = &plot.posture {
            site.put("postures/some.json", posture);
        }
        let node =
            json!({ "name": plot.node, "type": "vm", "spec": "base", "preset": "small", "image": "any" });
        let manifest = json!({
            "schema_version": 2, "name": "m", "execution": { "default_mode": "pull" }, "nodes": [node],
        });
        site.put("manifests/m.json", &manifest);
        site.change_spec(&plot.spec);
        site
    }

    pub(crate) fn change_spec(&self, spec: &Json) {
        let mut spec = spec.clone();
        // A posture that the site does not have is a mistake of the site, which no mode gets to see.
        if !self.root.join("postures/some.json").exists()
            && let Some(access) = spec.get_mut("access").and_then(Json::as_object_mut)
        {
            access.remove("posture");
        }
        self.put("specs/base.json", &spec);
    }

    /// What a driver that pushes finds the node to become.
    pub(crate) fn resolve(&self) -> Config {
        let sources = orch_run::load::site(&self.root).unwrap();
        let Identity { manifest: name, host, .. } = &self.node;
        let catalog = parse(&sources, Scope::Manifest { name, host: Some(host) });
        let catalog = catalog.unwrap_or_else(|problems| unreachable!("{problems}"));
        let request = Request { manifest: name.clone(), host: Some(host.clone()), mode: Some(Mode::Push) };
        let fleet = resolve(&catalog, &request);
        let mut fleet = fleet.unwrap_or_else(|problems| unreachable!("{problems}"));
        let problems = know_secrets(&mut fleet, &self.vault(), |_| true);
        assert!(problems.is_empty(), "{problems:?}");
        fleet.nodes.into_iter().find(|node| node.identity == self.node).unwrap().config.unwrap()
    }

    pub(crate) fn vault(&self) -> Vault {
        Vault::new(&self.root, self.identities.clone())
    }

    fn put(&self, path: &str, value: &Json) {
        self.put_bytes(path, value.to_string().as_bytes());
    }

    fn put_bytes(&self, path: &str, bytes: &[u8]) {
        let path = self.root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        // In one step, so that a server that watches never reads half of it.
        let draft = Path::new(&self.root).join(".draft");
        fs::write(&draft, bytes).unwrap();
        fs::rename(draft, path).unwrap();
    }
}
