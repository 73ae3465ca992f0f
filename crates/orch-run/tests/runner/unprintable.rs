//! What a provider says cannot move a terminal's cursor, nor pass for a line of ours.

use std::io::{self, Write};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use orch_plan::HostView;
use orch_run::log::{Level, LogFormat, Logger, Trace};
use orch_run::{Done, Order, Permit, Place, Provider, ProviderError, Scope};

use crate::common::{Driver, host, memory, own_fleet, place};

/// Refuses everything, in words that clear the screen and begin a line of their own.
struct Rude;

const WORDS: &str = "no\u{1b}[2J\n  = unchanged  web";

#[async_trait]
impl Provider for Rude {
    async fn observe(&self, _: &Scope) -> Result<HostView, ProviderError> {
        Ok(HostView::empty())
    }

    async fn apply(&self, order: &Order, _: &Permit) -> Result<Done, ProviderError> {
        Err(ProviderError::Refused { host: order.identity.host.clone(), why: WORDS.into() })
    }
}

#[derive(Clone, Default)]
struct Screen(Arc<Mutex<Vec<u8>>>);

impl Write for Screen {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().expect("nobody panics while holding this").write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn assert_plain(text: &str) {
    assert!(text.chars().all(|c| c == '\n' || !c.is_control()), "{text:?}");
    assert!(text.lines().all(|line| !line.starts_with("  = ")), "{text:?}");
    assert!(text.contains("[2J   = unchanged  web"), "the words themselves are shown: {text:?}");
}

#[tokio::test]
async fn what_a_provider_says_is_shown_on_one_line_and_without_control_characters() {
    let screen = Screen::default();
    let logger =
        Logger::new("create", LogFormat::Text, Level::Debug, Trace::from_env(|_| None), screen.clone());
    let place = Place { provider: Arc::new(Rude), ..place(&memory()) };
    let driver = Driver { hooks: Arc::new(logger), ..Driver::on([(host("father"), place)].into()) };
    let nodes = "  - { name: web, type: vm, spec: base, preset: small, image: i }";
    let report = driver.create(&own_fleet("", nodes)).await;
    assert_plain(&report.to_string());
    let shown = screen.0.lock().expect("nobody panics while holding this").clone();
    assert_plain(&String::from_utf8(shown).expect("a log is text"));
    let json = serde_json::to_value(&report).expect("a report is JSON");
    let why = json["nodes"][0]["why"][0].as_str().expect("there is a reason");
    assert!(why.contains(WORDS), "programs are told what was said: {why:?}");
}
