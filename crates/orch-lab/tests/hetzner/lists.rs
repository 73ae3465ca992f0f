//! Lists: pages, orders, choices, and everything that is offered.

use serde_json::{Value as Json, json};

use crate::lab::{Lab, description};

fn names(list: &Json) -> Vec<&str> {
    list["servers"].as_array().unwrap().iter().map(|server| server["name"].as_str().unwrap()).collect()
}

#[tokio::test(start_paused = true)]
async fn lists_come_in_pages_that_know_each_other() {
    let lab = Lab::new();
    for number in 0..7 {
        lab.server(&format!("s{number}"), json!({"labels": {"n": number.to_string()}})).await;
    }
    let page = lab.get("/servers?per_page=3&page=2").await;
    assert_eq!(names(&page), ["s3", "s4", "s5"]);
    let expected = json!({"page": 2, "per_page": 3, "previous_page": 1, "next_page": 3, "last_page": 3, "total_entries": 7});
    assert_eq!(page["meta"]["pagination"], expected);
    let last = lab.get("/servers?per_page=3&page=3").await["meta"]["pagination"].take();
    assert_eq!(last["next_page"], Json::Null);
    assert_eq!(names(&lab.get("/servers?per_page=3&page=9").await), [""; 0]);
    assert_eq!(lab.get("/servers?per_page=500").await["meta"]["pagination"]["per_page"], 50);
    let empty = lab.get("/volumes").await["meta"]["pagination"].take();
    assert_eq!((&empty["last_page"], &empty["total_entries"]), (&json!(1), &json!(0)));
    for wrong in ["page=0", "page=x", "per_page=0", "sort=size", "sort=id:up"] {
        let said = lab.ask("GET", &format!("/servers?{wrong}"), Json::Null).await;
        assert_eq!(said.code(), (422, "invalid_input"), "{wrong}");
    }
    assert_eq!(names(&lab.get("/servers?sort=name:desc&per_page=2").await), ["s6", "s5"]);
    assert_eq!(names(&lab.get("/servers?name=s4").await), ["s4"]);
    assert_eq!(names(&lab.get("/servers?status=off").await), [""; 0]);
    assert_eq!(names(&lab.get("/servers?status=off&status=running&name=s1").await), ["s1"]);
    assert_eq!(
        names(&lab.get("/servers?unheard=of&per_page=1").await),
        ["s0"],
        "what is not known is not heeded"
    );
}

#[tokio::test(start_paused = true)]
async fn labels_choose() {
    let lab = Lab::new();
    lab.server("a", json!({"labels": {"role": "web", "env": "prod"}})).await;
    lab.server("b", json!({"labels": {"role": "db"}})).await;
    lab.server("c", json!({})).await;
    for (selector, expected) in [
        ("role", vec!["a", "b"]),
        ("!role", vec!["c"]),
        ("role%3Dweb", vec!["a"]),
        ("role%3D%3Ddb", vec!["b"]),
        ("role%21%3Dweb", vec!["b", "c"]),
        ("role+in+%28web%2Cdb%29%2C%21env", vec!["b"]),
        ("role+notin+(web)", vec!["b", "c"]),
    ] {
        assert_eq!(
            names(&lab.get(&format!("/servers?label_selector={selector}")).await),
            expected,
            "{selector}"
        );
    }
    let wrong = lab.ask("GET", "/servers?label_selector=a+is+b", Json::Null).await;
    assert_eq!(wrong.code(), (422, "invalid_input"));
    assert_eq!(wrong.body["error"]["details"]["fields"][0]["name"], "label_selector");
}

#[tokio::test(start_paused = true)]
async fn actions_are_found_by_id_by_thing_and_by_kind() {
    let lab = Lab::new();
    let said = lab.make("/servers", json!({"name": "a", "server_type": "cx22", "image": "debian-13"})).await;
    let (server, first) = (said.id("server"), said.id("action"));
    let next = said.body["next_actions"][0]["id"].as_u64().unwrap();
    lab.end(next).await;
    let both = lab.get(&format!("/actions?id={first}&id={next}&id=7")).await;
    assert_eq!(both["actions"].as_array().unwrap().len(), 2);
    assert_eq!(lab.ask("GET", "/actions", Json::Null).await.code(), (422, "invalid_input"));
    for path in ["/servers/actions".to_owned(), format!("/servers/{server}/actions")] {
        let newest = lab.get(&format!("{path}?sort=id:desc&status=success")).await;
        assert_eq!(newest["actions"][0]["id"], next, "{path}");
        assert_eq!(lab.get(&format!("{path}/{first}")).await["action"]["command"], "create_server");
    }
    assert_eq!(lab.get("/volumes/actions").await["actions"], json!([]));
    assert_eq!(lab.ask("GET", &format!("/volumes/actions/{first}"), Json::Null).await.status, 404);
}

#[tokio::test(start_paused = true)]
async fn what_is_offered_is_as_the_description_says() {
    if description().is_none() {
        println!("skipped: the description of the API is not at hand");
    }
    let lab = Lab::new();
    for collection in [
        "server_types",
        "locations",
        "datacenters",
        "isos",
        "images",
        "load_balancer_types",
        "load_balancers",
        "floating_ips",
        "certificates",
        "primary_ips",
        "volumes",
        "ssh_keys",
        "firewalls",
        "networks",
    ] {
        let list = lab.get(&format!("/{collection}")).await;
        for item in list[collection].as_array().unwrap() {
            lab.get(&format!("/{collection}/{}", item["id"])).await;
        }
    }
    assert_eq!(lab.get("/pricing").await["pricing"]["currency"], "EUR");
    assert_eq!(lab.get("/server_types?name=cax11").await["server_types"][0]["architecture"], "arm");
    let arm = lab.get("/images?name=debian-12&architecture=arm&type=system").await;
    assert_eq!(arm["images"].as_array().unwrap().len(), 1);
    assert_eq!(lab.ask("POST", "/floating_ips", json!({"type": "ipv4"})).await.status, 501);
}
