//! What opens the API inside of a node for a while: a token with its own privileges that ends by itself, made over the
//! connection to the node, kept in memory, and taken away at the end.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use orch_model::{Fingerprint, Proxmox, Trust};
use orch_run::Secret;
use serde::Deserialize;
use serde_json::Value as Json;
use uuid::Uuid;
use zeroize::Zeroizing;

use crate::api::{Client, ClientSettings, Dial, Method, Question, Stream, Trusting};
use crate::remote::{Remote as _, RunAs};
use crate::ssh::Connection;

/// Where a Proxmox VE answers on the node itself.
const ADDRESS: &str = "127.0.0.1";
const PORT: u16 = 8006;
const USER: &str = "root@pam";
/// What a token made here may do: machines, disks and networks, and nothing with users or other nodes.
const ROLES: &str = "PVEVMAdmin,PVEDatastoreAdmin,PVESDNUser,PVEAuditor";
/// How long a token lives that nobody took away.
const LIFE: Duration = Duration::from_hours(4);
/// How long one of the node's own tools may take.
const TOOL: Duration = Duration::from_secs(30);
/// How long an answer may take.
const ANSWER: Duration = Duration::from_secs(30);
/// How many questions are asked at once: each has a channel of the connection.
const LANES: usize = 4;

/// The right to speak to the API inside of a node.
pub(super) struct Session {
    connection: Arc<Connection>,
    token: String,
}

/// The API inside of a node.
pub(super) struct Opened {
    pub(super) client: Arc<Client>,
    pub(super) proxmox: Proxmox,
}

/// What `pveum` says of a token that it made.
#[derive(Deserialize)]
struct Made {
    value: String,
}

/// What `pvenode` says of a certificate.
#[derive(Deserialize)]
struct Certificate {
    filename: String,
    fingerprint: String,
}

impl Session {
    /// Opens the API of the node at the other end; in words, why that cannot be done. `outer` is how the host around it is
    /// set up: what is not found out anew is as there.
    pub(super) async fn open(connection: Connection, outer: &Proxmox) -> Result<(Self, Opened), String> {
        let connection = Arc::new(connection);
        let session = Self { connection, token: format!("orch-{}", Uuid::new_v4().simple()) };
        let opened = session.speak(outer).await;
        if opened.is_err() {
            session.remove().await;
        }
        Ok((session, opened?))
    }

    async fn speak(&self, outer: &Proxmox) -> Result<Opened, String> {
        let shown = self.tool(&["pvenode", "cert", "info", "--output-format", "json"]).await?;
        let certificates: Vec<Certificate> = understood("pvenode", &shown)?;
        let fingerprint = shown_certificate(&certificates)?;
        let expire = (Timestamp::now().as_second() + LIFE.as_secs().cast_signed()).to_string();
        let add = ["pveum", "user", "token", "add", USER, &self.token, "--privsep", "1", "--expire", &expire];
        let shown = Zeroizing::new(self.tool(&[&add[..], &["--output-format", "json"]].concat()).await?);
        let made: Made = understood("pveum", &shown)?;
        let value = Arc::new(Secret::new(made.value.into_bytes()));
        let token = format!("{USER}!{}", self.token);
        self.tool(&["pveum", "acl", "modify", "/", "--tokens", &token, "--roles", ROLES]).await?;
        let client = Arc::new(self.client(fingerprint, token, value)?);
        let node = node(&client).await?;
        let datastore = datastore(&client, &node, &outer.datastore).await?;
        let proxmox = Proxmox { node, datastore, pool: None, snippets: None, vlan: None, ..outer.clone() };
        Ok(Opened { client, proxmox })
    }

    fn client(&self, fingerprint: Fingerprint, token: String, value: Arc<Secret>) -> Result<Client, String> {
        let tls = Trusting::config(&Trust::Fingerprint(fingerprint), std::path::Path::new("/"));
        let opener = move || {
            let value = Zeroizing::new(String::from_utf8_lossy(value.expose()).into_owned());
            Ok(Zeroizing::new(format!("PVEAPIToken={token}={}", *value)))
        };
        Client::new(ClientSettings {
            endpoint: format!("https://{ADDRESS}:{PORT}"),
            dial: Arc::new(Through(Arc::clone(&self.connection))),
            tls: tls.map_err(|error| error.to_string())?,
            opener: Arc::new(opener),
            lanes: LANES,
            limit: ANSWER,
        })
    }

