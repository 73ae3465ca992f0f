//! How often the API is asked, and how long is waited for it.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use orch_lab::{Fault, FirstBoot, Machines, Paper, Power, Rule, Size, Trouble, Wanted};
use orch_run::{Done, Pin, Provider as _, ProviderError, Scope};
use serde_json::json;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpListener;

use crate::project::{Project, create, destroy, host, identity, start, until};

#[tokio::test(flavor = "multi_thread")]
async fn a_hundred_servers_are_seen_with_two_questions() {
    let project = Project::with(|with| with.settings.server_limit = 200);
    let mut last = String::new();
    for number in 0..100 {
        let body = json!({ "name": format!("s{number}"), "server_type": "cx22", "image": "debian-13" });
        last = project.put_there("/servers", &body).await["server"]["id"].to_string();
    }
    project.wait_for(&last, "running").await;
    project.calls().reset();
    assert_eq!(project.machines().await.len(), 100);
    assert_eq!(project.calls().count(), 2, "its pages, and nothing else");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_is_looked_for_by_its_marks_and_its_name() {
    let project = Project::new();
    project.put_stranger("other").await;
    let look = async || {
        let scope = Scope { host: host(), node: Some(identity("web")) };
        let view = project.provider().observe(&scope).await.unwrap();
        view.machines().iter().map(|machine| machine.marks.is_some()).collect::<Vec<_>>()
    };
    assert!(look().await.is_empty());
    let stranger = project.put_stranger("orch-conformance-web").await;
    assert_eq!(look().await, [false], "a stranger with its name is seen");
    project.ask("DELETE", &format!("/servers/{stranger}"), &serde_json::Value::Null).await;
    until("it is gone", || async { look().await.is_empty() }).await;
    project.apply(&create("web")).await.unwrap();
    project.calls().reset();
    assert_eq!(look().await, [true]);
    assert_eq!(project.calls().count(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_create_asks_little_however_long_its_actions_take() {
    let project = Project::with(|with| with.settings.action_time = Duration::from_millis(400));
    let provider = project.provider_with(|setup| setup.pace.longest_poll = Duration::from_secs(1));
    // The key is made and looked after before.
    provider.apply(&create("web-1"), &project.permit()).await.unwrap();
    project.calls().reset();
    provider.apply(&create("web-2"), &project.permit()).await.unwrap();
    println!("two actions of 400 ms, one after the other, with {} questions", project.calls().count());
    let polls = project.asked("GET", "/v1/actions");
    let others = usize::try_from(project.calls().count()).unwrap() - polls;
    assert_eq!(others, 3, "is it there, make it, does it run");
    assert!(polls < 60, "{polls}");
}

#[tokio::test(flavor = "multi_thread")]
async fn many_creates_wait_with_the_questions_of_a_few() {
    let project = Project::with(|with| with.settings.action_time = Duration::from_millis(250));
    let provider = project.provider_with(|setup| setup.pace.first_poll = Duration::from_millis(30));
    let mut making = tokio::task::JoinSet::new();
    let began = Instant::now();
    for number in 1..=60 {
        let (provider, permit) = (provider.clone(), project.permit());
        let order = create(&format!("web-{number}"));
        making.spawn(async move { provider.apply(&order, &permit).await.unwrap() });
    }
    making.join_all().await;
    let polls = project.asked("GET", "/v1/actions");
    let pauses = began.elapsed().as_millis() / 30;
    println!(
        "{polls} questions about actions for 60 servers in {pauses} pauses, {} in all",
        project.calls().count()
    );
    // However long it takes: each by itself would ask sixty times as often as there are pauses.
    assert!(polls as u128 <= 20 + 3 * pauses, "{polls} in {pauses} pauses");
    assert_eq!(project.machines().await.len(), 60);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_creates_and_destroys_cost_in_questions() {
    let project = Project::new();
    let order = create("web");
    project.apply(&order).await.unwrap();
    let machine = project.only(&order).await;
    project.calls().reset();
    assert!(matches!(project.apply(&order).await, Ok(Done::Unchanged)));
    assert_eq!(project.calls().count(), 2, "what is there is found and looked at");
    project.calls().reset();
    project.apply(&destroy(&order, &machine)).await.unwrap();
    let polls = project.asked("GET", "/v1/actions");
    assert_eq!(usize::try_from(project.calls().count()).unwrap() - polls, 2, "whose is it, remove it");
    project.calls().reset();
    assert!(matches!(project.apply(&destroy(&order, &machine)).await, Ok(Done::Unchanged)));
    assert_eq!(project.calls().count(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn who_is_told_to_come_back_later_does_and_all_others_wait_too() {
    let project = Project::new();
    project.fault(Rule { times: Some(2), ..Rule::always(Fault::TooMany) });
    let provider = project.provider();
    let scope = Scope { host: host(), node: None };
    let began = Instant::now();
    let (first, second) = tokio::join!(provider.observe(&scope), provider.observe(&scope));
    assert!(first.is_ok() && second.is_ok());
    assert!(began.elapsed() >= Duration::from_secs(1), "it was told to wait for a second");
    assert!(project.calls().count() <= 6, "nobody stormed: {}", project.calls().count());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_storm_that_outlasts_the_time_is_said_to_be_one() {
    let project = Project::new();
    project.fault(Rule::always(Fault::TooMany));
    let provider = project.provider_with(|setup| setup.pace.look = Duration::from_millis(1500));
    let late = provider.observe(&Scope { host: host(), node: None }).await.unwrap_err();
    assert!(matches!(&late, ProviderError::Late { why, .. } if why.contains("too much was asked")), "{late}");
    assert!(project.calls().count() <= 3, "{}", project.calls().count());
}

#[tokio::test(flavor = "multi_thread")]
async fn when_few_questions_are_left_all_slow_down_and_none_is_refused() {
    let project = Project::with(|with| with.settings.limit = 30);
    let provider = project.provider_with(|setup| {
        setup.pace.low = 25;
        setup.pace.slowest = Duration::from_millis(40);
    });
    let scope = Scope { host: host(), node: None };
    let began = Instant::now();
    for _ in 0..20 {
        provider.observe(&scope).await.unwrap();
    }
    assert!(began.elapsed() >= Duration::from_millis(40 * 12), "{:?}", began.elapsed());
    assert!(project.calls().list().iter().all(|call| call.status == 200));
}

/// Machines on paper that are all at the address of this computer.
#[derive(Default)]
struct Here(Paper);

#[async_trait]
impl Machines for Here {
    async fn make(&self, wanted: &Wanted) -> Result<(), Trouble> {
        self.0.make(wanted).await
    }

    async fn start(&self, id: &str, first: &FirstBoot) -> Result<(), Trouble> {
        self.0.start(id, first).await
    }

    async fn stop(&self, id: &str) -> Result<(), Trouble> {
        self.0.stop(id).await
    }

    async fn resize(&self, id: &str, size: Size) -> Result<(), Trouble> {
        self.0.resize(id, size).await
    }

    async fn remove(&self, id: &str) -> Result<(), Trouble> {
        self.0.remove(id).await
    }

    async fn power(&self, id: &str) -> Power {
        self.0.power(id).await
    }

    async fn address(&self, _: &str) -> Option<IpAddr> {
        Some(IpAddr::from([127, 0, 0, 1]))
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_is_started_once_its_ssh_server_answers_at_its_own_port() {
    let project = Project::on(Arc::new(Here::default()), |_| {});
    let order = create("web");
    project.apply(&order).await.unwrap();
    let machine = project.only(&order).await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let ssh_port = listener.local_addr().unwrap().port();
    let applied = Some(orch_plan::Applied::Digest(orch_model::Digest::of_bytes(b"x")));
    let ssh_port = Some(ssh_port);
    let pin = Pin { identity: order.identity.clone(), uuid: order.uuid, keys: None, applied, ssh_port };
    project.provider().pin(&pin, &project.permit()).await.unwrap();
    let greeter = tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            stream.write_all(b"SSH-2.0-test\r\n").await.unwrap();
        }
    });
    let patient = project.provider_with(|setup| setup.reach = Some(Duration::from_mins(1)));
    project.switch_off(&machine.id).await;
    let order = start(&order, &machine);
    assert!(matches!(patient.apply(&order, &project.permit()).await, Ok(Done::Changed)));
    greeter.abort();
    let _ = greeter.await;
    let hasty = project.provider_with(|setup| setup.reach = Some(Duration::from_millis(100)));
    let late = hasty.apply(&order, &project.permit()).await;
    assert!(matches!(late, Err(ProviderError::Late { .. })), "{late:?}");
}
