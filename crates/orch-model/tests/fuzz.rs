//! The fuzzing target without nightly: random and mutated bytes for a short time, repeatable by its seed.

#[path = "../../../fuzz/driver.rs"]
mod driver;
#[path = "../../../fuzz/target.rs"]
mod target;

use std::fs;
use std::path::Path;
use std::time::Duration;

#[test]
fn random_and_mutated_bytes_never_break_a_promise() {
    driver::drive(&seeds(), Duration::from_secs(2), target::run);
}

/// The sample site's files, behind the byte that says where they stand; see `PATHS` in the target.
fn seeds() -> Vec<Vec<u8>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let folders = ["", "hosts", "manifests", "specs", "presets", "postures"].into_iter().zip(0_u8..);
    let extra = [("fuzz/seeds", 6), ("fuzz/seeds", 7)];
    let mut seeds = Vec::new();
    for (folder, choice) in folders.chain(extra) {
        for entry in fs::read_dir(root.join(folder)).expect("the folder is there").flatten() {
            let path = entry.path();
            let wanted = match choice {
                6 => "json",
                7 => "toml",
                _ => "yaml",
            };
            if path.extension().is_some_and(|extension| extension == wanted) {
                let mut seed = vec![choice];
                seed.extend(fs::read(path).expect("a sample file"));
                seeds.push(seed);
            }
        }
    }
    seeds.sort();
    seeds
}
