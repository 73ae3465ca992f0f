//! The page of a run: complete, self-contained, and nothing in it is markup that came from outside.

use orch_run::{NodeStatus, Report};

use crate::common::{Around, Driver, Effect, Gate, memory, own_fleet};

const NODES: &str = "  - { name: a, type: vm, spec: base, preset: small, image: i }
  - { name: b, type: vm, spec: base, preset: small, image: i }
  - { name: c, type: vm, spec: base, preset: small, image: i, depends_on: [b] }";

/// A run in which `b` failed.
async fn report() -> Report {
    let host = Around::new(&memory(), |effect: Effect| async move {
        if effect.node == "b" { Gate::Refused } else { Gate::Open }
    });
    Driver::of(&host).create(&own_fleet("on_error: continue", NODES)).await
}

#[tokio::test]
async fn it_tells_every_node_and_every_failure() {
    let report = report().await;
    let page = report.html();
    for told in ["<h1>create m on father", "partly", "What went wrong", "<b>Try</b>", "Timeline", "up to"] {
        assert!(page.contains(told), "`{told}` is in {page}");
    }
    for (node, status) in [("a", "changed"), ("b", "failed"), ("c", "skipped")] {
        let row = format!("<b>{node}</b> <small>father</small></td><td><span class=\"badge {status}\">");
        assert!(page.contains(&row), "`{row}` is in {page}");
    }
}

#[tokio::test]
async fn it_fetches_nothing() {
    let page = report().await.html();
    for word in ["http://", "https://", "<script", "<link", "<img", "url(", "@import", " src="] {
        assert!(!page.contains(word), "`{word}` is not in the page");
    }
}

#[tokio::test]
async fn nothing_from_outside_is_markup() {
    let mut report = report().await;
    let evil = "</pre><script>alert(\"1\")</script>\u{1b}[2J";
    for node in report.nodes.iter_mut().filter(|node| node.status == NodeStatus::Failed) {
        node.why = vec![evil.to_owned()];
        node.evidence = vec![evil.to_owned()];
        node.hint = Some(evil.to_owned());
        node.steps.iter_mut().for_each(|step| step.note = Some(evil.to_owned()));
    }
    report.journal_error = Some(evil.to_owned());
    let page = report.html();
    assert!(page.contains("&lt;script&gt;alert(&quot;1&quot;)"), "it is shown");
    assert!(!page.contains("<script") && !page.contains('\u{1b}'), "and harmless");
}
