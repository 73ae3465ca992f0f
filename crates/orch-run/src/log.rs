//! Log lines, as text for people and as JSON for machines, and the trace that they belong to.

use std::io::Write;
use std::sync::Mutex;
use std::time::Duration;

use jiff::Timestamp;
use orch_dag::{Failure, Hooks, SkipReason, Status, TaskReport};
use orch_model::printable;
use serde::Serialize;
use uuid::Uuid;

use crate::journal::StepValue;

/// How lines are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormat {
    /// `2026-01-07T10:30:00Z INFO [create/boot/web-1] …`
    Text,
    /// One JSON object a line.
    Json,
}

/// How much a line matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Level {
    /// For those who look for a fault in orch.
    Debug,
    /// What happens.
    Info,
    /// What went wrong and may yet be mended.
    Warn,
    /// What went wrong.
    Error,
}

impl Level {
    const fn word(self) -> &'static str {
        match self {
            Self::Debug => "DEBUG",
            Self::Info => "INFO",
            Self::Warn => "WARN",
            Self::Error => "ERROR",
        }
    }
}

/// The trace and span that this run is part of, by W3C's ids.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trace {
    /// 32 hexadecimal digits.
    pub trace_id: String,
    /// 16 hexadecimal digits.
    pub span_id: String,
}

impl Trace {
    /// Takes up the trace that the environment names (`TRACEPARENT`, or `TRACE_ID` with `SPAN_ID`), or begins one. What
    /// is malformed is passed over, as W3C asks.
    pub fn from_env(variable: impl Fn(&str) -> Option<String>) -> Self {
        let hex = |text: &str, length| {
            let fit = text.len() == length
                && text.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
            (fit && text.bytes().any(|b| b != b'0')).then(|| text.to_owned())
        };
        let parent = variable("TRACEPARENT").and_then(|parent| {
            let mut parts = parent.split('-');
            let version = parts.next()?;
            let ids = (hex(parts.next()?, 32)?, hex(parts.next()?, 16)?);
            (version.len() == 2 && version != "ff").then_some(ids)
        });
        let plain =
            || Some((hex(&variable("TRACE_ID")?, 32)?, variable("SPAN_ID").and_then(|id| hex(&id, 16))));
        let fresh = |length: usize| Uuid::new_v4().simple().to_string()[..length].to_owned();
        let (trace_id, span_id) = match parent {
            Some((trace, span)) => (trace, Some(span)),
            None => plain().unwrap_or_else(|| (fresh(32), None)),
        };
        Self { trace_id, span_id: span_id.unwrap_or_else(|| fresh(16)) }
    }

    /// What is handed on to programs that orch starts.
    pub fn to_env(&self) -> [(&'static str, String); 3] {
        let parent = format!("00-{}-{}-01", self.trace_id, self.span_id);
        [("TRACE_ID", self.trace_id.clone()), ("SPAN_ID", self.span_id.clone()), ("TRACEPARENT", parent)]
    }
}

/// One line.
#[derive(Debug, Clone, Serialize)]
pub struct Line<'l> {
    /// When.
    pub timestamp: Timestamp,
    /// How much it matters.
    pub level: Level,
    /// The verb of the command.
    pub action: &'l str,
    /// The verb of the step.
    pub phase: &'l str,
    /// The node.
    pub component: &'l str,
    /// What happened.
    pub message: &'l str,
}

impl Line<'_> {
    /// The line as text or as JSON, without a line break at its end or within.
    pub fn format(&self, format: LogFormat, trace: &Trace) -> String {
        match format {
            LogFormat::Text => {
                let Line { action, phase, component, message, .. } = self;
                let text = format!("[{action}/{phase}/{component}] {message}");
                format!("{:.0} {} {}", self.timestamp, self.level.word(), one_line(&text))
            }
            LogFormat::Json => {
                let mut json = serde_json::to_value(self).unwrap_or_default();
                json["trace_id"] = trace.trace_id.as_str().into();
                json["span_id"] = trace.span_id.as_str().into();
                json.to_string()
            }
        }
    }
}

/// A text from elsewhere as it may be shown on a terminal: on one line, and without control characters.
pub(crate) fn one_line(text: &str) -> String {
    printable(&text.replace(['\n', '\r'], " ")).into_owned()
}

