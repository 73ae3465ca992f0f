//! A part of the terminal that is drawn anew ten times a second, and is gone afterwards.

use std::io::{self, Write};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use anstyle::{AnsiColor, Style};
use orch_run::live::{Board, Condition, Frame, FrameLine};
use tokio::task::JoinHandle;
use tokio::time::MissedTickBehavior;

use crate::output;

const TICK: Duration = Duration::from_millis(100);

/// The live part of the terminal.
pub(crate) struct Screen {
    canvas: Canvas,
    ticker: JoinHandle<()>,
}

/// What draws. Its copies draw on the same part of the terminal.
#[derive(Clone)]
pub(crate) struct Canvas {
    board: Arc<Board>,
    /// How many lines are drawn, to be gone over.
    drawn: Arc<Mutex<usize>>,
}

impl Screen {
    /// Begins to draw the board.
    pub(crate) fn open(board: Arc<Board>) -> Self {
        let canvas = Canvas { board, drawn: Arc::default() };
        let drawing = canvas.clone();
        let ticker = tokio::spawn(async move {
            let mut ticks = tokio::time::interval(TICK);
            ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
            loop {
                ticks.tick().await;
                drawing.redraw();
            }
        });
        Self { canvas, ticker }
    }

    /// For those who have something to say meanwhile.
    pub(crate) fn handle(&self) -> Canvas {
        self.canvas.clone()
    }

    /// Stops drawing, and takes away what is drawn.
    pub(crate) async fn close(self) {
        self.ticker.abort();
        // It ends between two drawings, or has ended; both are fine.
        let _ = self.ticker.await;
        self.canvas.wipe();
    }
}

impl Canvas {
    /// Says something above what is drawn.
    pub(crate) fn say(&self, text: &str) {
        self.wipe();
        output::note(&text);
        self.redraw();
    }

    fn redraw(&self) {
        let (width, height) = size();
        let frame = self.board.frame(width, height, Instant::now());
        self.draw(&frame);
    }

    fn wipe(&self) {
        self.draw(&Frame { lines: Vec::new() });
    }

    /// Draws over what was drawn, in one write so that nothing flickers.
    fn draw(&self, frame: &Frame) {
        let mut drawn = self.drawn.lock().expect("nobody panics while holding this");
        let mut text = String::new();
        if *drawn > 0 {
            text.push_str(&format!("\x1b[{}A", *drawn));
        }
        text.push('\r');
        for line in &frame.lines {
            text.push_str(&format!("{}\x1b[K\n", coloured(line)));
        }
        text.push_str("\x1b[J");
        *drawn = frame.lines.len();
        // The terminal may be gone; the run goes on.
        let _ = io::stderr().write_all(text.as_bytes());
    }
}

fn coloured(line: &FrameLine) -> String {
    let colour = |colour: AnsiColor| colour.on_default();
    let style = match line.condition {
        None | Some(Condition::Unchanged) => Style::new(),
        Some(Condition::Waiting | Condition::Skipped) => Style::new().dimmed(),
        Some(Condition::Working) => colour(AnsiColor::Cyan),
        Some(Condition::Changed) => colour(AnsiColor::Green),
        Some(Condition::Failed) => colour(AnsiColor::Red).bold(),
    };
    let is_plain = anstream::AutoStream::choice(&io::stderr()) == anstream::ColorChoice::Never;
    let (mark, text) = (&line.mark, &line.text);
    if is_plain { format!("{mark}{text}") } else { format!("{style}{mark}{style:#}{text}") }
}

/// Columns and rows of the terminal; a common size where it does not say.
fn size() -> (usize, usize) {
    match rustix::termios::tcgetwinsize(io::stderr()) {
        Ok(size) if size.ws_col > 0 && size.ws_row > 0 => (size.ws_col.into(), size.ws_row.into()),
        _ => (80, 24),
    }
}
