//! What the server counts, in the format of Prometheus.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Mutex;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

/// What the server counts.
#[derive(Debug, Default)]
pub(crate) struct Metrics {
    /// Answers, by what was asked and by their status.
    answers: Mutex<BTreeMap<(&'static str, u16), u64>>,
    pub(crate) connections: AtomicI64,
    pub(crate) handshakes_failed: AtomicU64,
    pub(crate) turned_away: AtomicU64,
    pub(crate) reloads: AtomicU64,
}

/// What is known at the moment of asking.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Gauges {
    pub(crate) nodes: usize,
    pub(crate) site_is_sound: bool,
}

impl Metrics {
    pub(crate) fn answered(&self, what: &'static str, status: u16) {
        let mut answers = self.answers.lock().expect("nobody panics while holding this");
        *answers.entry((what, status)).or_default() += 1;
    }

    pub(crate) fn text(&self, gauges: Gauges) -> String {
        let mut text = String::from("# TYPE orch_server_answers_total counter\n");
        for ((what, status), count) in self.answers.lock().expect("nobody panics while holding this").iter() {
            line(
                &mut text,
                &format!("orch_server_answers_total{{asked=\"{what}\",status=\"{status}\"}}"),
                count,
            );
        }
        let counters = [
            ("orch_server_handshakes_failed_total", &self.handshakes_failed),
            ("orch_server_turned_away_total", &self.turned_away),
            ("orch_server_reloads_total", &self.reloads),
        ];
        for (name, counter) in counters {
            line(&mut text, &format!("# TYPE {name} counter\n{name}"), counter.load(Ordering::Relaxed));
        }
        let gauges = [
            ("orch_server_connections", self.connections.load(Ordering::Relaxed)),
            ("orch_server_nodes", i64::try_from(gauges.nodes).unwrap_or(i64::MAX)),
            ("orch_server_site_is_sound", gauges.site_is_sound.into()),
        ];
        for (name, value) in gauges {
            line(&mut text, &format!("# TYPE {name} gauge\n{name}"), value);
        }
        text
    }
}

fn line(text: &mut String, name: &str, value: impl std::fmt::Display) {
    writeln!(text, "{name} {value}").expect("writing to a string cannot fail");
}
