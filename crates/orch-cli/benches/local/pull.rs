//! Nodes that fetch their configuration, beside nodes that it is pushed to: the same nodes, made and taken down by turns.

use std::time::Duration;

use serde_json::Value as Json;

use crate::site::Site;
use crate::usage::measure;
use crate::{TURNS, median, millis};

/// How a mode did: for each turn, what a node took on average to be configured, and what the whole command took.
#[derive(Default)]
struct Times {
    configured: Vec<Duration>,
    created: Vec<Duration>,
}

pub(crate) fn beside_push() {
    println!("| nodes | configured, push | pull | pull / push | whole create, push | pull | pull / push |");
    println!("|---:|---:|---:|---:|---:|---:|---:|");
    for nodes in [1, 8, 32] {
        let site = Site::of(nodes);
        // The first one prepares the image that the others are copied from, and the server's certificate.
        site.orch("create --mode pull --only node-1");
        site.orch("destroy --yes");
        let [mut push, mut pull] = [Times::default(), Times::default()];
        for turn in 0..TURNS {
            site.change(&format!("turn {turn} of {nodes}\n"));
            push.turn(&site, "push");
            pull.turn(&site, "pull");
        }
        println!(
            "| {nodes} | {} | {} |",
            compared(&mut push.configured, &mut pull.configured),
            compared(&mut push.created, &mut pull.created)
        );
    }
}

impl Times {
    /// Makes the nodes in this mode, and takes them down again.
    fn turn(&mut self, site: &Site, mode: &str) {
        let mut report = Json::Null;
        let cost = measure(|| report = site.report(&format!("create --mode {mode}")));
        self.created.push(cost.wall);
        self.configured.push(configured(&report, site.nodes));
        site.orch("destroy --yes");
    }
}

/// How long it took on average from the moment in which a machine was made until its node had its configuration. A node that
/// pulls may have begun before that moment, while its machine was still looked at.
fn configured(report: &Json, nodes: usize) -> Duration {
    let spans: Vec<f64> = report["nodes"].as_array().unwrap().iter().map(span).collect();
    assert_eq!(spans.len(), nodes);
    Duration::from_secs_f64(spans.iter().sum::<f64>() / f64::from(u32::try_from(nodes).unwrap()))
}

fn span(node: &Json) -> f64 {
    let steps = node["steps"].as_array().unwrap();
    let [.., before, configure] = steps.as_slice() else {
        unreachable!("a node is made, and then configured")
    };
    assert_eq!((&configure["action"], &configure["status"]), (&"configure".into(), &"changed".into()));
    let end = |step: &Json| step["started"].as_f64().unwrap() + step["seconds"].as_f64().unwrap();
    end(configure) - end(before)
}

fn compared(push: &mut [Duration], pull: &mut [Duration]) -> String {
    let (push, pull) = (median(push), median(pull));
    let ratio = pull.as_secs_f64() / push.as_secs_f64();
    format!("{} | {} | {ratio:.2}", millis(push), millis(pull))
}
