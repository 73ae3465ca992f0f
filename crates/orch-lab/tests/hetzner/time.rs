//! What depends on time: how far an action is, and how many questions are answered.

use std::time::Duration;

use serde_json::{Value as Json, json};

use crate::lab::Lab;

#[tokio::test(start_paused = true)]
async fn after_so_many_questions_one_has_to_wait() {
    let lab = Lab::with(|settings| settings.limit = 3);
    for left in [2, 1, 0] {
        let said = lab.ask("GET", "/locations", Json::Null).await;
        assert_eq!(
            (said.status, said.header("ratelimit-remaining"), said.header("ratelimit-limit")),
            (200, left, 3)
        );
    }
    let refused = lab.ask("GET", "/locations", Json::Null).await;
    assert_eq!(refused.code(), (429, "rate_limit_exceeded"));
    assert!(refused.header("ratelimit-reset") > jiff::Timestamp::now().as_second());
    tokio::time::advance(Duration::from_secs(1201)).await;
    assert_eq!(lab.ask("GET", "/locations", Json::Null).await.status, 200, "the bucket fills steadily");
    assert_eq!(lab.ask("GET", "/locations", Json::Null).await.status, 429);
    assert_eq!(lab.ask_as("wrong", "GET", "/locations", Vec::new()).await.header("ratelimit-limit"), 3);
}

#[tokio::test(start_paused = true)]
async fn an_action_takes_its_time() {
    let lab = Lab::with(|settings| settings.action_time = Duration::from_mins(1));
    let said =
        lab.make("/servers", json!({"name": "one", "server_type": "cx22", "image": "debian-13"})).await;
    let path = format!("/actions/{}", said.id("action"));
    tokio::time::sleep(Duration::from_secs(59)).await;
    let action = lab.get(&path).await["action"].take();
    assert_eq!((&action["status"], &action["finished"]), (&json!("running"), &Json::Null));
    assert!(action["progress"].as_u64().unwrap() < 100);
    tokio::time::sleep(Duration::from_secs(2)).await;
    let action = lab.get(&path).await["action"].take();
    assert_eq!((&action["status"], &action["progress"]), (&json!("success"), &json!(100)));
    assert!(action["finished"].is_string());
}
