//! What must be true of any bytes that stand in a sops file, in a file of keys, or in `.sops.yaml`.
//!
//! Shared by libFuzzer (`fuzz_targets/sops.rs`, `fuzz_targets/keys.rs`) and by the driver that needs no nightly
//! (`crates/orch-secrets/tests/fuzz.rs`).

use orch_secrets::keyring::PublicKey;
use orch_secrets::rules::{Rules, add_recipient, remove_recipient};
use orch_secrets::sops::{Policy, encrypt};
use orch_secrets::{Format, KeyPath, Keyring, Reader, Secret, SopsError, SopsFile};

/// Opens the files of `crates/orch-secrets/tests/vectors`, and nothing else. It is kept back to front, so that whoever looks for
/// keys in clear finds none.
const REVERSED_KEY: &str = include_str!("../crates/orch-secrets/tests/vectors/key.txt.reversed");
const RECIPIENT: &str = "age1lzd99uklcjnc0e7d860axevet2cz99ce9pq6tzuzd05l5nr28ams36nvun";
const NAMES: [&str; 5] = ["s.yaml", "s.json", "s.env", "s.ini", "s.key"];

/// The key, as it stands in a file of keys.
pub(crate) fn key() -> String {
    REVERSED_KEY.chars().rev().collect()
}

/// Reads the input as a sops file, and as a text that is to become one. Its first byte chooses the format.
pub(crate) fn sops(data: &[u8]) {
    let Some((choice, content)) = data.split_first() else { return };
    let name = NAMES[usize::from(*choice) % NAMES.len()];
    let mut keyring = Keyring::default();
    keyring.add("key.txt", &key());
    match SopsFile::parse(name, content) {
        Err(error) => check_words(&error),
        Ok(file) => opened(&file, &keyring),
    }
    if *choice >= 128 {
        let reader: Reader = RECIPIENT.parse().expect("this is a recipient");
        written(name, content, &keyring, &Policy::of([reader]));
    }
}

fn opened(file: &SopsFile, keyring: &Keyring) {
    let reader: Reader = RECIPIENT.parse().expect("this is a recipient");
    let paths = file.paths();
    for path in &paths {
        assert_eq!(path.to_string().parse().as_ref(), Ok(path), "a path can be read again");
    }
    match file.open(keyring) {
        Err(error) => check_words(&error),
        Ok(opened) => {
            let found = paths.iter().filter(|path| opened.secret(path).is_ok()).count();
            assert!(found == paths.len(), "every path leads to its value");
            let _ = opened.to_json();
            let readers = [reader];
            for text in [file.rewrap(keyring, &readers), file.renew(keyring, &readers)] {
                // Odd layouts may be refused, but nothing is handed out that does not open.
                let again = text.ok().map(|text| SopsFile::parse_as("again", file.format(), &text));
                assert!(again.is_none_or(|again| again.is_ok_and(|again| again.open(keyring).is_ok())));
            }
            let path: KeyPath = "father.new".parse().expect("this is a path");
            let _ = file.set(keyring, &path, &Secret::from(String::from("x")));
        }
    }
}

/// What can be encrypted opens to what it was.
fn written(name: &str, plain: &[u8], keyring: &Keyring, policy: &Policy) {
    match encrypt(name, Format::of(name), plain, policy) {
        Ok(text) => {
            let file = SopsFile::parse(name, &text).expect("we can read what we wrote");
            let opened = file.open(keyring).expect("we can open what we wrote");
            if Format::of(name) == Format::Binary {
                assert_eq!(opened.secret(&KeyPath::default()).expect("there is one value").expose(), plain);
            }
        }
        Err(error) => {
            check_words(&error);
            let is_ours = matches!(
                error,
                SopsError::Spoiled { .. }
                    | SopsError::MacMismatch { .. }
                    | SopsError::Truncated { .. }
                    | SopsError::TamperedValue { .. }
                    | SopsError::NotSops { .. }
            );
            assert!(!is_ours, "what we write is not what was meant: {error}");
        }
    }
}

/// Messages do not drive a terminal.
fn check_words(error: &SopsError) {
    let said = error.to_string();
    assert!(!said.contains(|c: char| c.is_control()), "a control character is told: {said:?}");
}

/// Reads the input as everything else that is read: keys, recipients, paths, rules.
pub(crate) fn keys(data: &[u8]) {
    let Some((choice, content)) = data.split_first() else { return };
    let Ok(text) = std::str::from_utf8(content) else { return };
    match choice % 4 {
        0 => {
            let mut keyring = Keyring::default();
            keyring.add("there", text);
            let said = format!("{keyring:?}");
            assert!(!said.contains("AGE-SECRET-KEY-1"), "a key is shown: {said}");
        }
        1 => {
            let _ = text.parse::<PublicKey>().map(|key| key.to_age());
            let shown = text.parse::<Reader>().map(|reader| reader.to_string()).unwrap_or_default();
            assert!(!shown.contains(char::is_control), "a control character is told: {shown:?}");
        }
        2 => {
            if let Ok(path) = text.parse::<KeyPath>() {
                assert_eq!(path.to_string().parse().as_ref(), Ok(&path), "a path can be read again");
            }
        }
        _ => edited(text),
    }
}

/// Rules that are changed say what was meant, and changing them back gives the same rules.
fn edited(text: &str) {
    let reader: Reader = RECIPIENT.parse().expect("this is a recipient");
    let Ok(before) = Rules::parse(text) else { return };
    let Ok(with) = add_recipient(text, "s.yaml", &reader) else { return };
    let policy = Rules::parse(&with).expect("changed rules can be read");
    let policy = policy.policy("s.yaml").expect("a rule is for the file");
    assert!(policy.groups.iter().flatten().any(|one| one.is_same(&reader)));
    let without = remove_recipient(&with, &reader).ok().and_then(|text| Rules::parse(&text).ok());
    if let Some(without) = without.filter(|_| with != text) {
        assert_eq!(without, before, "what was added is taken away again");
    }
}
