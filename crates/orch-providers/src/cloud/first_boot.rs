//! What a machine is given when it is made, as cloud-init takes it.
//!
//! Whoever may ask the cloud about the machine can read it for ever, so it holds nothing that is still good for anything once
//! the node has come up: an SSH host key that the node replaces by its own, and a token that is used up by its first use.

use orch_model::pull::Enrolment;
use orch_model::{PublicKey, UserName};
use orch_node::pull::{ENROLMENT, UNIT_NAME, unit};
use serde_json::{Value as Json, json};
use thiserror::Error;
use zeroize::Zeroizing;

use super::first_key::FirstKey;

/// No cloud takes more.
const LARGEST: usize = 32 << 10;

/// Why a machine cannot be given this.
#[derive(Debug, Error)]
pub enum UserDataError {
    /// It is too much.
    #[error("the user data would be {0} bytes, and no cloud takes more than {LARGEST}")]
    TooLarge(usize),
    /// It is no path.
    #[error("`{0}` is not the full path of a program")]
    NotAPath(String),
}

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
    let mut files: Vec<Json> = access(given.user).into_iter().collect();
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
    if text.len() > LARGEST { Err(UserDataError::TooLarge(text.len())) } else { Ok(text) }
}

fn user(name: &UserName, access: &PublicKey) -> Json {
    let keys = [access.as_str()];
    if name.as_str() == "root" {
        return json!({ "name": "root", "lock_passwd": true, "ssh_authorized_keys": keys });
    }
    json!({
        "name": name.as_str(),
        "shell": "/bin/sh",
        "lock_passwd": true,
        "ssh_authorized_keys": keys,
    })
}

/// The account that orch comes in with stays able to become root, whatever a posture says of the same account later: of the
/// rules that fit, the last one counts.
fn access(user: &UserName) -> Option<Json> {
    let rule = format!("{user} ALL=(ALL:ALL) NOPASSWD: ALL\n");
    (user.as_str() != "root").then(|| file("/etc/sudoers.d/zz-orch-access", "0440", &rule))
}

fn file(path: &str, permissions: &str, content: &str) -> Json {
    json!({ "path": path, "owner": "root:root", "permissions": permissions, "content": content })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given(user: &str, enrolment: Option<(&Enrolment, &str)>) -> Result<Json, UserDataError> {
        let user: UserName = user.parse().unwrap();
        let (key, access) = (FirstKey::generate(), FirstKey::generate().public);
        let boot = FirstBoot { hostname: "web", user: &user, access: &access, host_key: &key, enrolment };
        let text = user_data(&boot)?;
        let document = text.strip_prefix("#cloud-config\n").unwrap();
        let document: Json = serde_json::from_str(document).unwrap();
        assert_eq!(document["ssh_keys"]["ed25519_private"], key.private.as_str());
        assert_eq!(document["users"][0]["ssh_authorized_keys"][0], access.as_str());
        Ok(document)
    }

    #[test]
    fn the_account_that_orch_comes_in_with_may_become_root_and_nobody_has_a_password() {
        let document = given("ops", None).unwrap();
        assert_eq!(document["write_files"][0]["path"], "/etc/sudoers.d/zz-orch-access");
        assert_eq!(document["users"][0]["lock_passwd"], true);
        assert_eq!((&document["ssh_pwauth"], &document["disable_root"]), (&json!(false), &json!(true)));
        let document = given("root", None).unwrap();
        assert_eq!((&document["write_files"], &document["disable_root"]), (&json!([]), &json!(false)));
    }

    fn enrolment() -> Enrolment {
        let text = r#"{"node":"m.n@h","mode":"pull","server":"https://s","pins":[],"token":"t0k3n"}"#;
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn a_machine_that_is_to_fetch_its_configuration_is_given_what_that_takes_and_no_other_secret() {
        let enrolment = enrolment();
        let document = given("ops", Some((&enrolment, "/usr/bin/orch-node"))).unwrap();
        let files = document["write_files"].as_array().unwrap();
        assert_eq!((&files[1]["path"], &files[1]["permissions"]), (&json!(ENROLMENT), &json!("0400")));
        let back: Enrolment = serde_json::from_str(files[1]["content"].as_str().unwrap()).unwrap();
        assert_eq!(back, enrolment);
        assert_eq!(files[2]["content"], unit("/usr/bin/orch-node"));
        assert_eq!(document.to_string().matches("t0k3n").count(), 1);
        for command in document["runcmd"].as_array().unwrap() {
            assert!(command.as_array().unwrap().iter().all(Json::is_string), "no shell reads it: {command}");
        }
    }

    #[test]
    fn what_no_cloud_takes_is_refused() {
        let mut enrolment = enrolment();
        for wrong in ["orch-node", "", "/a\nb"] {
            assert!(matches!(given("ops", Some((&enrolment, wrong))), Err(UserDataError::NotAPath(_))));
        }
        enrolment.server = "x".repeat(LARGEST);
        let refused = given("ops", Some((&enrolment, "/usr/bin/orch-node")));
        assert!(matches!(refused, Err(UserDataError::TooLarge(_))));
    }
}
