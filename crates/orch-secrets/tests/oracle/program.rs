//! The sops program: where it is, and how it is asked.

use std::env;
use std::ffi::OsStr;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use orch_secrets::seal::Identity;
use tempfile::TempDir;

use crate::cells::MAC_ONLY;
use crate::find;

/// The program, or a line that says that there is none. Where the lab is required, so is this, unless it is known that it cannot
/// be had (`ORCH_SOPS=none`).
pub(crate) fn sops() -> Option<PathBuf> {
    if env::var_os("ORCH_SOPS").is_some_and(|program| program == "none") {
        println!("skipped: the sops program cannot be had");
        return None;
    }
    let found = find::find();
    if found.is_none() {
        assert!(env::var_os("ORCH_LAB_REQUIRE").is_none(), "there is no sops program, and it is required");
        println!("skipped: there is no sops program");
    }
    found
}

/// A folder with an identity of its own.
pub(crate) struct Desk {
    pub(crate) sops: PathBuf,
    pub(crate) folder: TempDir,
    pub(crate) identity: Identity,
}

impl Desk {
    pub(crate) fn new() -> Option<Self> {
        Some(Self { sops: sops()?, folder: TempDir::new().unwrap(), identity: Identity::generate() })
    }

    pub(crate) fn recipient(&self) -> String {
        self.identity.recipient().to_string()
    }

    pub(crate) fn key_text(&self) -> String {
        String::from_utf8(self.identity.to_secret().expose().to_vec()).unwrap()
    }

    pub(crate) fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.folder.path().join(name);
        fs::write(&path, bytes).unwrap();
        path
    }

    /// Runs sops with the identity of this desk and nothing else of this computer.
    pub(crate) fn run(&self, arguments: &[impl AsRef<OsStr>]) -> Result<Vec<u8>, String> {
        self.run_with("SOPS_AGE_KEY", self.key_text().as_ref(), arguments)
    }

    pub(crate) fn run_with(
        &self,
        key: &str,
        value: &OsStr,
        arguments: &[impl AsRef<OsStr>],
    ) -> Result<Vec<u8>, String> {
        let output = Command::new(&self.sops)
            .args(arguments)
            .current_dir(self.folder.path())
            .env_clear()
            .env("HOME", self.folder.path())
            .env("SOPS_DISABLE_VERSION_CHECK", "1")
            .env(key, value)
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let words = String::from_utf8_lossy(&output.stderr).into_owned();
        if output.status.success() { Ok(output.stdout) } else { Err(words) }
    }

    /// Has sops encrypt a text.
    pub(crate) fn encrypt(&self, name: &str, plain: &[u8], options: &[&str]) -> Result<Vec<u8>, String> {
        self.write(name, plain);
        let recipient = self.recipient();
        // Some rules can be had from a configuration only.
        if options.iter().any(|option| *option == MAC_ONLY || option.ends_with("-comment-regex")) {
            return self.encrypt_by_config(name, options);
        }
        let mut arguments = vec!["encrypt", "--age", &recipient];
        arguments.extend(options);
        arguments.push(name);
        self.run(&arguments)
    }

    /// Has sops encrypt a file by rules that only a configuration can have.
    fn encrypt_by_config(&self, name: &str, options: &[&str]) -> Result<Vec<u8>, String> {
        let mut rule = format!("creation_rules:\n- age: {}\n", self.recipient());
        let rest = options.strip_prefix(&[MAC_ONLY]).inspect(|_| rule += "  mac_only_encrypted: true\n");
        for pair in rest.unwrap_or(options).chunks(2) {
            rule += &format!("  {}: '{}'\n", pair[0].trim_start_matches('-').replace('-', "_"), pair[1]);
        }
        let config = format!("{name}.config");
        self.write(&config, rule);
        self.run(&["--config", &config, "encrypt", name])
    }

    /// Has sops decrypt a file, as JSON where its format allows it.
    pub(crate) fn decrypt(&self, name: &str, sealed: &[u8]) -> Result<Vec<u8>, String> {
        self.write(name, sealed);
        let is_binary = !["yaml", "json", "env", "ini"].contains(&name.rsplit('.').next().unwrap());
        let kind = if is_binary { "binary" } else { "json" };
        self.run(&["decrypt", "--output-type", kind, name])
    }
}