/// Writes a line for whatever the engine does.
pub struct Logger<W> {
    action: String,
    format: LogFormat,
    least: Level,
    trace: Trace,
    writer: Mutex<W>,
}

impl<W: Write + Send> Logger<W> {
    /// Logs a command of this verb.
    pub fn new(action: impl Into<String>, format: LogFormat, least: Level, trace: Trace, writer: W) -> Self {
        Self { action: action.into(), format, least, trace, writer: Mutex::new(writer) }
    }

    fn log(&self, level: Level, task: &str, message: &str) {
        if level < self.least {
            return;
        }
        let (identity, phase) = task.rsplit_once('/').unwrap_or((task, ""));
        let component = identity.split_once('.').map_or(identity, |(_, node)| node);
        let component = component.split_once('@').map_or(component, |(node, _)| node);
        let line =
            Line { timestamp: Timestamp::now(), level, action: &self.action, phase, component, message };
        let line = line.format(self.format, &self.trace);
        if let Ok(mut writer) = self.writer.lock() {
            // Whoever reads the log may be gone; the run goes on.
            let _ = writeln!(writer, "{line}");
        }
    }
}

impl<W: Write + Send> Hooks<StepValue> for Logger<W> {
    fn before_task(&self, task: &str) {
        self.log(Level::Info, task, "begins");
    }

    fn after_task(&self, report: &TaskReport<StepValue>) {
        let seconds = report.duration.as_secs_f64();
        match &report.status {
            Status::Failed(failure) => self.log(Level::Error, &report.name, &format!("failed: {failure}")),
            status => self.log(Level::Info, &report.name, &format!("{status} ({seconds:.1}s)")),
        }
    }

    fn on_retry(&self, task: &str, attempt: u32, failure: &Failure, wait: Duration) {
        self.log(Level::Warn, task, &format!("attempt {attempt} failed: {failure}; again in {wait:.1?}"));
    }

    fn on_skip(&self, task: &str, reason: &SkipReason) {
        self.log(Level::Warn, task, &format!("skipped: {reason}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trace(variables: &[(&str, &str)]) -> Trace {
        Trace::from_env(|name| {
            variables.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn a_trace_is_taken_up_from_the_environment_and_handed_on() {
        let parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
        let taken = trace(&[("TRACEPARENT", parent), ("TRACE_ID", "ffffffffffffffffffffffffffffffff")]);
        assert_eq!(taken.trace_id, "0af7651916cd43dd8448eb211c80319c");
        assert_eq!(taken.to_env()[2], ("TRACEPARENT", parent.to_owned()));
        let plain =
            trace(&[("TRACE_ID", "0af7651916cd43dd8448eb211c80319c"), ("SPAN_ID", "b7ad6b7169203331")]);
        assert_eq!(plain, taken);
    }

    #[test]
    fn a_malformed_trace_is_replaced_by_a_new_one() {
        for bad in
            ["", "00-zz-b7ad6b7169203331-01", "00-00000000000000000000000000000000-b7ad6b7169203331-01"]
        {
            let begun = trace(&[("TRACEPARENT", bad)]);
            assert_eq!((begun.trace_id.len(), begun.span_id.len()), (32, 16), "{bad}");
        }
    }

    #[test]
    fn a_line_has_the_promised_form_in_both_formats() {
        let line = Line {
            timestamp: "2026-01-07T10:30:00Z".parse().unwrap(),
            level: Level::Info,
            action: "create",
            phase: "boot",
            component: "web-1",
            message: "it\nruns\u{1b}[2J",
        };
        let trace =
            trace(&[("TRACE_ID", "0af7651916cd43dd8448eb211c80319c"), ("SPAN_ID", "b7ad6b7169203331")]);
        assert_eq!(
            line.format(LogFormat::Text, &trace),
            "2026-01-07T10:30:00Z INFO [create/boot/web-1] it runs\u{fffd}[2J"
        );
        let json: serde_json::Value = serde_json::from_str(&line.format(LogFormat::Json, &trace)).unwrap();
        let mut keys: Vec<_> = json.as_object().unwrap().keys().cloned().collect();
        keys.sort();
        let expected =
            ["action", "component", "level", "message", "phase", "span_id", "timestamp", "trace_id"]
                .map(String::from);
        assert_eq!(keys, expected);
    }
}
