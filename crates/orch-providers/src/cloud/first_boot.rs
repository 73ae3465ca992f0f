//! What a machine is given when it is made, as cloud-init takes it.
//!
//! Whoever may ask the cloud about the machine can read it for ever, so it holds nothing that is still good for anything once
//! the node has come up: an SSH host key that the node replaces by its own, and a token that is used up by its first use.

use orch_model::pull::Enrolment;
use orch_model::{PublicKey, UserName};
use orch_node::pull::{ENROLMENT, LARGEST_USER_DATA, UNIT_NAME, UserDataError, unit};
use serde_json::{Value as Json, json};
use zeroize::Zeroizing;

use super::first_key::FirstKey;

/// What a machine is given when it is made.
pub struct FirstBoot<'a> {
    /// The name that it gives itself.
    pub hostname: &'a str,
    /// The account that orch comes in with.
    pub user: &'a UserName,
    /// The key that opens it.
    pub access: &'a PublicKey,
    /// The host key by which it is known at first.
    pub host_key: &'a FirstKey,
    /// What it fetches its configuration with, and where its image has the program that does, where it is to do so.
    pub enrolment: Option<(&'a Enrolment, &'a str)>,
}

/// It, as cloud-init takes it. No shell reads any of it: commands are lists of words.
pub fn user_data(given: &FirstBoot<'_>) -> Result<Zeroizing<String>, UserDataError> {
    let mut files = Vec::new();
    let mut commands = Vec::new();
    if let Some((enrolment, program)) = given.enrolment {
        if !program.starts_with('/') || program.chars().any(char::is_control) {
            return Err(UserDataError::NotAPath(program.into()));
        }
        let secret = serde_json::to_string(enrolment).expect("what orch defines can be written as JSON");
        files.push(file(ENROLMENT, "0400", &secret));
        files.push(file(&format!("/etc/systemd/system/{UNIT_NAME}"), "0644", &unit(program)));
        // Whoever writes files makes their folders for everybody to look into.
        commands.push(json!(["chmod", "0700", "/var/lib/orch"]));
        commands.push(json!(["systemctl", "daemon-reload"]));
        commands.push(json!(["systemctl", "enable", "--now", UNIT_NAME]));
    }
    let document = json!({
        "hostname": given.hostname,
        "preserve_hostname": false,
        "users": [user(given.user, given.access)],
        // Where the account is root itself, it may come in.
        "disable_root": given.user.as_str() != "root",
        "ssh_pwauth": false,
        "ssh_deletekeys": true,
        "ssh_keys": {
            "ed25519_private": given.host_key.private.as_str(),
            "ed25519_public": given.host_key.public.as_str(),
        },
        "write_files": files,
        "runcmd": commands,
    });
    // JSON is YAML too, and leaves no doubt about what is a string.
    let text = Zeroizing::new(format!("#cloud-config\n{document:#}\n"));
    if text.len() > LARGEST_USER_DATA { Err(UserDataError::TooLarge(text.len())) } else { Ok(text) }
}

fn user(name: &UserName, access: &PublicKey) -> Json {
    let keys = [access.as_str()];
    if name.as_str() == "root" {
        return json!({ "name": "root", "lock_passwd": true, "ssh_authorized_keys": keys });
    }
    json!({
        "name": name.as_str(),
        "sudo": "ALL=(ALL) NOPASSWD:ALL",
        "shell": "/bin/sh",
        "lock_passwd": true,
        "ssh_authorized_keys": keys,
    })
}

fn file(path: &str, permissions: &str, content: &str) -> Json {
    json!({ "path": path, "owner": "root:root", "permissions": permissions, "content": content })
}
