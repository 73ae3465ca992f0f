//! What a person sees while a run goes on: a live view on a terminal, plain lines on a pipe, a log where one is asked
//! for. All of it on standard error.

mod interrupt;
mod screen;

use std::fs::File;
use std::io::{self, IsTerminal, Write};
use std::path::Path;
use std::sync::Arc;

use orch_run::live::{Board, Several};
use orch_run::log::{Level, Logger, Trace};
use orch_run::{Control, Herald, Hooks, StepValue, Watch};

use crate::args::Telling;
use crate::failure::Failure;
use crate::output;
pub(crate) use interrupt::AfterStop;
use interrupt::Interrupts;
use screen::Screen;

/// Everybody who watches a run.
pub(crate) struct View {
    board: Arc<Board>,
    screen: Option<Screen>,
    logger: Option<Arc<dyn Hooks<StepValue>>>,
    control: Control,
    interrupts: Interrupts,
}

impl View {
    /// Begins to watch a command of this verb, and to listen for Ctrl-C.
    pub(crate) fn open(telling: &Telling, verb: &str, after_stop: AfterStop) -> Result<Self, Failure> {
        let logger = logger(telling, verb)?;
        let is_logged_here = telling.log.as_deref() == Some(Path::new("-"));
        let is_live = !is_logged_here && can_redraw();
        let board = Arc::new(match (is_live, is_logged_here) {
            (false, false) => Board::announcing(|line| output::note(&line)),
            (true, _) | (_, true) => Board::silent(),
        });
        let control = Control::new();
        let screen = is_live.then(|| Screen::open(Arc::clone(&board)));
        let interrupts = Interrupts::listen(control.clone(), after_stop, screen.as_ref().map(Screen::handle));
        Ok(Self { board, screen, logger, control, interrupts })
    }

    /// How the run is stopped.
    pub(crate) fn control(&self) -> Control {
        self.control.clone()
    }

    /// Who is told by the engine.
    pub(crate) fn hooks(&self) -> Arc<dyn Hooks<StepValue>> {
        let board = Arc::clone(&self.board) as Arc<dyn Hooks<StepValue>>;
        Arc::new(Several([board].into_iter().chain(self.logger.clone()).collect()))
    }

    /// Who is told by the steps.
    pub(crate) fn watch(&self) -> Watch {
        let board = Arc::clone(&self.board);
        Arc::new(move |node, doing| board.say(node, doing))
    }

    /// Who is told what concerns a run as a whole.
    pub(crate) fn herald(&self) -> Herald {
        let canvas = self.screen.as_ref().map(Screen::handle);
        Arc::new(move |text| match &canvas {
            Some(canvas) => canvas.say(text),
            None => output::note(&text),
        })
    }

    /// Leaves a clean screen.
    pub(crate) async fn close(self) {
        self.interrupts.end();
        if let Some(screen) = self.screen {
            screen.close().await;
        }
    }
}

/// Whether standard error is a terminal that can be drawn on, for somebody who looks at it.
fn can_redraw() -> bool {
    let is_set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let is_dumb = std::env::var_os("TERM").is_none_or(|term| term.is_empty() || term == "dumb");
    io::stderr().is_terminal() && !is_dumb && !is_set("CI")
}

fn logger(telling: &Telling, verb: &str) -> Result<Option<Arc<dyn Hooks<StepValue>>>, Failure> {
    let Some(path) = telling.log.as_deref() else {
        return Ok(None);
    };
    let writer: Box<dyn Write + Send> = if path == Path::new("-") {
        Box::new(io::stderr())
    } else {
        let unusable = |source| Failure::Unusable { path: path.to_owned(), source };
        Box::new(File::create(path).map_err(unusable)?)
    };
    let trace = Trace::from_env(|name| std::env::var(name).ok());
    Ok(Some(Arc::new(Logger::new(verb, telling.log_format.into(), Level::Info, trace, writer))))
}
