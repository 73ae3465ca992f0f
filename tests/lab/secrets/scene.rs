//! A lab whose site has secrets: sops files, who can open them, and the nodes that are given them.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use orch_secrets::seal::Identity;
use orch_secrets::sops::{Policy, encrypt};
use orch_secrets::{Format, Keyring, Reader, Secret, SopsFile};

use crate::common::{Lab, Outcome, Running, TIMEOUTS, node, spec};

/// A lab with secrets, and the identity of the one who runs `orch` in it.
pub(crate) struct Hoard {
    pub(crate) lab: Lab,
    pub(crate) owner: Identity,
}

impl Hoard {
    /// One with nodes of these names, all of the spec `plain`.
    pub(crate) fn with_nodes(names: &[&str]) -> Self {
        let nodes: Vec<String> = names.iter().map(|name| node(name)).collect();
        let nodes: Vec<&str> = nodes.iter().map(String::as_str).collect();
        let hoard = Self { lab: Lab::with_nodes(TIMEOUTS, &nodes), owner: Identity::generate() };
        fs::write(hoard.key_file(), hoard.owner.to_secret().expose()).unwrap();
        fs::create_dir(hoard.beside("tmp")).unwrap();
        let rules = format!("creation_rules:\n  - path_regex: secrets/.*\n    age: {}\n", hoard.reader());
        hoard.lab.write(".sops.yaml", &rules);
        hoard
    }

    /// Something that lies beside the site and the state, and goes with them.
    pub(crate) fn beside(&self, name: &str) -> PathBuf {
        self.lab.site.with_file_name(name)
    }

    /// The file that holds the identity.
    pub(crate) fn key_file(&self) -> PathBuf {
        self.beside("keys.txt")
    }

    /// Whom files are encrypted for.
    pub(crate) fn reader(&self) -> Reader {
        reader(&self.owner)
    }

    /// Writes a sops file that its owner alone can open.
    pub(crate) fn keep(&self, file: &str, plain: impl AsRef<[u8]>) {
        self.keep_for(file, plain, [self.reader()]);
    }

    /// The same, for others.
    pub(crate) fn keep_for(
        &self,
        file: &str,
        plain: impl AsRef<[u8]>,
        readers: impl IntoIterator<Item = Reader>,
    ) {
        let text = encrypt(file, Format::of(file), plain.as_ref(), &Policy::of(readers)).unwrap();
        fs::create_dir_all(self.lab.site.join(file).parent().unwrap()).unwrap();
        self.replace(file, &text);
    }

    /// Changes one value of a sops file, as an editor for such files does: everything else of it stays as it is.
    pub(crate) fn edit(&self, file: &str, path: &str, value: &str) {
        let place = self.lab.site.join(file);
        let sops = SopsFile::parse(file, &fs::read(&place).unwrap()).unwrap();
        let (ring, value) = (Keyring::of([self.owner.clone()]), Secret::from(value.to_owned()));
        self.replace(file, &sops.set(&ring, &path.parse().unwrap(), &value).unwrap());
    }

    /// Writes a file of the site whole, so that nobody who looks at the same moment sees half of it.
    pub(crate) fn replace(&self, file: &str, text: &[u8]) {
        let draft = self.beside("draft");
        fs::write(&draft, text).unwrap();
        fs::rename(draft, self.lab.site.join(file)).unwrap();
    }

    /// Has the spec of every node ask for these, a line each.
    pub(crate) fn ask_for(&self, secrets: &[&str]) {
        self.lab.write("specs/plain.yaml", &asking("as wanted", secrets));
    }

    /// The program with the identity in a file, and nothing else of this computer's that could open or leave anything.
    pub(crate) fn command(&self, words: &str) -> Command {
        let mut command = self.lab.command(words);
        command.env("SOPS_AGE_KEY_FILE", self.key_file()).env("HOME", self.beside("home"));
        command.env_remove("XDG_CONFIG_HOME").env_remove("SOPS_AGE_KEY").env("TMPDIR", self.beside("tmp"));
        command
    }

    pub(crate) fn orch(&self, words: &str) -> Outcome {
        Outcome::of(&mut self.command(words), words)
    }

    pub(crate) fn start(&self, words: &str) -> Running {
        Running::start(&mut self.command(words), words)
    }

    /// What is at a path of a running node, with links followed as they are inside of it.
    pub(crate) fn on_node(&self, machine: &str, path: &str) -> Option<Vec<u8>> {
        let root = self.lab.root(machine);
        let place = root.join(path.trim_start_matches('/'));
        let place = fs::read_link(&place).map_or(place, |to| root.join(to.strip_prefix("/").unwrap_or(&to)));
        fs::read(place).ok()
    }
}

/// Whom something is encrypted for that an identity opens.
pub(crate) fn reader(identity: &Identity) -> Reader {
    identity.recipient().to_string().parse().unwrap()
}

/// The small spec with one file of this content and these secrets, a line each.
pub(crate) fn asking(content: &str, secrets: &[&str]) -> String {
    let lines: Vec<String> = secrets.iter().map(|secret| format!("  - {{ {secret} }}\n")).collect();
    let head = if lines.is_empty() { "" } else { "secrets:\n" };
    format!("{}{head}{}", spec(content), lines.concat())
}

/// Has one program run another, in the environment that the other one was to have.
pub(crate) fn around<'o>(outer: &'o mut Command, inner: &Command) -> &'o mut Command {
    outer.arg(inner.get_program()).args(inner.get_args());
    for (name, value) in inner.get_envs() {
        match value {
            Some(value) => outer.env(name, value),
            None => outer.env_remove(name),
        };
    }
    outer
}
