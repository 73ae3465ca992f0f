//! A site with secrets and its server, which says what happens to somebody who keeps it.

use std::fs;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use orch_secrets::seal::Identity;
use orch_secrets::sops::{Policy, encrypt};
use orch_secrets::{Env, Format, Identities, Keyring};
use orch_server::{InOffice, OfficeError, SitePlace, Tell};

use crate::client::Answer;
use crate::scene::{Scene, limits, write};

/// A site whose owner can open its secrets.
pub(super) struct House {
    pub(super) scene: Scene,
    owner: Identity,
    identities: Identities,
    log: Arc<Mutex<String>>,
}

impl House {
    /// One that nobody serves yet.
    pub(super) fn new() -> Self {
        let owner = Identity::generate();
        let identities = Identities::of(Keyring::of([owner.clone()]));
        Self::by(Scene::without_server(), owner, identities)
    }

    /// The same, whose owner keeps what opens its secrets in a file.
    pub(super) fn with_file_of_identities() -> Self {
        let scene = Scene::without_server();
        let file = scene.base.path().join("keys.txt");
        let env = move || Env { key_file: Some(file.clone()), ..Env::default() };
        let mut house = Self::by(scene, Identity::generate(), Identities::by(env));
        house.change_identity();
        house
    }

    fn by(mut scene: Scene, owner: Identity, identities: Identities) -> Self {
        scene.folder = scene.folder.clone().of_site(&scene.site(""), identities.clone());
        Self { scene, owner, identities, log: Arc::default() }
    }

    /// Has the owner be somebody else from now on, by the file.
    pub(super) fn change_identity(&mut self) {
        self.owner = Identity::generate();
        fs::write(self.scene.base.path().join("keys.txt"), self.owner.to_secret().expose()).unwrap();
    }

    /// Takes the file away.
    pub(super) fn forget_identity(&self) {
        fs::remove_file(self.scene.base.path().join("keys.txt")).unwrap();
    }

    /// Writes a sops file whole, for these values in clear.
    pub(super) fn keep(&self, file: &str, plain: &str) {
        self.keep_for(file, plain, &self.owner);
    }

    /// The same, for somebody else.
    pub(super) fn keep_for(&self, file: &str, plain: &str, reader: &Identity) {
        let policy = Policy::of([reader.recipient().to_string().parse().unwrap()]);
        let text = encrypt(file, Format::of(file), plain.as_bytes(), &policy).unwrap();
        let (path, draft) = (self.scene.site(file), self.scene.base.path().join("draft"));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&draft, text).unwrap();
        fs::rename(draft, path).unwrap();
    }

    /// Has every node ask for these, a line each.
    pub(super) fn ask_for(&self, secrets: &[&str]) {
        let lines: Vec<String> = secrets.iter().map(|secret| format!("  - {{ {secret} }}\n")).collect();
        let head = if lines.is_empty() { "" } else { "secrets:\n" };
        write(&self.scene.site("specs/base.yaml"), &format!("schema_version: 1\n{head}{}", lines.concat()));
    }

    /// Starts the server, after the one before it has let go.
    pub(super) fn serve(&mut self) {
        self.scene.server = None;
        for _ in 0..2000 {
            if let Some(server) = self.enter().unwrap() {
                let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
                let address = listener.local_addr().unwrap();
                server.listen(listener).unwrap();
                self.scene.is_served_at(address);
                self.scene.server = Some(server);
                return;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        panic!("the server before this one never let go");
    }

    /// Tries to.
    pub(super) fn enter(&self) -> Result<Option<InOffice>, OfficeError> {
        let identities = self.identities.clone();
        let place = SitePlace { root: self.scene.site(""), manifest: None, identities };
        let log = Arc::clone(&self.log);
        let tell: Tell = Arc::new(move |_, word, node, words| {
            log.lock().unwrap().push_str(&format!("{word} {node} {words}\n"));
        });
        InOffice::enter(&self.scene.folder, place, limits(), self.scene.clock(), tell)
    }

    /// What the server has said so far.
    pub(super) fn said(&self) -> String {
        self.log.lock().unwrap().clone()
    }

    /// What is written down of tokens, as it is on disk.
    pub(super) fn ledger(&self) -> String {
        fs::read_to_string(self.scene.folder.ledger_path()).unwrap_or_default()
    }

    /// Asks for a configuration, with what a node says of itself.
    pub(super) async fn ask(&self, node: &str, token: &str, hello: &[(&str, &str)]) -> Answer {
        let headers: Vec<String> = hello.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        let headers = headers.concat();
        let words = format!(
            "GET /v1/spec/{node} HTTP/1.1\r\nHost: orch\r\nAuthorization: Bearer {token}\r\n{headers}\r\n"
        );
        self.scene.client.say(words.as_bytes()).await.unwrap()
    }

    /// Tells something, with what a node says of itself.
    pub(super) async fn tell(&self, node: &str, token: &str, hello: &[(&str, &str)], words: &str) -> Answer {
        let headers: Vec<String> = hello.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        let (headers, length) = (headers.concat(), words.len());
        let words = format!(
            "POST /v1/report/{node} HTTP/1.1\r\nHost: orch\r\nAuthorization: Bearer {token}\r\n\
             Content-Length: {length}\r\n{headers}\r\n{words}"
        );
        self.scene.client.say(words.as_bytes()).await.unwrap()
    }
}