    /// Takes the token away. One that cannot be taken away ends by itself.
    pub(super) async fn close(self) {
        self.remove().await;
    }

    async fn remove(&self) {
        let _ = self.tool(&["pveum", "user", "token", "remove", USER, &self.token]).await;
    }

    /// Runs one of the node's own tools as root; what it says when it fails is told, and never what it was to say.
    async fn tool(&self, argv: &[&str]) -> Result<String, String> {
        let words: Vec<String> = argv.iter().copied().map(str::to_owned).collect();
        let ended =
            self.connection.run(&words, RunAs::Root, &[], TOOL).await.map_err(|error| error.to_string())?;
        if ended.code == Some(0) {
            return Ok(String::from_utf8_lossy(&ended.stdout).into_owned());
        }
        let said = String::from_utf8_lossy(&ended.stderr);
        let said = said.lines().next_back().unwrap_or("it said nothing");
        Err(format!("`{}` failed there: {}", argv[0], orch_model::printable(said)))
    }
}

/// The certificate that is shown: one that people put there comes before the one that it made itself.
fn shown_certificate(all: &[Certificate]) -> Result<Fingerprint, String> {
    let named = |name: &str| all.iter().find(|certificate| certificate.filename == name);
    let shown = named("pveproxy-ssl.pem").or_else(|| named("pve-ssl.pem"));
    let shown = shown.ok_or("it does not say which certificate it shows")?;
    shown.fingerprint.parse().map_err(|_| "what it says of its certificate is no fingerprint".to_owned())
}

/// The name by which it knows itself.
async fn node(client: &Client) -> Result<String, String> {
    let known = list(client, "/api2/json/cluster/status").await?;
    let is_itself = |entry: &&Json| entry["type"] == "node" && is_true(&entry["local"]);
    let name = known.iter().find(is_itself).and_then(|entry| entry["name"].as_str());
    name.map(str::to_owned).ok_or_else(|| "it does not say what its node is called".to_owned())
}

/// Where disks go inside: to the datastore of the same name as outside, or to the one with most room.
async fn datastore(client: &Client, node: &str, like: &str) -> Result<String, String> {
    let path = format!("/api2/json/nodes/{}/storage?content=images&enabled=1", crate::api::encode(node));
    let known = list(client, &path).await?;
    let named = |entry: &&Json| entry["storage"] == like;
    let room = |entry: &&Json| {
        entry["avail"].as_u64().or_else(|| entry["avail"].as_str()?.parse().ok()).unwrap_or(0)
    };
    let found = known.iter().find(named).or_else(|| known.iter().max_by_key(room));
    let found = found.and_then(|entry| entry["storage"].as_str());
    found.map(str::to_owned).ok_or_else(|| "it has no datastore for disks".to_owned())
}

async fn list(client: &Client, path: &str) -> Result<Vec<Json>, String> {
    let question = Question { method: Method::Get, path: path.to_owned(), body: None, limit: None };
    let reply = client.ask(&question).await.map_err(|error| error.to_string())?;
    if reply.status != 200 {
        let why = reply.reason.unwrap_or_default();
        return Err(format!("it answered {} to {path}: {}", reply.status, orch_model::printable(&why)));
    }
    let answer: Json = serde_json::from_slice(&reply.body).map_err(|error| error.to_string())?;
    answer["data"].as_array().cloned().ok_or_else(|| format!("it answered no list to {path}"))
}

fn is_true(value: &Json) -> bool {
    value == 1 || value == "1" || value == true
}

fn understood<'t, T: Deserialize<'t>>(tool: &str, text: &'t str) -> Result<T, String> {
    serde_json::from_str(text).map_err(|_| format!("what `{tool}` says there cannot be understood"))
}

/// To the API, through the connection to the node.
struct Through(Arc<Connection>);

#[async_trait]
impl Dial for Through {
    async fn dial(&self) -> io::Result<Box<dyn Stream>> {
        Ok(Box::new(self.0.tunnel(ADDRESS, PORT)?))
    }
}
