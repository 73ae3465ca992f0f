//! The tools of Proxmox VE that a driver uses inside of a machine, as far as it does: `pveum` and `pvenode`. They are this
//! program under other names, and speak to the API beside them.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use orch_model::Trust;
use orch_providers::api::{Client, ClientSettings, Method, Question, Tcp, Trusting, encode, form};
use serde::{Deserialize, Serialize};
use serde_json::{Value as Json, json};

use super::{PORT, TOOLS};

/// What the tools know; for root's eyes only.
const KNOWN: &str = "/etc/pve-lab.json";
const FOLDER: &str = "/var/lib/pve-lab/bin";
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
const NAMES: [&str; 2] = ["pveum", "pvenode"];
const LIMIT: Duration = Duration::from_secs(20);

/// What the tools know.
#[derive(Serialize, Deserialize)]
struct Known {
    secret: String,
    fingerprint: String,
}

/// What a machine is given so that it has the tools: as its vendor would.
pub(super) fn vendor_data(secret: &str, fingerprint: &str) -> String {
    let known = json!(Known { secret: secret.to_owned(), fingerprint: fingerprint.to_owned() }).to_string();
    let file = |path: &str, permissions: &str, content: &str| json!({ "path": path, "owner": "root:root", "permissions": permissions, "content": content });
    let links =
        NAMES.map(|name| json!(["ln", "-s", "-f", "/run/orch/orch-node", format!("{FOLDER}/{name}")]));
    let commands: Vec<Json> = [json!(["mkdir", "-p", FOLDER])].into_iter().chain(links).collect();
    let document = json!({
        "write_files": [
            file(KNOWN, "0400", &known),
            file("/etc/ssh/sshd_config.d/10-pve-lab.conf", "0644", &format!("SetEnv PATH={FOLDER}:{PATH}\n")),
            file("/etc/sudoers.d/10-pve-lab", "0440", &format!("Defaults secure_path=\"{FOLDER}:{PATH}\"\n")),
        ],
        "runcmd": commands,
    });
    format!("#cloud-config\n{document}\n")
}

/// Whether there is a tool of this name.
pub fn is_tool(name: &str) -> bool {
    NAMES.contains(&name)
}

/// Is the tool of this name.
pub fn tool(name: &str, args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let args: Vec<String> = args.into_iter().map(|arg| arg.to_string_lossy().into_owned()).collect();
    match run(name, &args) {
        Ok(answer) => {
            let _ = writeln!(io::stdout(), "{answer}");
            ExitCode::SUCCESS
        }
        Err(why) => {
            let _ = writeln!(io::stderr(), "{why}");
            ExitCode::FAILURE
        }
    }
}

fn run(name: &str, args: &[String]) -> Result<Json, String> {
    let (words, options) = taken_apart(args);
    let text = fs::read_to_string(KNOWN).map_err(|error| format!("`{KNOWN}` cannot be read: {error}"))?;
    let known: Known = serde_json::from_str(&text).map_err(|error| error.to_string())?;
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let token = |user: &str, id: &str| format!("/access/users/{}/token/{}", encode(user), encode(id));
    match (name, words.as_slice()) {
        ("pvenode", ["cert", "info"]) => {
            Ok(json!([{ "filename": "pve-ssl.pem", "fingerprint": known.fingerprint }]))
        }
        ("pveum", ["user", "token", "add", user, id]) => {
            ask(&known, Method::Post, &token(user, id), &options)
        }
        ("pveum", ["user", "token", "remove", user, id]) => {
            ask(&known, Method::Delete, &token(user, id), &BTreeMap::new())
        }
        ("pveum", ["acl", "modify", path]) => {
            let path = ("path".to_owned(), (*path).to_owned());
            ask(&known, Method::Put, "/access/acl", &options.into_iter().chain([path]).collect())
        }
        _ => Err(format!("ERROR: unknown command '{name} {}'", words.join(" "))),
    }
}

/// The words and the options of a command line. How an answer is to be shown is not the API's business: it is JSON.
fn taken_apart(args: &[String]) -> (Vec<String>, BTreeMap<String, String>) {
    let (mut words, mut options) = (Vec::new(), BTreeMap::new());
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        match arg.strip_prefix("--") {
            Some("output-format") => drop(args.next()),
            Some(name) => drop(options.insert(name.to_owned(), args.next().cloned().unwrap_or_default())),
            None => words.push(arg.clone()),
        }
    }
    (words, options)
}

fn ask(
    known: &Known,
    method: Method,
    path: &str,
    options: &BTreeMap<String, String>,
) -> Result<Json, String> {
    let fingerprint = known.fingerprint.parse().map_err(|_| "the fingerprint is none".to_owned())?;
    let tls = Trusting::config(&Trust::Fingerprint(fingerprint), Path::new("/"));
    let token = format!("PVEAPIToken=root@pam!{TOOLS}={}", known.secret);
    let settings = ClientSettings {
        endpoint: format!("https://127.0.0.1:{PORT}/api2/json"),
        dial: Arc::new(Tcp { host: "127.0.0.1".into(), port: PORT }),
        tls: tls.map_err(|error| error.to_string())?,
        opener: Arc::new(move || Ok(token.clone().into())),
        lanes: 1,
        limit: LIMIT,
    };
    let client = Client::new(settings)?;
    let body = form(options.iter().map(|(name, value)| (name.as_str(), value.as_str())));
    let body = (method != Method::Delete).then(|| ("application/x-www-form-urlencoded", body.into()));
    let question = Question { method, path: path.to_owned(), body, limit: None };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| error.to_string())?;
    let reply = runtime.block_on(client.ask(&question)).map_err(|error| error.to_string())?;
    if reply.status != 200 {
        return Err(format!("{} {}", reply.status, reply.reason.unwrap_or_default()));
    }
    let answer: Json = serde_json::from_slice(&reply.body).map_err(|error| error.to_string())?;
    Ok(answer["data"].clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_line_is_taken_apart_into_words_and_options() {
        let args = ["user", "token", "add", "root@pam", "x", "--privsep", "1", "--output-format", "json"];
        let (words, options) = taken_apart(&args.map(str::to_owned));
        assert_eq!(words, ["user", "token", "add", "root@pam", "x"]);
        assert_eq!(options, BTreeMap::from([("privsep".to_owned(), "1".to_owned())]));
    }

    #[test]
    fn programs_that_are_no_tools_are_left_alone() {
        assert!(!is_tool("orch") && is_tool("pveum"));
    }
}
