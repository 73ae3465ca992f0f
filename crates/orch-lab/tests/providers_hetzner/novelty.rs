//! Answers that nobody has seen yet: what is new is passed over, what is missing is said, and what never came to be is made.

use std::sync::Arc;

use async_trait::async_trait;
use orch_lab::{Answer, Api, Asked, Hetzner as Lab};
use orch_plan::MachineState;
use orch_providers::cloud::{FirstKey, Written};
use orch_run::{Done, Provider as _, ProviderError, Scope};
use serde_json::{Value as Json, json};

use crate::project::{Project, SIZE, SMALL, create, host};

/// The lab, with something changed in every server that it shows.
struct Changed {
    lab: Lab,
    change: fn(&mut Json),
}

#[async_trait]
impl Api for Changed {
    async fn answer(&self, asked: Asked) -> Answer {
        let answer = self.lab.answer(asked).await;
        let Ok(mut body) = serde_json::from_slice::<Json>(&answer.body) else { return answer };
        let one = body.get_mut("server").into_iter();
        one.for_each(|server| (self.change)(server));
        let many = body.get_mut("servers").and_then(Json::as_array_mut).into_iter().flatten();
        many.for_each(|server| (self.change)(server));
        Answer { body: body.to_string().into_bytes(), ..answer }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_new_about_servers_is_passed_over() {
    let project = Project::with(|with| {
        with.wrap = |lab| {
            let change = |server: &mut Json| {
                server["status"] = json!("hibernating");
                server["novelty"] = json!({ "a": [1, null] });
                server["server_type"]["cpu_type"] = json!("quantum");
                server["public_net"]["ipv6"] = Json::Null;
            };
            Arc::new(Changed { lab, change })
        };
    });
    project.put_stranger("a-stranger").await;
    let machines = project.machines().await;
    assert_eq!((machines.len(), machines[0].state), (1, MachineState::Running));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_missing_about_a_server_is_said_and_the_server_is_not_passed_over() {
    let project = Project::with(|with| {
        with.wrap = |lab| {
            let change = |server: &mut Json| {
                server.as_object_mut().unwrap().remove("server_type");
            };
            Arc::new(Changed { lab, change })
        };
    });
    let id = project.put_stranger("a-stranger").await;
    let seen = project.provider().observe(&Scope { host: host(), node: None }).await;
    let Err(ProviderError::Failed { why, .. }) = seen else { panic!("{seen:?}") };
    assert_eq!(why, format!("GET /servers: server {id} without `server_type`"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_was_begun_and_never_came_to_be_is_made_anew() {
    let project = Project::with(|with| {
        with.wrap = |lab| {
            // The first server of the project is one whose making ended without an end.
            let change = |server: &mut Json| {
                if server["name"] == "orch-conformance-web" && server["labels"]["stuck"] == "yes" {
                    server["status"] = json!("initializing");
                }
            };
            Arc::new(Changed { lab, change })
        };
    });
    let order = create("web");
    let mut written = Written::new(order.marks(), FirstKey::generate().public, "debian-13");
    written.size = Some(SIZE);
    let mut labels = json!(written.words());
    labels["stuck"] = json!("yes");
    let body = json!({
        "name": "orch-conformance-web", "server_type": SMALL, "image": "debian-13", "labels": labels,
    });
    let stuck = project.put_there("/servers", &body).await["server"]["id"].to_string();
    project.wait_for(&stuck, "running").await;
    assert_eq!(project.only(&order).await.state, MachineState::Partial);
    assert!(matches!(project.apply(&order).await, Ok(Done::Changed)));
    let made = project.only(&order).await;
    assert_eq!(made.state, MachineState::Running);
    assert_ne!(made.id, stuck);
    assert_eq!(project.machines().await.len(), 1);
}
