//! The fuzzing targets without nightly: random and mutated bytes for a short time, repeatable by their seed.

#![allow(clippy::print_stdout, reason = "a run is repeated by the seed that it prints")]

#[path = "../../../fuzz/secrets.rs"]
mod secrets;

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
fn random_and_mutated_files_never_break_a_promise() {
    drive(&files(), secrets::sops);
}

#[test]
fn random_and_mutated_keys_and_rules_never_break_a_promise() {
    drive(&texts(), secrets::keys);
}

fn drive(seeds: &[Vec<u8>], target: fn(&[u8])) {
    let number = |name| std::env::var(name).ok().and_then(|text: String| text.parse::<u64>().ok());
    let clock = SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |time| time.as_secs());
    let seed = number("ORCH_FUZZ_SEED").unwrap_or(clock).max(1);
    let time = number("ORCH_FUZZ_SECONDS").map_or(Duration::from_millis(500), Duration::from_secs);
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

/// Files that sops wrote, and the same in clear, behind the byte that says how they are written; see `NAMES` in the target.
fn files() -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vectors");
    let mut seeds = Vec::new();
    for (ending, choice) in ["yaml", "json", "env", "ini", "key"].into_iter().zip(0_u8..) {
        let sealed = fs::read(folder.join(format!("all.{ending}"))).expect("a vector");
        seeds.push([&[choice], sealed.as_slice()].concat());
        // From 130 on, the content is encrypted too.
        let plain: &[u8] = match ending {
            "yaml" => b"a: &x [1, 2.5, yes, ~, 2024-01-02]\nb: {c: *x, \"d e\": |\n  text\n  }\n# said\nf_unencrypted: 'q'\n---\ng: 1\n",
            "json" => b"{\"a\": [1, -2.5e3, true, null, {\"b\": \"\\u00e9\\n\"}], \"c_unencrypted\": {}}",
            "env" => b"A=1\n# said\nB=x\\ny\nC_unencrypted=\n",
            "ini" => b"a = 1\n[s]\nb: `x;y`\nc = \"\"\"m\nn\"\"\"\nd_unencrypted = z \\\n  w\n",
            _ => b"\x00\xff",
        };
        seeds.push([&[130 + choice], plain].concat());
    }
    seeds
}

/// Keys, recipients, paths and rules.
fn texts() -> Vec<Vec<u8>> {
    let a = "age1ql3z7hjy54pw3hyww5ayyfg7zqgvc7w3j2elw8zmrj2kg5sfn9aqmcac8p";
    let ssh = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIHsKLqeplhpW+uObz5dvMgjz1OxfM/XXUB+VHtZ6isGN me";
    let rules = [
        format!("creation_rules:\n  - path_regex: \\.yaml$\n    age: {a},{a}\n"),
        format!("keys:\n  - &a {a}\ncreation_rules:\n  - key_groups:\n    - age:\n      - *a # one\n"),
        format!("creation_rules: [{{age: [{a}, '{ssh}']}}]\n"),
        format!("creation_rules:\n- age: >-\n    {a},\n    {a}\n  encrypted_regex: ^(a|b)$\n"),
    ];
    let openssh = "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQAAAAAAAAABAAAAMwAAAAtzc2gtZW\nQyNTUxOQ==\n-----END OPENSSH PRIVATE KEY-----\n";
    let key = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vectors/key.txt"));
    let mut seeds =
        vec![(0, key.expect("a vector")), (0, openssh.to_owned()), (1, ssh.to_owned()), (1, a.to_owned())];
    seeds.push((2, String::from("a[0].b[\"x.y\"]['z']")));
    seeds.extend(rules.into_iter().map(|text| (3, text)));
    seeds.into_iter().map(|(choice, text)| [&[choice], text.as_bytes()].concat()).collect()
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
