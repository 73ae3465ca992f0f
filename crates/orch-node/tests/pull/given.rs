//! What a machine of a cloud is given.

use orch_model::pull::Enrolment;
use orch_node::pull::{ENROLMENT, HostKey, LARGEST_USER_DATA, UserDataError, unit, user_data};
use serde_json::{Value as Json, json};

use crate::server::Server;

const KEY: HostKey<'_> = HostKey {
    private: "-----BEGIN OPENSSH PRIVATE KEY-----\nabc\n-----END OPENSSH PRIVATE KEY-----\n",
    public: "ssh-ed25519 AAAA throw-away",
};
const PROGRAM: &str = "/usr/local/bin/orch-node";

fn given(enrolment: &Enrolment) -> Json {
    let text = user_data(enrolment, KEY, PROGRAM).unwrap();
    serde_json::from_str(text.strip_prefix("#cloud-config\n").unwrap()).unwrap()
}

#[test]
fn user_data_makes_a_machine_a_node_that_pulls() {
    let enrolment = Server::start().enrolment();
    let given = given(&enrolment);
    let files = given["write_files"].as_array().unwrap();
    assert_eq!(files[0]["path"], ENROLMENT);
    assert_eq!((&files[0]["permissions"], &files[0]["owner"]), (&json!("0400"), &json!("root:root")));
    let back: Enrolment = serde_json::from_str(files[0]["content"].as_str().unwrap()).unwrap();
    assert_eq!(back, enrolment);
    assert_eq!(files[1]["content"], unit(PROGRAM));
    assert_eq!(files[1]["permissions"], "0644");
    assert_eq!(given["ssh_keys"], json!({ "ed25519_private": KEY.private, "ed25519_public": KEY.public }));
    assert_eq!(given["ssh_deletekeys"], true);
    for command in given["runcmd"].as_array().unwrap() {
        assert!(command.as_array().unwrap().iter().all(Json::is_string), "no shell reads it: {command}");
    }
}

#[test]
fn user_data_holds_no_other_secret() {
    let enrolment = Server::start().enrolment();
    let text = user_data(&enrolment, KEY, PROGRAM).unwrap();
    assert_eq!(text.matches(enrolment.token.expose()).count(), 1);
    assert_eq!(text.matches("PRIVATE KEY-----\\nabc").count(), 1);
    let keys: Vec<String> = given(&enrolment).as_object().unwrap().keys().cloned().collect();
    assert_eq!(keys, ["runcmd", "ssh_deletekeys", "ssh_keys", "write_files"]);
    assert!(!format!("{KEY:?}").contains("abc"));
}

#[test]
fn what_no_cloud_takes_is_refused() {
    let mut enrolment = Server::start().enrolment();
    enrolment.pins = vec![enrolment.pins[0]; LARGEST_USER_DATA / 64];
    assert!(matches!(user_data(&enrolment, KEY, PROGRAM), Err(UserDataError::TooLarge(_))));
    enrolment.pins.truncate(2);
    for program in ["orch-node", "", "/a\nb"] {
        assert!(matches!(user_data(&enrolment, KEY, program), Err(UserDataError::NotAPath(_))));
    }
}
