//! A site with modules, and an evaluator for it.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;

use orch_nix::{EvalError, Evaluated, Evaluator, EvaluatorSettings, Kind, Tools, Wanted};
use serde_json::json;
use tempfile::TempDir;

use crate::common::{nix, unique};

/// A site, a nixpkgs and a cache in a folder of their own.
pub(crate) struct Scene {
    pub(crate) folder: TempDir,
    pub(crate) settings: EvaluatorSettings,
    /// What makes derivations of this scene different from all others.
    salt: String,
    tools: Tools,
    told: Mutex<Vec<String>>,
}

pub(crate) type Results = BTreeMap<String, Result<Evaluated, EvalError>>;

impl Scene {
    /// None where there is no Nix.
    pub(crate) async fn set() -> Option<Self> {
        let tools = nix().await?;
        let folder = tempfile::tempdir().unwrap();
        let lib = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/library");
        let settings = EvaluatorSettings {
            cache: folder.path().join("cache"),
            nixpkgs: Some(folder.path().join("nixpkgs")),
            // What is free on a machine is another amount each time.
            memory: Some(16 << 30),
            parallel: 2,
            limit: Duration::from_mins(2),
            lib: Some(lib),
        };
        let scene = Self { folder, settings, salt: unique("salt"), tools, told: Mutex::default() };
        fs::create_dir_all(scene.folder.path().join("site")).unwrap();
        scene.write_outside("nixpkgs/default.nix", "{ version = 1; }");
        Some(scene)
    }

    /// Writes a file of the site.
    pub(crate) fn write(&self, file: &str, text: &str) {
        self.write_outside(&format!("site/{file}"), text);
    }

    pub(crate) fn write_outside(&self, file: &str, text: &str) {
        let path = self.folder.path().join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// Makes a pipe: who reads it waits for who writes to it.
    pub(crate) fn pipe(&self, file: &str) -> PathBuf {
        let path = self.folder.path().join(file);
        assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
        path
    }

    /// A node whose only module is `hosts/<name>`.
    pub(crate) fn node(&self, name: &str) -> Wanted {
        Wanted {
            identity: format!("fleet.{name}@here").parse().unwrap(),
            kind: Kind::Node,
            modules: vec![format!("hosts/{name}")],
            platform: None,
            tags: Vec::new(),
            config: json!({ "salt": self.salt }),
        }
    }

    pub(crate) async fn evaluate_these(&self, wanted: &[Wanted]) -> Results {
        self.told.lock().unwrap().clear();
        let tell = |words: &str| self.told.lock().unwrap().push(words.to_owned());
        let evaluator = Evaluator::new(self.tools.clone(), self.settings.clone());
        let results = evaluator.evaluate(&self.folder.path().join("site"), wanted, &tell).await;
        results.into_iter().map(|(identity, result)| (identity.node.to_string(), result)).collect()
    }

    pub(crate) async fn evaluate(&self, names: &[&str]) -> Results {
        let wanted: Vec<Wanted> = names.iter().map(|name| self.node(name)).collect();
        self.evaluate_these(&wanted).await
    }

    /// What was told during the last evaluation.
    pub(crate) fn told(&self) -> String {
        self.told.lock().unwrap().join("\n")
    }

    /// Evaluates a node that must evaluate.
    pub(crate) async fn one(&self, name: &str) -> Evaluated {
        self.evaluate(&[name]).await.remove(name).unwrap().unwrap()
    }

    pub(crate) fn evaluator(&self) -> Evaluator {
        Evaluator::new(self.tools.clone(), self.settings.clone())
    }
}
