//! The fuzzing target without nightly: random and mutated bytes for a short time, repeatable by its seed.

#[path = "../../../fuzz/target.rs"]
mod target;

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Marsaglia's xorshift: small, fast and the same everywhere.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next() % (bound.max(1) as u64)).unwrap_or_default()
    }

    fn byte(&mut self) -> u8 {
        self.next().to_le_bytes()[3]
    }
}

#[test]
fn random_and_mutated_bytes_never_break_a_promise() {
    let number = |name| std::env::var(name).ok().and_then(|text: String| text.parse::<u64>().ok());
    let clock = SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |time| time.as_secs());
    let seed = number("ORCH_FUZZ_SEED").unwrap_or(clock).max(1);
    let time = Duration::from_secs(number("ORCH_FUZZ_SECONDS").unwrap_or(2));
    println!("ORCH_FUZZ_SEED={seed}");
    let seeds = seeds();
    // The first numbers of xorshift follow its seed closely.
    let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let start = Instant::now();
    let mut runs = 0_u64;
    while start.elapsed() < time {
        let input = input(&seeds, &mut random);
        let outcome = catch_unwind(AssertUnwindSafe(|| target::run(&input)));
        assert!(outcome.is_ok(), "ORCH_FUZZ_SEED={seed}, run {runs}: {:?}", String::from_utf8_lossy(&input));
        runs += 1;
    }
    println!("{runs} runs");
    assert!(runs > 0);
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

fn input(seeds: &[Vec<u8>], random: &mut Random) -> Vec<u8> {
    if random.below(8) == 0 {
        let length = random.below(200);
        return (0..length).map(|_| random.byte()).collect();
    }
    let mut input = seeds[random.below(seeds.len())].clone();
    for _ in 0..=random.below(6) {
        mutate(&mut input, seeds, random);
    }
    input
}

/// Changes a byte, takes some out, repeats some, puts in what matters to a language, or crosses two files.
fn mutate(input: &mut Vec<u8>, seeds: &[Vec<u8>], random: &mut Random) {
    const PIECES: [&str; 16] = [
        "\n",
        ": ",
        "- ",
        "{",
        "}",
        "[",
        "]",
        "\"",
        "&a ",
        "*a",
        "<<: ",
        "~",
        "\t",
        "\r\n",
        "\u{202e}",
        "99999999999",
    ];
    let at = random.below(input.len() + 1);
    let end = (at + random.below(40)).min(input.len());
    match random.below(6) {
        0 if at < input.len() => input[at] = random.byte(),
        1 => drop(input.drain(at..end)),
        2 => {
            let part = input[at..end].to_vec();
            let there = random.below(input.len() + 1);
            input.splice(there..there, part);
        }
        3 => {
            let other = &seeds[random.below(seeds.len())];
            let from = random.below(other.len());
            let to = (from + random.below(80)).min(other.len());
            input.splice(at..end, other[from..to].iter().copied());
        }
        _ => {
            let piece = PIECES[random.below(PIECES.len())];
            input.splice(at..at, piece.bytes());
        }
    }
}
