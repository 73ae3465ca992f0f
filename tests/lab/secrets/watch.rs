//! Somebody who looks at the arguments and variables of every process that lives meanwhile, again and again.

use std::collections::BTreeSet;
use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use super::needles::Needles;

/// Looks until it is ended.
pub(crate) struct Watch {
    is_over: Arc<AtomicBool>,
    looking: JoinHandle<BTreeSet<String>>,
}

impl Watch {
    /// Looks at everybody but those whose command lines have all of these words.
    pub(crate) fn begin(needles: &Arc<Needles>, but: &[String]) -> Self {
        let is_over = Arc::new(AtomicBool::new(false));
        let (needles, but, over) = (Arc::clone(needles), but.to_vec(), Arc::clone(&is_over));
        let looking = std::thread::spawn(move || {
            let mut found = BTreeSet::new();
            while !over.load(Ordering::Relaxed) {
                look(&needles, &but, &mut found);
            }
            found
        });
        Self { is_over, looking }
    }

    /// What was found.
    pub(crate) fn end(self) -> BTreeSet<String> {
        self.is_over.store(true, Ordering::Relaxed);
        self.looking.join().unwrap()
    }
}

fn look(needles: &Needles, but: &[String], found: &mut BTreeSet<String>) {
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else {
            continue;
        };
        // In this order: a process that was started a moment ago has what its parent has until it runs a program of its own.
        // One that has other words by now has other variables too.
        let words = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let variables = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        let shown = String::from_utf8_lossy(&words).replace('\0', " ");
        if !but.is_empty() && but.iter().all(|word| shown.contains(word.as_str())) {
            continue;
        }
        for (place, bytes) in [("arguments", &words), ("variables", &variables)] {
            for what in needles.in_bytes(bytes) {
                let program = shown.split(' ').take(4).collect::<Vec<_>>().join(" ");
                found.insert(format!("{what} in the {place} of `{program}`"));
            }
        }
    }
}
