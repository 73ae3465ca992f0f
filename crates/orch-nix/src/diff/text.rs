//! Changes as text for people, of a length that can be read.

use std::fmt::{self, Display, Formatter};

use orch_model::printable;

use super::{Change, Changes, PackageChange};

/// How many lines each part has at most.
const LINES: usize = 20;

impl Display for Changes {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if self.is_empty() {
            return f.write_str("nothing changes\n");
        }
        let packages = self.packages.iter().map(|package| (package.change(), package.to_string()));
        part(f, "packages", &packages.collect::<Vec<_>>())?;
        let units = self.units.iter().map(|unit| (unit.change, printable(&unit.name).into_owned()));
        part(f, "units", &units.collect::<Vec<_>>())?;
        if self.needs_reboot() {
            let what: Vec<_> = self.reboot.iter().take(LINES).map(|change| printable(&change.what)).collect();
            writeln!(f, "needs a reboot: {}", what.join(", "))?;
        }
        match (self.paths_added, self.paths_removed) {
            (0, 0) => Ok(()),
            (added, 0) => writeln!(f, "paths: {added} added"),
            (0, removed) => writeln!(f, "paths: {removed} removed"),
            (added, removed) => writeln!(f, "paths: {added} added, {removed} removed"),
        }
    }
}

impl PackageChange {
    /// What becomes of it.
    pub const fn change(&self) -> Change {
        match (self.before.is_empty(), self.after.is_empty()) {
            (true, _) => Change::Added,
            (_, true) => Change::Removed,
            _ => Change::Changed,
        }
    }
}

impl Display for PackageChange {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let (before, after) = (self.before.join(", "), self.after.join(", "));
        match self.change() {
            Change::Added => write!(f, "{} {after}", self.name),
            Change::Removed => write!(f, "{} {before}", self.name),
            Change::Changed => write!(f, "{} {before} -> {after}", self.name),
        }
    }
}

/// A heading that counts, and a line for each thing as long as there are not too many.
fn part(f: &mut Formatter<'_>, heading: &str, lines: &[(Change, String)]) -> fmt::Result {
    if lines.is_empty() {
        return Ok(());
    }
    let counted = [(Change::Added, "added"), (Change::Changed, "changed"), (Change::Removed, "removed")];
    let counted =
        counted.map(|(change, word)| (lines.iter().filter(|(other, _)| *other == change).count(), word));
    let counted =
        counted.iter().filter(|(count, _)| *count > 0).map(|(count, word)| format!("{count} {word}"));
    writeln!(f, "{heading}: {}", counted.collect::<Vec<_>>().join(", "))?;
    for (change, line) in lines.iter().take(LINES) {
        let sign = match change {
            Change::Added => '+',
            Change::Changed => '~',
            Change::Removed => '-',
        };
        writeln!(f, "  {sign} {line}")?;
    }
    if lines.len() > LINES {
        writeln!(f, "  and {} more", lines.len() - LINES)?;
    }
    Ok(())
}
