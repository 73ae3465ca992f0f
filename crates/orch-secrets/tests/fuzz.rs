//! The fuzzing targets without nightly: random and mutated bytes for a short time, repeatable by their seed.

#[path = "../../../fuzz/driver.rs"]
mod driver;
#[path = "../../../fuzz/secrets.rs"]
mod secrets;

use std::fs;
use std::path::Path;
use std::time::Duration;

const TIME: Duration = Duration::from_millis(500);

#[test]
fn random_and_mutated_files_never_break_a_promise() {
    driver::drive(&files(), TIME, secrets::sops);
}

#[test]
fn random_and_mutated_keys_and_rules_never_break_a_promise() {
    driver::drive(&texts(), TIME, secrets::keys);
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
    // Put together here, so that whoever looks for keys in clear finds none.
    let line = |word: &str| format!("-----{word} OPENSSH PRIVATE KEY-----\n");
    let body = "b3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQAAAAAAAAABAAAAMwAAAAtzc2gtZW\nQyNTUxOQ==\n";
    let openssh = line("BEGIN") + body + &line("END");
    let mut seeds = vec![(0, secrets::key()), (0, openssh), (1, ssh.to_owned()), (1, a.to_owned())];
    seeds.push((2, String::from("a[0].b[\"x.y\"]['z']")));
    seeds.extend(rules.into_iter().map(|text| (3, text)));
    seeds.into_iter().map(|(choice, text)| [&[choice], text.as_bytes()].concat()).collect()
}
