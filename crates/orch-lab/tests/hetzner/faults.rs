//! What goes wrong on purpose goes wrong as it does at Hetzner.

use std::time::Duration;

use orch_lab::{Fault, Rule};
use serde_json::{Value as Json, json};

use crate::lab::Lab;

fn server(name: &str, location: &str) -> Json {
    json!({"name": name, "server_type": "cx22", "image": "debian-13", "location": location})
}

#[tokio::test(start_paused = true)]
async fn an_action_that_fails_has_had_no_effect() {
    let lab = Lab::new();
    let path = format!("/servers/{}", lab.server("one", json!({})).await);
    lab.fault(Rule::once(Fault::TaskFails).on("POST", "poweroff"));
    let action = lab.order(&format!("{path}/actions/poweroff"), Json::Null).await;
    assert_eq!((&action["status"], &action["error"]["code"]), (&json!("error"), &json!("action_failed")));
    assert_eq!(lab.get(&path).await["server"]["status"], "running");
    lab.fault(Rule::once(Fault::TaskFails).on("DELETE", "/servers"));
    let kept = lab.ask("DELETE", &path, Json::Null).await.id("action");
    assert_eq!(lab.get(&path).await["server"]["status"], "deleting");
    assert_eq!(lab.end(kept).await["status"], "error");
    assert_eq!(lab.get(&path).await["server"]["status"], "running");
    lab.fault(Rule::once(Fault::TaskFails));
    let said = lab.make("/servers", server("two", "fsn1")).await;
    let next = said.body["next_actions"][0]["id"].as_u64().unwrap();
    assert_eq!(lab.end(next).await["status"], "error", "what waits for it fails too");
    let two = format!("/servers/{}", said.id("server"));
    assert_eq!(lab.get(&two).await["server"]["status"], "off");
    assert_eq!(lab.ask("DELETE", &two, Json::Null).await.status, 200, "what is left of it can be removed");
}

#[tokio::test(start_paused = true)]
async fn an_action_that_never_ends_keeps_everything_from_its_server_but_its_deletion() {
    let lab = Lab::new();
    lab.fault(Rule::once(Fault::TaskNeverEnds).on("POST", "/servers"));
    let said = lab.make("/servers", server("one", "fsn1")).await;
    tokio::time::sleep(Duration::from_hours(1)).await;
    let path = format!("/servers/{}", said.id("server"));
    assert_eq!(lab.get(&format!("/actions/{}", said.id("action"))).await["action"]["status"], "running");
    assert_eq!(lab.get(&path).await["server"]["status"], "initializing");
    assert_eq!(lab.ask("POST", &format!("{path}/actions/poweron"), Json::Null).await.code(), (423, "locked"));
    let deleted = lab.ask("DELETE", &path, Json::Null).await.id("action");
    lab.end(deleted).await;
    assert_eq!(lab.end(said.id("action")).await["status"], "error");
    assert_eq!(lab.ask("GET", &path, Json::Null).await.status, 404);
}

#[tokio::test(start_paused = true)]
async fn stock_can_be_out_in_one_location_only() {
    let lab = Lab::new();
    lab.fault(Rule::always(Fault::OutOfStock).on("POST", "location=nbg1"));
    let refused = lab.ask("POST", "/servers", server("one", "nbg1")).await;
    assert_eq!(refused.code(), (412, "resource_unavailable"));
    assert_eq!(lab.ask("POST", "/servers", server("one", "hel1")).await.status, 201);
    lab.fault(Rule::once(Fault::OutOfStock));
    assert_eq!(
        lab.ask("POST", "/servers", server("two", "hel1")).await.code(),
        (412, "resource_unavailable")
    );
    assert_eq!(lab.ask("POST", "/servers", server("two", "hel1")).await.status, 201);
}

#[tokio::test(start_paused = true)]
async fn a_stranger_takes_a_name_and_stays() {
    let lab = Lab::new();
    lab.fault(Rule::once(Fault::StrangerTakesId).on("POST", "/servers"));
    assert_eq!(lab.ask("POST", "/servers", server("one", "fsn1")).await.code(), (409, "uniqueness_error"));
    let found = lab.get("/servers?name=one").await["servers"].take();
    assert_eq!(found[0]["labels"], json!({"made-by": "a-stranger"}));
    assert_eq!(lab.ask("POST", "/servers", server("one", "fsn1")).await.code(), (409, "uniqueness_error"));
}

#[tokio::test(start_paused = true)]
async fn refusals_can_be_ordered() {
    let lab = Lab::new();
    let path = format!("/servers/{}", lab.server("one", json!({})).await);
    for (fault, expected) in
        [(Fault::NoPrivilege, (403, "forbidden")), (Fault::Quota, (403, "resource_limit_exceeded"))]
    {
        lab.fault(Rule::once(fault));
        assert_eq!(lab.ask("POST", "/servers", server("two", "fsn1")).await.code(), expected);
    }
    lab.fault(Rule::once(Fault::LockTimeout));
    assert_eq!(lab.ask("DELETE", &path, Json::Null).await.code(), (423, "locked"));
    assert_eq!(lab.ask("DELETE", &path, Json::Null).await.status, 200);
}

#[tokio::test(start_paused = true)]
async fn a_silent_server_is_said_to_run_where_nobody_answers() {
    let lab = Lab::new();
    lab.fault(Rule::once(Fault::AgentSilent).on("POST", "/servers"));
    let id = lab.server("one", json!({})).await;
    let server = lab.get(&format!("/servers/{id}")).await["server"].take();
    assert_eq!(server["status"], "running");
    assert!(server["public_net"]["ipv4"]["ip"].as_str().unwrap().starts_with("127.203.113."));
}
