//! Drives a fuzzing target without nightly: random and mutated bytes for a short time, repeatable by the seed.
//!
//! Included by the tests of each crate that has a target (`crates/*/tests/fuzz.rs`); what the target promises and what it
//! begins with is theirs.

#![allow(clippy::print_stdout, reason = "a run is repeated by the seed that it prints")]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Runs the target on what comes of these seeds, for the usual time unless `ORCH_FUZZ_SECONDS` says another.
pub(crate) fn drive(seeds: &[Vec<u8>], usual: Duration, target: fn(&[u8])) {
    let number = |name| std::env::var(name).ok().and_then(|text: String| text.parse::<u64>().ok());
    let clock = SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |time| time.as_secs());
    let seed = number("ORCH_FUZZ_SEED").unwrap_or(clock).max(1);
    let time = number("ORCH_FUZZ_SECONDS").map_or(usual, Duration::from_secs);
    println!("ORCH_FUZZ_SEED={seed}");
    // The first numbers of xorshift follow its seed closely.
    let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let start = Instant::now();
    let mut runs = 0_u64;
    while start.elapsed() < time {
        let input = input(seeds, &mut random);
        let outcome = catch_unwind(AssertUnwindSafe(|| target(&input)));
        assert!(outcome.is_ok(), "ORCH_FUZZ_SEED={seed}, run {runs}: {:?}", String::from_utf8_lossy(&input));
        runs += 1;
    }
    println!("{runs} runs");
    assert!(runs > 0);
}

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
    const PIECES: [&str; 18] = [
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
        "ENC[AES256_GCM,data:",
        "sops_age__list_0__map_",
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
