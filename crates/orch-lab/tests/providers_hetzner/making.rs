//! Making, changing and destroying servers, and who was quicker.

use std::sync::{Arc, Mutex};

use orch_lab::{Fault, Rule};
use orch_model::{Size, pull::Enrolment};
use orch_plan::{Action, MachineState};
use orch_run::{Done, Order, Pin, Progress, Provider as _, ProviderError, Scope};
use serde_json::json;
use uuid::Uuid;

use crate::project::{LARGE, Project, SIZE, create, destroy, host, identity, reference, start, until};

fn why(refused: Result<Done, ProviderError>) -> String {
    match refused {
        Err(ProviderError::Refused { why, .. }) => why,
        other => panic!("it is refused, and not: {other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_whose_answer_was_lost_is_found_and_not_made_twice() {
    for fault in [Fault::SilentAfter, Fault::CutAnswer] {
        let project = Project::new();
        project.fault(Rule { times: Some(1), ..Rule::always(fault).on("POST", "/v1/servers") });
        let order = create("web");
        assert!(matches!(project.apply(&order).await, Ok(Done::Changed)), "{fault:?}");
        assert_eq!(project.only(&order).await.state, MachineState::Running);
        assert_eq!(project.machines().await.len(), 1);
        assert_eq!(project.asked("POST", "/v1/servers"), 1, "it was asked for once");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn where_there_is_no_room_the_next_location_is_tried_and_told() {
    let project = Project::new();
    project.fault(Rule::always(Fault::OutOfStock).on("POST", "location=nbg1"));
    let said = Arc::new(Mutex::new(Vec::new()));
    let listener = Arc::clone(&said);
    let progress = Progress::to(move |line| listener.lock().unwrap().push(line.to_owned()));
    let order = Order { progress, ..create("web") };
    project.apply(&order).await.unwrap();
    let id = project.only(&order).await.id;
    let server = project.get(&format!("/servers/{id}")).await;
    assert_eq!(server["server"]["location"]["name"], "fsn1");
    assert!(said.lock().unwrap().iter().any(|line| line == "there is no room in nbg1"));
}

#[tokio::test(flavor = "multi_thread")]
async fn where_there_is_no_room_anywhere_all_places_are_named() {
    let project = Project::new();
    project.fault(Rule::always(Fault::OutOfStock).on("POST", "/servers"));
    let why = why(project.apply(&create("web")).await);
    assert!(why.contains("`cx23` in nbg1, fsn1, hel1"), "{why}");
    assert!(project.machines().await.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_limit_of_the_project_and_a_token_that_only_reads_are_refused_with_the_remedy() {
    let project = Project::with(|with| {
        with.settings.server_limit = 1;
        with.settings.read_only_tokens.insert("reader".into());
    });
    project.apply(&create("web-1")).await.unwrap();
    let limit = why(project.apply(&create("web-2")).await);
    assert!(limit.contains("ask Hetzner for a higher limit"), "{limit}");
    let reader = project.provider_with(|setup| setup.client = project.client_with("reader"));
    let read_only = why(reader.apply(&create("web-2"), &project.permit()).await);
    assert!(read_only.contains("Read & Write"), "{read_only}");
    let stranger = project.provider_with(|setup| setup.client = project.client_with("nobody"));
    let unknown = stranger.observe(&Scope { host: host(), node: None }).await.unwrap_err();
    assert!(unknown.to_string().contains("make one") && !unknown.to_string().contains("nobody"), "{unknown}");
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_who_make_the_same_node_one_does() {
    let project = Project::new();
    let (one, two) = (create("web"), create("web"));
    let (first, second) = tokio::join!(project.apply(&one), project.apply(&two));
    let lost = match (first, second) {
        (Ok(Done::Changed), lost) | (lost, Ok(Done::Changed)) => lost,
        neither => panic!("one of them does: {neither:?}"),
    };
    assert!(why(lost).contains("another run made it meanwhile"));
    assert_eq!(project.machines().await.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_order_twice_at_once_makes_one_server() {
    let project = Project::new();
    let order = create("web");
    let (first, second) = tokio::join!(project.apply(&order), project.apply(&order));
    assert!(first.is_ok() && second.is_ok(), "{first:?} {second:?}");
    project.only(&order).await;
    assert_eq!(project.machines().await.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_protected_server_is_not_destroyed_and_its_protection_stays() {
    let project = Project::new();
    let order = create("web");
    project.apply(&order).await.unwrap();
    let machine = project.only(&order).await;
    let path = format!("/servers/{}/actions/change_protection", machine.id);
    project.put_there(&path, &json!({ "delete": true, "rebuild": true })).await;
    let path = format!("/servers/{}", machine.id);
    until("it is protected", || async { project.get(&path).await["server"]["protection"]["delete"] == true })
        .await;
    let why = why(project.apply(&destroy(&order, &machine)).await);
    assert!(why.contains("protected") && why.contains("console of Hetzner"), "{why}");
    assert_eq!(project.asked("DELETE", ""), 0, "nobody even tried");
    project.only(&order).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn another_type_is_seen_as_a_difference_and_made_true_in_place() {
    let project = Project::new();
    let order = create("web");
    project.apply(&order).await.unwrap();
    let before = project.only(&order).await;
    assert_eq!(before.size, SIZE);
    let provider = project.provider_with(|setup| {
        setup.server_types.insert("web".parse().unwrap(), LARGE.into());
    });
    let look = async || {
        let view = provider.observe(&Scope { host: host(), node: Some(identity("web")) }).await.unwrap();
        view.machines()[0].clone()
    };
    let seen = Size { cores: 2, memory: 4096, disk: SIZE.disk };
    assert_eq!(
        look().await.size,
        seen,
        "the real size is seen, but for a disk that is larger than asked for"
    );
    let to = Size { cores: 4, memory: 8000, disk: 60 };
    let action = Action::Resize { machine: reference(&order, &before), from: look().await.size, to };
    let resize = Order { action, ..order.clone() };
    assert!(matches!(provider.apply(&resize, &project.permit()).await, Ok(Done::Changed)));
    let after = look().await;
    assert_eq!((after.size, after.state, after.id), (to, MachineState::Running, before.id.clone()));
    let server = project.get(&format!("/servers/{}", before.id)).await;
    assert_eq!(server["server"]["server_type"]["name"], LARGE);
    assert_eq!(server["server"]["primary_disk_size"], 80, "the disk had to grow");
    let again = provider.apply(&resize, &project.permit()).await;
    assert!(matches!(again, Ok(Done::Unchanged)), "{again:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_was_off_is_resized_and_its_disk_stays_where_it_need_not_grow() {
    let project = Project::new();
    let order = create("web");
    project.apply(&order).await.unwrap();
    let machine = project.only(&order).await;
    project.switch_off(&machine.id).await;
    let provider = project.provider_with(|setup| {
        setup.server_types.insert("web".parse().unwrap(), LARGE.into());
    });
    let to = Size { cores: 4, ..SIZE };
    let action = Action::Resize { machine: reference(&order, &machine), from: SIZE, to };
    provider.apply(&Order { action, ..order.clone() }, &project.permit()).await.unwrap();
    let server = project.get(&format!("/servers/{}", machine.id)).await;
    assert_eq!(server["server"]["server_type"]["name"], LARGE);
    assert_eq!(server["server"]["primary_disk_size"], 40);
}

#[tokio::test(flavor = "multi_thread")]
async fn labels_of_others_stay_when_ours_are_written() {
    let project = Project::new();
    let order = create("web");
    project.apply(&order).await.unwrap();
    let id = project.only(&order).await.id;
    let mut labels = project.labels(&id).await;
    labels["team"] = json!("blue");
    project.ask("PUT", &format!("/servers/{id}"), &json!({ "labels": labels })).await;
    let applied = Some(orch_plan::Applied::Digest(orch_model::Digest::of_bytes(b"x")));
    let ssh_port = Some(2222);
    let pin = Pin { identity: order.identity.clone(), uuid: order.uuid, keys: None, applied, ssh_port };
    let provider = project.provider();
    assert!(matches!(provider.pin(&pin, &project.permit()).await, Ok(Done::Changed)));
    assert!(matches!(provider.pin(&pin, &project.permit()).await, Ok(Done::Unchanged)));
    let labels = project.labels(&id).await;
    assert_eq!((labels["team"].as_str(), labels["orch-port"].as_str()), (Some("blue"), Some("2222")));
    let gone = Pin { uuid: Uuid::new_v4(), ..pin.clone() };
    let refused = provider.pin(&gone, &project.permit()).await;
    assert!(matches!(refused, Err(ProviderError::NotOurs { .. })));
    let copy = project.put_stranger("a-copy").await;
    let labels = project.labels(&id).await;
    project.ask("PUT", &format!("/servers/{copy}"), &json!({ "labels": labels })).await;
    assert!(why(provider.pin(&pin, &project.permit()).await).contains("bear the same mark"));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_is_refused_before_anything_is_made() {
    let project = Project::new();
    let mut nested = create("web");
    if let Action::Create { machine } = &mut nested.action {
        machine.parent = Some("outer".parse().unwrap());
    }
    assert!(why(project.apply(&nested).await).contains("cannot host virtual machines"));
    assert!(why(project.apply(&create("unheard-of")).await).contains("`server_types` of hosts/cloud.yaml"));
    let enrolment: Enrolment = serde_json::from_value(json!({
        "mode": "pull", "server": "https://192.0.2.1:44443", "pins": ["a".repeat(64)], "node": "orch-conformance.web@cloud",
        "token": "t",
    }))
    .unwrap_or_else(|error| panic!("{error}"));
    let pulls = Order { enrolment: Some(enrolment), ..create("web") };
    let without = project.provider_with(|setup| setup.hetzner.node_program = None);
    assert!(why(without.apply(&pulls, &project.permit()).await).contains("`node_program`"));
    assert_eq!(project.asked("POST", "/v1/servers"), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_gone_is_not_started() {
    let project = Project::new();
    let order = create("web");
    project.apply(&order).await.unwrap();
    let machine = project.only(&order).await;
    project.apply(&destroy(&order, &machine)).await.unwrap();
    let refused = project.apply(&start(&order, &machine)).await;
    assert!(matches!(refused, Err(ProviderError::NotOurs { .. })), "{refused:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_type_that_does_not_fit_is_refused_before_the_server_is_switched_off() {
    let project = Project::with(|with| {
        with.setup = |setup| {
            setup.server_types.insert("web".parse().unwrap(), LARGE.into());
        };
    });
    let order = create("web");
    project.apply(&order).await.unwrap();
    let machine = project.only(&order).await;
    for (kind, part) in [("cx23", "would shrink"), ("cax21", "architecture"), ("cx999", "no server type")] {
        let provider = project.provider_with(|setup| {
            setup.server_types.insert("web".parse().unwrap(), kind.into());
        });
        let action = Action::Resize { machine: reference(&order, &machine), from: SIZE, to: SIZE };
        let said = why(provider.apply(&Order { action, ..order.clone() }, &project.permit()).await);
        assert!(said.contains(part), "{said}");
    }
    assert_eq!(project.asked("POST", "/actions/"), 0);
    assert_eq!(project.only(&order).await.state, MachineState::Running);
}

/// Does something, and is killed once so many more questions were answered. Whether it was done before that.
async fn cut(project: &Project, order: &Order, questions: u64) -> bool {
    let (provider, permit, calls) = (project.provider(), project.permit(), project.calls());
    calls.reset();
    tokio::select! {
        done = provider.apply(order, &permit) => done.is_ok(),
        () = until("it has asked so often", || async { calls.count() >= questions }) => false,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_is_cut_off_at_any_question_is_healed_by_the_next() {
    let (mut while_made, mut while_destroyed, mut questions) = (0, 0, 0);
    loop {
        let project = Project::with(|with| with.setup = |setup| setup.hetzner.spread = true);
        let order = create("web");
        let is_made = cut(&project, &order, questions).await;
        project.apply(&order).await.unwrap();
        let machine = project.only(&order).await;
        assert_eq!(machine.state, MachineState::Running);
        let destroyed = destroy(&order, &machine);
        let is_destroyed = cut(&project, &destroyed, questions).await;
        project.apply(&destroyed).await.unwrap();
        assert!(project.machines().await.is_empty(), "cut off after {questions} questions");
        let groups = project.get("/placement_groups").await;
        assert_eq!(groups["placement_groups"], json!([]), "cut off after {questions} questions");
        while_made += u32::from(!is_made);
        while_destroyed += u32::from(!is_destroyed);
        if is_made && is_destroyed {
            break;
        }
        questions += 1;
    }
    println!("cut off {while_made} times while it was made, {while_destroyed} times while it was destroyed");
    assert!(while_made > 5 && while_destroyed > 2, "{while_made} and {while_destroyed} times");
}

#[tokio::test(flavor = "multi_thread")]
async fn questions_about_actions_that_have_no_answer_are_asked_again() {
    for fault in [Fault::ServerError, Fault::SilentAfter, Fault::CutAnswer] {
        let project = Project::new();
        project.fault(Rule { times: Some(2), ..Rule::always(fault).on("GET", "/actions") });
        let order = create("web");
        project.apply(&order).await.unwrap();
        assert_eq!(project.only(&order).await.state, MachineState::Running, "{fault:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_newest_image_with_a_label_is_what_a_server_is_made_from() {
    let project = Project::new();
    let source = project.put_stranger("source").await;
    let mut newest = serde_json::Value::Null;
    for _ in 0..2 {
        let body = json!({ "type": "snapshot", "labels": { "role": "base" } });
        let made = project.put_there(&format!("/servers/{source}/actions/create_image"), &body).await;
        newest = made["image"]["id"].clone();
        let path = format!("/images/{newest}");
        until("the image", || async { project.get(&path).await["image"]["status"] == "available" }).await;
    }
    let mut order = create("web");
    if let Action::Create { machine } = &mut order.action {
        machine.image = "role=base".into();
    }
    project.apply(&order).await.unwrap();
    let machine = project.only(&order).await;
    assert_eq!(machine.image.as_deref(), Some("role=base"), "it is known by what was asked for");
    let server = project.get(&format!("/servers/{}", machine.id)).await;
    assert_eq!(server["server"]["image"]["id"], newest);
    let mut unknown = create("web-2");
    if let Action::Create { machine } = &mut unknown.action {
        machine.image = "role=none".into();
    }
    assert!(why(project.apply(&unknown).await).contains("no image with the label `role=none`"));
}
