//! Every way of being refused.

use serde_json::{Value as Json, json};

use crate::lab::{Lab, READER, TOKEN, description};

#[tokio::test(start_paused = true)]
async fn without_the_token_nothing_is_answered_and_with_a_readers_nothing_changed() {
    let lab = Lab::new();
    for token in ["", "wrong"] {
        assert_eq!(lab.ask_as(token, "GET", "/servers", Vec::new()).await.code(), (401, "unauthorized"));
    }
    assert_eq!(lab.ask_as(READER, "GET", "/servers", Vec::new()).await.status, 200);
    for method in ["POST", "PUT", "DELETE"] {
        let said = lab.ask_as(READER, method, "/servers/1", Vec::new()).await;
        assert_eq!(said.code(), (403, "token_readonly"));
    }
}

#[tokio::test(start_paused = true)]
async fn what_does_not_exist_is_not_found() {
    let lab = Lab::new();
    for path in [
        "/",
        "/nothing",
        "/servers/1",
        "/servers/x",
        "/actions/1",
        "/server_types/0",
        "/servers/1/actions",
        "/images/1",
    ] {
        assert_eq!(lab.ask("GET", path, Json::Null).await.code(), (404, "not_found"), "{path}");
    }
    assert_eq!(lab.ask("DELETE", "/servers/1", Json::Null).await.code(), (404, "not_found"));
    assert_eq!(lab.ask("POST", "/servers/1/actions/poweron", Json::Null).await.code(), (404, "not_found"));
    assert_eq!(lab.ask("POST", "/servers/1/actions", Json::Null).await.code(), (404, "not_found"));
    let place = lab.ask("DELETE", "/locations/1", Json::Null).await;
    assert_eq!(place.code(), (404, "not_found"), "nobody removes a place");
    let server = lab.server("one", json!({})).await;
    assert_eq!(
        lab.ask("POST", &format!("/servers/{server}/actions/fly"), Json::Null).await.code(),
        (404, "not_found")
    );
    let iso = lab.ask("POST", &format!("/servers/{server}/actions/attach_iso"), json!({"iso": "x"})).await;
    assert_eq!(iso.code(), (501, "unsupported_error"));
}

#[tokio::test(start_paused = true)]
async fn a_server_that_cannot_be_is_refused_with_the_field_that_is_wrong() {
    let lab = Lab::new();
    let long = "x".repeat(32 * 1024 + 1);
    for (field, wrong) in [
        ("name", json!(null)),
        ("name", json!(7)),
        ("name", json!("under_score")),
        ("name", json!("-a")),
        ("server_type", json!("cx1")),
        ("image", json!("windows")),
        ("location", json!("moon")),
        ("user_data", json!(long)),
        ("labels", json!({"a b": "c"})),
        ("labels", json!({"a": "b!"})),
        ("ssh_keys", json!("me")),
        ("public_net", json!({"enable_ipv4": false, "enable_ipv6": false})),
    ] {
        let mut body = json!({"name": "one", "server_type": "cx22", "image": "debian-13"});
        body[field] = wrong.clone();
        let said = lab.ask("POST", "/servers", body).await;
        assert_eq!(said.code(), (422, "invalid_input"), "{field}: {}", said.body);
        assert_eq!(said.body["error"]["details"]["fields"][0]["name"], field);
    }
    for (field, missing) in
        [("ssh_keys", json!(["me"])), ("networks", json!([1])), ("placement_group", json!(1))]
    {
        let mut body = json!({"name": "one", "server_type": "cx22", "image": "debian-13"});
        body[field] = missing;
        assert_eq!(lab.ask("POST", "/servers", body).await.code(), (404, "not_found"), "{field}");
    }
    for elsewhere in
        [json!({"server_type": "cax11", "location": "ash"}), json!({"server_type": "cax11", "image": 101})]
    {
        let mut body = json!({"name": "one", "image": "debian-13"});
        body.as_object_mut().unwrap().extend(elsewhere.as_object().unwrap().clone());
        assert_eq!(lab.ask("POST", "/servers", body).await.code(), (422, "invalid_input"));
    }
    let largest = json!({"user_data": "x".repeat(32 * 1024)});
    lab.server("one", largest).await;
    assert_eq!(
        lab.get("/servers").await["meta"]["pagination"]["total_entries"],
        1,
        "what was refused left nothing"
    );
}

#[tokio::test(start_paused = true)]
async fn names_are_taken_once() {
    let lab = Lab::new();
    lab.server("one", json!({})).await;
    let two = lab.server("two", json!({})).await;
    let again = json!({"name": "one", "server_type": "cx22", "image": "debian-13"});
    assert_eq!(lab.ask("POST", "/servers", again).await.code(), (409, "uniqueness_error"));
    let renamed = lab.ask("PUT", &format!("/servers/{two}"), json!({"name": "one"})).await;
    assert_eq!(renamed.code(), (409, "uniqueness_error"));
    assert_eq!(lab.ask("PUT", &format!("/servers/{two}"), json!({"name": "two"})).await.status, 200);
}

#[tokio::test(start_paused = true)]
async fn there_are_only_so_many_servers() {
    let lab = Lab::with(|settings| settings.server_limit = 1);
    lab.server("one", json!({})).await;
    let said = lab
        .ask("POST", "/servers", json!({"name": "two", "server_type": "cx22", "image": "debian-13"}))
        .await;
    assert_eq!(said.code(), (403, "resource_limit_exceeded"));
    assert_eq!(said.body["error"]["details"]["limits"][0]["name"], "server_limit");
}

#[tokio::test(start_paused = true)]
async fn a_type_is_changed_only_to_one_that_fits_and_only_while_off() {
    let lab = Lab::new();
    let path = format!("/servers/{}/actions", lab.server("one", json!({"server_type": "cx32"})).await);
    let change = |kind: &str| json!({"server_type": kind, "upgrade_disk": true});
    let running = lab.ask("POST", &format!("{path}/change_type"), change("cx42")).await;
    assert_eq!(running.code(), (422, "server_not_stopped"));
    lab.order(&format!("{path}/poweroff"), Json::Null).await;
    for kind in ["cx22", "cx32", "cax31", "none"] {
        let said = lab.ask("POST", &format!("{path}/change_type"), change(kind)).await;
        assert_eq!(said.code(), (422, "invalid_server_type"), "{kind}");
    }
    let half = lab.ask("POST", &format!("{path}/change_type"), json!({"server_type": "cx42"})).await;
    assert_eq!(half.code(), (422, "invalid_input"));
    assert_eq!(lab.order(&format!("{path}/change_type"), change("cx42")).await["status"], "success");
}

#[tokio::test(start_paused = true)]
async fn bodies_are_json_objects_with_fields_that_the_description_knows() {
    let lab = Lab::new();
    for body in ["{", "[]", "7", "\"x\"", "{\"name\""] {
        assert_eq!(
            lab.ask_as(TOKEN, "POST", "/servers", body.into()).await.code(),
            (400, "json_error"),
            "{body}"
        );
    }
    if description().is_none() {
        println!("skipped: the description of the API is not at hand");
        return;
    }
    let unknown = json!({"name": "one", "server_type": "cx22", "image": "debian-13", "colour": "red"});
    let said = lab.ask("POST", "/servers", unknown).await;
    assert_eq!(said.code(), (422, "invalid_input"));
    assert_eq!(said.body["error"]["details"]["fields"][0]["name"], "colour");
    let group = lab.ask("POST", "/placement_groups", json!({"name": "g", "type": "gather"})).await;
    assert_eq!(group.code(), (422, "invalid_input"));
}
