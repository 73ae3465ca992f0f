//! How a board looks on a screen: a line per node and an overall bar, cut to the size of the screen.

use std::time::{Duration, Instant};

use super::board::{Condition, Row, Scene};

/// The lines of a moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    /// From the top.
    pub lines: Vec<FrameLine>,
}

/// One line: what it is about, the mark at its beginning, and the rest. No wider than the screen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FrameLine {
    /// How the node fares, where it is about one.
    pub condition: Option<Condition>,
    /// The mark at the beginning of the line, with its space around.
    pub mark: String,
    /// The rest.
    pub text: String,
}

const SPINNER: [char; 10] = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏'];
const BAR_WIDTH: usize = 24;
const PHASE_WIDTH: usize = 9;
const MARK_WIDTH: usize = 4;

impl Frame {
    /// Nothing is shown before a run has begun.
    pub(super) fn of(scene: &Scene, width: usize, height: usize, now: Instant) -> Self {
        let Some(began) = scene.began else {
            return Self { lines: Vec::new() };
        };
        let names = scene.rows.iter().map(|row| row.name.chars().count()).max().unwrap_or(0);
        // One line is the bar's, and one stays free for the cursor.
        let room = height.saturating_sub(2).max(1);
        let (shown, hidden) = choose(&scene.rows, room);
        let elapsed = now.saturating_duration_since(began);
        let mut lines: Vec<FrameLine> = shown.iter().map(|row| node_line(row, names, width, now)).collect();
        if !hidden.is_empty() {
            lines.push(plain(&format!("    and {} more: {}", hidden.len(), counts(&hidden)), width));
        }
        lines.push(plain(&bar(scene, elapsed), width));
        Self { lines }
    }
}

/// The nodes that there is room for, in the plan's order where all fit; else what works or failed comes first.
fn choose(rows: &[Row], room: usize) -> (Vec<&Row>, Vec<&Row>) {
    if rows.len() <= room {
        return (rows.iter().collect(), Vec::new());
    }
    let mut rows: Vec<&Row> = rows.iter().collect();
    rows.sort_by_key(|row| match row.condition {
        Condition::Working => 0,
        Condition::Failed => 1,
        Condition::Waiting => 2,
        Condition::Changed | Condition::Unchanged | Condition::Skipped => 3,
    });
    let hidden = rows.split_off(room - 1);
    (rows, hidden)
}

fn node_line(row: &Row, names: usize, width: usize, now: Instant) -> FrameLine {
    let elapsed = row.took + row.since.map_or(Duration::ZERO, |since| now.saturating_duration_since(since));
    let symbol = match row.condition {
        Condition::Waiting => '·',
        Condition::Working => {
            SPINNER[usize::try_from(elapsed.as_millis() / 100).unwrap_or(0) % SPINNER.len()]
        }
        Condition::Changed => '~',
        Condition::Unchanged => '=',
        Condition::Failed => '!',
        Condition::Skipped => '-',
    };
    let doing = if row.doing.is_empty() { row.condition.word() } else { &row.doing };
    let time = if elapsed.is_zero() { String::new() } else { seconds(elapsed) };
    let left = format!("{:names$}  {:PHASE_WIDTH$}  {doing}", row.name, row.phase);
    let room = width.saturating_sub(MARK_WIDTH + time.len() + 1);
    let text = format!("{} {time}", padded(&left, room));
    FrameLine {
        condition: Some(row.condition),
        mark: format!("  {symbol} "),
        text: cut(&text, width.saturating_sub(MARK_WIDTH)),
    }
}

fn plain(text: &str, width: usize) -> FrameLine {
    FrameLine { condition: None, mark: String::new(), text: cut(text, width) }
}

fn bar(scene: &Scene, elapsed: Duration) -> String {
    let filled = (scene.ended * BAR_WIDTH).checked_div(scene.steps).unwrap_or(BAR_WIDTH).min(BAR_WIDTH);
    let bar = ["━".repeat(filled), "╌".repeat(BAR_WIDTH - filled)].concat();
    let rows: Vec<&Row> = scene.rows.iter().collect();
    format!(
        "{} {bar} {}/{} steps · {} · {}",
        scene.title,
        scene.ended,
        scene.steps,
        counts(&rows),
        seconds(elapsed)
    )
}

/// `2 working, 1 done, 3 waiting`.
fn counts(rows: &[&Row]) -> String {
    let count = |wanted: &[Condition]| rows.iter().filter(|row| wanted.contains(&row.condition)).count();
    let shown = [
        (count(&[Condition::Working]), "working"),
        (count(&[Condition::Failed]), "failed"),
        (count(&[Condition::Changed, Condition::Unchanged]), "done"),
        (count(&[Condition::Skipped]), "skipped"),
        (count(&[Condition::Waiting]), "waiting"),
    ];
    let words = shown.iter().filter(|(count, _)| *count > 0).map(|(count, word)| format!("{count} {word}"));
    words.collect::<Vec<_>>().join(", ")
}

impl Condition {
    const fn word(self) -> &'static str {
        match self {
            Self::Waiting => "waits",
            Self::Working => "",
            Self::Changed => "done",
            Self::Unchanged => "as it should be",
            Self::Failed => "failed",
            Self::Skipped => "skipped",
        }
    }
}

/// `4.2s`, `3m07s`.
fn seconds(time: Duration) -> String {
    match time.as_secs() {
        0..60 => format!("{:.1}s", time.as_secs_f64()),
        whole => format!("{}m{:02}s", whole / 60, whole % 60),
    }
}

/// Exactly this many characters.
fn padded(text: &str, width: usize) -> String {
    format!("{:width$}", cut(text, width))
}

/// At most this many characters, with a sign where some are missing.
fn cut(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    text.chars().take(width.saturating_sub(1)).chain(['…']).take(width).collect()
}
