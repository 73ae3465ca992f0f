//! Where words go: the answer to standard output, everything else to standard error.

use std::fmt::Display;
use std::io::{self, Write};

use orch_model::Problems;
use orch_run::ExitCode;
use serde::Serialize;
use serde_json::{Value as Json, json};

use crate::failure::Failure;
use crate::foreign;
use crate::paint::paint;

/// How answers are given: as text for people, or as one JSON document.
pub(crate) struct Output {
    json: bool,
}

impl Output {
    pub(crate) const fn new(json: bool) -> Self {
        Self { json }
    }

    /// Gives the answer, in the form that was asked for.
    pub(crate) fn answer(&self, text: &dyn Display, json: &impl Serialize) {
        if self.json {
            print_json(json);
        } else {
            let text = ended(text);
            write_out(&if is_coloured() { paint(&text) } else { text });
        }
    }

    /// Gives an answer that another program will read, such as a script: as it is, or as the one key of a document.
    pub(crate) fn answer_plain(&self, text: &str, key: &str) {
        if self.json {
            print_json(&json!({ key: text }));
        } else {
            print_text(&text);
        }
    }

    /// Gives a part of an answer that is for people.
    pub(crate) fn say(&self, line: &dyn Display) {
        if !self.json {
            print_text(line);
        }
    }

    /// Gives what a program on a node wrote, with a line break at its end.
    pub(crate) fn pass_on(&self, bytes: &[u8]) {
        if !self.json && !bytes.is_empty() {
            write_bytes(&foreign::fit_for(&io::stdout(), bytes));
            if !bytes.ends_with(b"\n") {
                write_bytes(b"\n");
            }
        }
    }

    /// Ends a command: prints what went wrong, and gives the exit code.
    pub(crate) fn close(&self, done: Result<ExitCode, Failure>) -> u8 {
        let code = match done {
            Ok(code) => code,
            Err(failure) => {
                self.explain(&failure);
                failure.exit_code()
            }
        };
        code.into()
    }

    fn explain(&self, failure: &Failure) {
        tell(failure);
        if self.json {
            print_json(&error_document(failure));
        }
    }
}

/// Says why what was shown would not be done, and gives the exit code that says so. The answer was given already.
pub(crate) fn object(objection: &Failure) -> ExitCode {
    tell(objection);
    objection.exit_code()
}

/// Says what went wrong, and what to try next.
fn tell(failure: &Failure) {
    match failure {
        Failure::Problems(problems) => note(problems),
        Failure::Obstacles(obstacles) => {
            for obstacle in obstacles {
                note(&format!("error: {}\nhint: {}", obstacle.what, obstacle.hint));
            }
            note(&"nothing was touched");
        }
        failure => {
            note(&format!("error: {}", failure.chain()));
            if let Some(hint) = failure.hint() {
                note(&format!("hint: {hint}"));
            }
        }
    }
}

/// Prints an answer that another program will read, such as a script or a drawing: as it is, without colour.
pub(crate) fn print_text(text: &dyn Display) {
    write_out(&ended(text));
}

/// Whether standard output is a terminal that wants colour.
fn is_coloured() -> bool {
    anstream::AutoStream::choice(&io::stdout()) != anstream::ColorChoice::Never
}

/// A text with a line break at its end.
fn ended(text: &dyn Display) -> String {
    let mut text = text.to_string();
    if !text.ends_with('\n') {
        text.push('\n');
    }
    text
}

/// Prints an answer as JSON, whatever was asked for.
pub(crate) fn print_json(json: &impl Serialize) {
    match serde_json::to_string_pretty(json) {
        Ok(text) => write_out(&format!("{text}\n")),
        Err(error) => note(&format!("error: the answer cannot be written as JSON: {error}")),
    }
}

/// Says something that is not the answer, on standard error.
pub(crate) fn note(text: &dyn Display) {
    // Nobody may be there to read it.
    let _ = writeln!(anstream::stderr(), "{}", paint(&text.to_string()));
}

/// Says what a plan costs, a line each.
pub(crate) fn costs(costs: &[orch_providers::Cost]) {
    for cost in costs {
        note(&format!("cost: {cost}"));
    }
}

/// Says what will be less than was asked for.
pub(crate) fn caveats(caveats: &[String]) {
    for caveat in caveats {
        note(&format!("caveat: {caveat}"));
    }
}

/// Says what is out of date in a site that can be used.
pub(crate) fn warn(warnings: &Problems) {
    if !warnings.is_empty() {
        note(&format!("{warnings}\n"));
    }
}

fn error_document(failure: &Failure) -> Json {
    match failure {
        Failure::Problems(problems) => {
            let plural = if problems.len() == 1 { "" } else { "s" };
            let message = format!("{} problem{plural}", problems.len());
            json!({ "error": { "message": message, "problems": problems } })
        }
        Failure::Obstacles(obstacles) => {
            let shown: Vec<Json> = obstacles
                .iter()
                .map(|obstacle| json!({ "what": obstacle.what, "hint": obstacle.hint }))
                .collect();
            json!({ "error": { "message": failure.chain(), "obstacles": shown } })
        }
        failure => json!({ "error": { "message": failure.chain(), "hint": failure.hint() } }),
    }
}

/// Writes to standard output. A reader that has gone away (`orch plan | head`) is no failure of ours; a full disk is, and
/// an answer that was lost must not look like one that was given.
fn write_out(text: &str) {
    write_bytes(text.as_bytes());
}

fn write_bytes(bytes: &[u8]) {
    let mut out = io::stdout();
    match out.write_all(bytes).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            note(&format!("error: standard output cannot be written: {error}"));
            std::process::exit(u8::from(ExitCode::Failed).into());
        }
        _ => {}
    }
}
