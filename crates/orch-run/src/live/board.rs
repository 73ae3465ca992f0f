//! The state of every node while a run goes on, as the engine and the steps tell it.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use orch_dag::{Failure, Hooks, Plan, SkipReason, Status, TaskReport};
use orch_model::Identity;

use super::frame::Frame;
use crate::journal::StepValue;
use crate::log::one_line;

/// Is told one line whenever something changes.
type Announce = Box<dyn Fn(&str) + Send + Sync>;

/// What is going on with every node of a run. A run that begins clears it for itself, a rollback too.
pub struct Board {
    scene: Mutex<Scene>,
    announce: Announce,
}

/// What is known at one moment.
#[derive(Debug, Clone, Default)]
pub(super) struct Scene {
    pub(super) title: String,
    pub(super) began: Option<Instant>,
    pub(super) rows: Vec<Row>,
    pub(super) steps: usize,
    pub(super) ended: usize,
    places: BTreeMap<String, usize>,
}

/// One node.
#[derive(Debug, Clone)]
pub(super) struct Row {
    pub(super) name: String,
    pub(super) condition: Condition,
    pub(super) phase: String,
    pub(super) doing: String,
    pub(super) since: Option<Instant>,
    pub(super) took: Duration,
    left: usize,
}

/// How a node fares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Condition {
    /// Nothing of it has begun, or its next step has not.
    Waiting,
    /// A step of it runs.
    Working,
    /// It is done, and was changed.
    Changed,
    /// It is done, and was as wanted.
    Unchanged,
    /// A step of it failed.
    Failed,
    /// What was left of it will not be done.
    Skipped,
}

impl Board {
    /// A board that tells nobody, and is looked at.
    pub fn silent() -> Self {
        Self::announcing(|_| {})
    }

    /// A board that tells every change as one line, such as `create/web-1: waiting for ssh`.
    pub fn announcing(announce: impl Fn(&str) + Send + Sync + 'static) -> Self {
        Self { scene: Mutex::default(), announce: Box::new(announce) }
    }

    /// A step of this node says what it is doing.
    pub fn say(&self, node: &Identity, doing: &str) {
        let doing = one_line(doing);
        let said = self.on_row(&node.to_string(), |row| {
            let is_news = row.doing != doing;
            row.doing.clone_from(&doing);
            is_news.then(|| format!("{}/{}: {doing}", row.phase, row.name))
        });
        self.tell(said);
    }

    /// How it looks now, on a screen of this size.
    pub fn frame(&self, width: usize, height: usize, now: Instant) -> Frame {
        Frame::of(&self.scene.lock().expect("nobody panics while holding this"), width, height, now)
    }

    fn on_row(&self, identity: &str, change: impl FnOnce(&mut Row) -> Option<String>) -> Option<String> {
        let mut scene = self.scene.lock().expect("nobody panics while holding this");
        let place = *scene.places.get(identity)?;
        change(&mut scene.rows[place])
    }

    /// A step came to its end; the node is told as it is now.
    fn end(&self, task: &str, condition: Condition, doing: String, line: Option<String>) {
        let (identity, phase) = parts(task);
        let said = self.on_row(identity, |row| {
            row.left = row.left.saturating_sub(1);
            row.took += row.since.take().map_or(Duration::ZERO, |since| since.elapsed());
            if row.condition != Condition::Failed {
                row.doing = doing;
            }
            row.condition = row.condition.after(condition, row.left);
            line.filter(|_| phase != READY).map(|line| format!("{phase}/{}: {line}", row.name))
        });
        self.scene.lock().expect("nobody panics while holding this").ended += 1;
        self.tell(said);
    }

    fn tell(&self, said: Option<String>) {
        if let Some(line) = said {
            (self.announce)(&line);
        }
    }
}

/// The step of a node to which nothing is done.
const READY: &str = "ready";

/// The node and the verb of a step: `m.web-1@father/create`.
fn parts(task: &str) -> (&str, &str) {
    task.rsplit_once('/').unwrap_or((task, ""))
}

/// The name of the node that a step is of.
fn node_of(task: &str) -> String {
    let (identity, _) = parts(task);
    identity.parse::<Identity>().map_or_else(|_| one_line(identity), |identity| identity.node.to_string())
}

impl Condition {
    /// What a node is after one more of its steps ended so, with `left` to come. A failure stays.
    const fn after(self, ended: Self, left: usize) -> Self {
        match (self, ended) {
            (Self::Failed, _) | (_, Self::Failed) => Self::Failed,
            (_, Self::Skipped) => Self::Skipped,
            (_, _) if left > 0 => Self::Waiting,
            (_, ended) => ended,
        }
    }
}

impl Scene {
    fn of(plan: &Plan<StepValue>) -> Self {
        let mut scene =
            Self { title: plan.name().to_owned(), began: Some(Instant::now()), ..Self::default() };
        for task in plan.task_names() {
            let (identity, _) = parts(task);
            let place = *scene.places.entry(identity.to_owned()).or_insert_with(|| {
                scene.rows.push(Row::of(task));
                scene.rows.len() - 1
            });
            scene.rows[place].left += 1;
            scene.steps += 1;
        }
        scene
    }
}

impl Row {
    fn of(task: &str) -> Self {
        Self {
            name: node_of(task),
            condition: Condition::Waiting,
            phase: String::new(),
            doing: String::new(),
            since: None,
            took: Duration::ZERO,
            left: 0,
        }
    }
}

impl Hooks<StepValue> for Board {
    fn before_plan(&self, plan: &Plan<StepValue>) {
        *self.scene.lock().expect("nobody panics while holding this") = Scene::of(plan);
    }

    fn before_task(&self, task: &str) {
        let (identity, phase) = parts(task);
        let said = self.on_row(identity, |row| {
            row.condition = Condition::Working;
            phase.clone_into(&mut row.phase);
            row.doing.clear();
            row.since = Some(Instant::now());
            (phase != READY).then(|| format!("{phase}/{}: begins", row.name))
        });
        self.tell(said);
    }

    fn after_task(&self, report: &TaskReport<StepValue>) {
        let seconds = report.duration.as_secs_f64();
        let (condition, doing, line) = match &report.status {
            Status::Changed => (Condition::Changed, String::new(), format!("done ({seconds:.1}s)")),
            Status::Unchanged => {
                (Condition::Unchanged, String::new(), format!("as it should be ({seconds:.1}s)"))
            }
            Status::Skipped(reason) => return self.on_skip(&report.name, reason),
            Status::Failed(failure) => {
                let why = one_line(&failure.to_string());
                (Condition::Failed, why.clone(), format!("failed ({seconds:.1}s): {why}"))
            }
        };
        self.end(&report.name, condition, doing, Some(line));
    }

    fn on_retry(&self, task: &str, _attempt: u32, failure: &Failure, wait: Duration) {
        let (identity, phase) = parts(task);
        let said = self.on_row(identity, |row| {
            row.doing = format!("again in {:.1}s: {}", wait.as_secs_f64(), one_line(&failure.to_string()));
            Some(format!("{phase}/{}: {}", row.name, row.doing))
        });
        self.tell(said);
    }

    fn on_skip(&self, task: &str, reason: &SkipReason) {
        let why = match reason {
            SkipReason::DependencyFailed { task } => format!("`{}` failed", node_of(task)),
            SkipReason::StoppedBy { task } => format!("the run stopped when `{}` failed", node_of(task)),
            reason => one_line(&reason.to_string()),
        };
        self.end(task, Condition::Skipped, why, None);
    }
}
