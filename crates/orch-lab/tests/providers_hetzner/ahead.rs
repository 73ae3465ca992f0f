//! What is said before anything is touched, and the way to what was made.

use orch_model::{Mode, NodeKeys};
use orch_providers::cloud::FirstKey;
use orch_providers::push::Program;
use orch_providers::ssh::Wayfinder;
use orch_run::{Pin, Progress, Provider as _, Scope, Target};

use crate::project::{LARGE, Project, SMALL, create, destroy, host, identity, wanted};

#[tokio::test(flavor = "multi_thread")]
async fn a_plan_that_can_be_carried_out_meets_no_obstacle_and_changes_nothing() {
    let project = Project::new();
    let said = project.provider().preflight(&wanted(&["web-1", "web-2"])).await;
    assert_eq!(said.obstacles, []);
    assert_eq!(said.caveats, [""; 0]);
    assert!(project.calls().list().iter().all(|call| call.method == "GET"));
    assert_eq!(project.calls().count(), 3, "locations, types, and one image");
    project.calls().reset();
    assert_eq!(project.provider().preflight(&[]).await.obstacles, []);
    assert_eq!(project.calls().count(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn every_obstacle_is_named_with_its_remedy() {
    let project = Project::new();
    let provider = project.provider_with(|setup| {
        setup.hetzner.location = "ash".into();
        setup.hetzner.fallback_locations = vec!["mars1".into(), "nbg1".into()];
        setup.hetzner.networks = vec!["10.10.0.0/16".parse().unwrap()];
        setup.server_types.insert("web-1".parse().unwrap(), "cx999".into());
        setup.server_types.insert("web-4".parse().unwrap(), "cax11".into());
    });
    let mut nodes = wanted(&["web-1", "web-2", "web-3", "unheard-of", "web-4"]);
    nodes[1].1.image = "windows-95".into();
    nodes[2].1.parent = Some("web-1".parse().unwrap());
    nodes[4].1.image = "1234567".into();
    let said = provider.preflight(&nodes).await;
    let whats: Vec<&str> = said.obstacles.iter().map(|obstacle| obstacle.what.as_str()).collect();
    for part in [
        "node `web-3` is to live inside `web-1`: servers of Hetzner Cloud cannot host virtual machines",
        "there is no location `mars1`",
        "servers in `nbg1` cannot join networks of `ash`",
        "there is no server type `cx999`",
        "no server type stands for the preset of `unheard-of`",
        "there is no image `windows-95`",
        "there is no image `1234567`",
    ] {
        assert!(whats.contains(&part), "{part} in {whats:#?}");
    }
    let elsewhere = project.provider_with(|setup| {
        setup.hetzner.location = "ash".into();
        setup.hetzner.fallback_locations.clear();
    });
    let said = elsewhere.preflight(&wanted(&["web-1"])).await;
    assert_eq!(said.obstacles[0].what, "server type `cx23` is not offered in `ash`");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_that_opens_nothing_and_a_type_that_is_too_small_are_said_before() {
    let project = Project::new();
    let locked = project.provider_with(|setup| setup.client = project.client_with("nobody"));
    let said = locked.preflight(&wanted(&["web-1"])).await;
    assert_eq!(said.obstacles.len(), 1);
    assert!(said.obstacles[0].what.contains("unable to authenticate"), "{:?}", said.obstacles);
    let mut nodes = wanted(&["web-1"]);
    nodes[0].1.size.memory = 8192;
    let said = project.provider().preflight(&nodes).await;
    assert_eq!(said.caveats, ["node `web-1` will be a `cx23`, which has 4096 of 8192 MB of memory"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn costs_are_what_the_prices_of_the_api_say() {
    let project = Project::new();
    let provider = project.provider_with(|setup| {
        setup.server_types.insert("web-3".parse().unwrap(), LARGE.into());
    });
    let costs = provider.costs(&wanted(&["web-1", "web-2", "web-3"])).await.unwrap();
    let named: Vec<_> = costs.iter().map(|cost| (cost.what.as_str(), cost.count)).collect();
    assert_eq!(named, [(format!("{SMALL} in nbg1").as_str(), 2), (format!("{LARGE} in nbg1").as_str(), 1)]);
    assert!(costs.iter().all(|cost| cost.currency == "EUR"));
    let line = costs[0].to_string();
    assert!(
        line.starts_with("2 x cx23 in nbg1: ") && line.ends_with("as the prices of `cloud` say now"),
        "{line}"
    );
    assert_eq!(project.calls().count(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_way_to_a_node_is_what_is_written_on_its_server() {
    let project = Project::new();
    let order = create("web");
    let provider = project.provider();
    provider.apply(&order, &project.permit()).await.unwrap();
    let target = Target {
        identity: identity("web"),
        uuid: order.uuid,
        mode: Mode::Push,
        progress: Progress::to_nobody(),
    };
    project.calls().reset();
    let way = Wayfinder::way(&provider, &target).await.unwrap();
    assert_eq!(project.calls().count(), 0, "who made it knows where it is");
    let hop = &way.hops[0];
    assert_eq!((hop.alias.as_str(), hop.port, hop.user.as_str(), way.sudo), ("web", 22, "root", false));
    assert_eq!((hop.host_keys.len(), hop.generation.clone()), (1, order.uuid.to_string()));
    assert_eq!(way.program, Program::There("/usr/bin/orch-node".into()));

    let other = project.provider_with(|setup| {
        setup.user = "ops".parse().unwrap();
        setup.hetzner.node_program = None;
    });
    let way = Wayfinder::way(&other, &target).await.unwrap();
    assert!(way.sudo && matches!(way.program, Program::Upload(_)));
    assert_eq!(way.hops[0].host_keys, hop.host_keys);
    assert_eq!(project.calls().count(), 1, "another one looks");

    let own = FirstKey::generate().public;
    let age = "age1ql3z7hjy54pw3hyww5ayyfg7zqgvc7w3j2elw8zmrj2kg5sfn9aqmcac8p".parse().unwrap();
    let keys = Some(NodeKeys { age, host_key: Some(own.clone()), settled: true });
    let applied = Some(orch_plan::Applied::Digest(orch_model::Digest::of_bytes(b"x")));
    let ssh_port = Some(2222);
    let pin = Pin { identity: identity("web"), uuid: order.uuid, keys, applied, ssh_port };
    provider.pin(&pin, &project.permit()).await.unwrap();
    let way = Wayfinder::way(&provider, &target).await.unwrap();
    assert_eq!(
        (way.hops[0].port, &way.hops[0].host_keys),
        (2222, &vec![own]),
        "what was written counts at once"
    );

    let machine = project.only(&order).await;
    provider.apply(&destroy(&order, &machine), &project.permit()).await.unwrap();
    let gone = Wayfinder::way(&provider, &target).await.unwrap_err();
    assert!(gone.to_string().contains("does not exist"), "{gone}");
    provider.observe(&Scope { host: host(), node: None }).await.unwrap();
}
