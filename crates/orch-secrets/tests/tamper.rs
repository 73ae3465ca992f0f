//! Files that were tampered with: each way is refused with its own error, which names the file and never a value.

#![allow(clippy::unwrap_used, reason = "a test that cannot set its scene has failed")]

use orch_secrets::seal::Identity;
use orch_secrets::sops::{Policy, encrypt};
use orch_secrets::{Format, Keyring, SopsError, SopsFile};

/// What no message may hold.
const MARKER: &str = "MARKER-7f3a";
const FILES: [(&str, &str); 5] = [
    ("s.yaml", "a: MARKER-7f3a\nb:\n  c: MARKER-7f3a-2\n  d: 5\nlist: [x, y]\nclear_unencrypted: seen\n"),
    (
        "s.json",
        r#"{"a": "MARKER-7f3a", "b": {"c": "MARKER-7f3a-2", "d": 5}, "list": ["x", "y"], "clear_unencrypted": "seen"}"#,
    ),
    ("s.env", "a=MARKER-7f3a\nb=MARKER-7f3a-2\nclear_unencrypted=seen\n"),
    ("s.ini", "[s]\na = MARKER-7f3a\nb = MARKER-7f3a-2\nclear_unencrypted = seen\n"),
    ("s.key", "MARKER-7f3a\n"),
];

struct Scene {
    name: &'static str,
    text: String,
    keyring: Keyring,
}

impl Scene {
    fn of(name: &'static str, plain: &str) -> Self {
        let identity = Identity::generate();
        let policy = Policy::of([identity.recipient().into()]);
        let text = encrypt(name, Format::of(name), plain.as_bytes(), &policy).unwrap();
        Self { name, text: String::from_utf8(text).unwrap(), keyring: Keyring::of([identity]) }
    }

    /// Opens a changed text. What is said of it names the file, and nothing of what is in it.
    fn open(&self, text: &str) -> Result<(), SopsError> {
        let opened = SopsFile::parse(self.name, text.as_bytes()).and_then(|file| file.open(&self.keyring));
        if let Err(error) = &opened {
            let said = format!("{error} {error:?} {:?}", error.hint());
            assert!(said.contains(self.name), "{said}");
            assert!(!said.contains(MARKER) && !said.contains("ENC["), "{said}");
        }
        opened.map(|_| ())
    }

    /// The encrypted values, in their order.
    fn values(&self) -> Vec<&str> {
        let starts = self.text.match_indices("ENC[");
        starts.map(|(at, _)| &self.text[at..=at + self.text[at..].find(']').unwrap()]).collect()
    }
}

fn scenes() -> Vec<Scene> {
    FILES.iter().map(|(name, plain)| Scene::of(name, plain)).collect()
}

/// Another letter at the beginning of what stands behind a word.
fn spoil(text: &str, word: &str) -> String {
    let at = text.find(word).unwrap() + word.len();
    let other = if text[at..].starts_with('A') { "B" } else { "A" };
    format!("{}{other}{}", &text[..at], &text[at + 1..])
}

#[test]
fn a_value_that_was_changed_is_refused_by_its_path() {
    for scene in scenes() {
        assert_eq!(scene.open(&scene.text), Ok(()), "{}: the control opens", scene.name);
        let path = match scene.name {
            "s.key" => "data",
            "s.ini" => "s.a",
            _ => "a",
        };
        let value = scene.values()[0];
        for part in ["data:", "iv:", "tag:"] {
            let changed = scene.text.replace(value, &spoil(value, part));
            let expected = SopsError::TamperedValue { file: scene.name.into(), path: path.parse().unwrap() };
            assert_eq!(scene.open(&changed), Err(expected), "{}: {part}", scene.name);
        }
        let changed = scene.text.replace(value, "plain");
        let expected = SopsError::NotEncrypted { file: scene.name.into(), path: path.parse().unwrap() };
        assert_eq!(scene.open(&changed), Err(expected), "{}", scene.name);
    }
}

#[test]
fn a_value_that_was_moved_is_refused() {
    for scene in scenes() {
        let values = scene.values();
        if scene.name != "s.key" {
            let swapped =
                scene.text.replace(values[0], "ONE").replace(values[1], values[0]).replace("ONE", values[1]);
            assert!(matches!(scene.open(&swapped), Err(SopsError::TamperedValue { .. })), "{}", scene.name);
        }
        if ["s.yaml", "s.json"].contains(&scene.name) {
            // Items of one list have one place, so only the MAC knows their order.
            let (x, y) = (values[3], values[4]);
            let swapped = scene.text.replace(x, "ONE").replace(y, x).replace("ONE", y);
            assert_eq!(scene.open(&swapped), Err(SopsError::MacMismatch { file: scene.name.into() }));
        }
        let (old, new) = match scene.name {
            "s.json" => ("\"a\":", "\"z\":"),
            "s.yaml" => ("a: ENC", "z: ENC"),
            "s.env" => ("a=ENC", "z=ENC"),
            "s.ini" => ("a = ENC", "z = ENC"),
            _ => ("\"data\":", "\"date\":"),
        };
        let moved = scene.text.replacen(old, new, 1);
        assert!(matches!(scene.open(&moved), Err(SopsError::TamperedValue { .. })), "{}", scene.name);
    }
}

#[test]
fn the_mac_is_always_verified() {
    for scene in scenes() {
        let mismatch = Err(SopsError::MacMismatch { file: scene.name.into() });
        if scene.name != "s.key" {
            let changed = scene.text.replacen("seen", "else", 1);
            assert_eq!(scene.open(&changed), mismatch, "{}: a value in clear", scene.name);
        }
        let values = scene.values();
        let mac = *values.iter().max_by_key(|value| value.len()).unwrap();
        assert_eq!(scene.open(&scene.text.replace(mac, &spoil(mac, "data:"))), mismatch, "{}", scene.name);
        assert_eq!(scene.open(&scene.text.replace(mac, values[0])), mismatch, "{}", scene.name);
        let missing = match scene.name {
            "s.yaml" => scene.text.replace(mac, "\"\""),
            _ => scene.text.replace(mac, ""),
        };
        assert_eq!(
            scene.open(&missing),
            Err(SopsError::MacMissing { file: scene.name.into() }),
            "{}",
            scene.name
        );
        let year = scene.text.find("lastmodified").unwrap()
            + scene.text[scene.text.find("lastmodified").unwrap()..].find("20").unwrap();
        let later = format!("{}21{}", &scene.text[..year], &scene.text[year + 2..]);
        assert_eq!(scene.open(&later), mismatch, "{}: another moment", scene.name);
        if scene.name == "s.env" {
            let line = scene.text.lines().nth(1).unwrap();
            assert_eq!(
                scene.open(&scene.text.replace(&format!("{line}\n"), "")),
                mismatch,
                "a value is gone"
            );
        }
    }
}

#[test]
fn a_file_that_was_cut_is_refused_wherever_it_was() {
    for scene in scenes() {
        let version = scene.text.find("version").unwrap_or(scene.text.len());
        let last = scene.text.trim_end().len();
        for end in (0..last).filter(|end| end % 7 == 0 || *end + 40 > last || *end < 40) {
            if !scene.text.is_char_boundary(end) {
                continue;
            }
            match scene.open(&scene.text[..end]) {
                // Nothing that matters stands behind: the version is only told.
                Ok(()) => {
                    assert!(end >= version.saturating_sub(60), "{}: opens when cut at {end}", scene.name);
                }
                Err(
                    SopsError::NoSuchValue { .. } | SopsError::NotOneValue { .. } | SopsError::Spoiled { .. },
                ) => {
                    unreachable!("{}: {end}", scene.name)
                }
                Err(_) => {}
            }
        }
        let half = scene.open(&scene.text[..scene.text.find("ENC[").unwrap() + 200]);
        assert!(
            matches!(half, Err(SopsError::Truncated { .. } | SopsError::Malformed { .. })),
            "{}: {half:?}",
            scene.name
        );
    }
}

#[test]
fn a_file_for_somebody_else_says_whom_it_is_for_and_what_was_tried() {
    for scene in scenes() {
        let file = SopsFile::parse(scene.name, scene.text.as_bytes()).unwrap();
        let stranger = Keyring::of([Identity::generate()]);
        let Err(SopsError::NoIdentity { recipients, tried, .. }) = file.open(&stranger) else {
            unreachable!("{}", scene.name)
        };
        assert_eq!((recipients.len(), tried.len()), (1, 1));
        // What is wrapped for us is spoilt.
        let at = scene.text.find("ENCRYPTED FILE-----").unwrap() + 60;
        let other = if scene.text[at..].starts_with('A') { "B" } else { "A" };
        let spoilt = format!("{}{other}{}", &scene.text[..at], &scene.text[at + 1..]);
        assert!(matches!(scene.open(&spoilt), Err(SopsError::WrongKey { .. })), "{}", scene.name);
    }
}

#[test]
fn what_is_no_sops_file_is_told_apart() {
    let keyring = Keyring::default();
    for (name, plain) in FILES {
        let said = SopsFile::parse(name, plain.as_bytes()).map(|_| ()).unwrap_err();
        assert!(said.to_string().contains("not a sops file") && !said.to_string().contains(MARKER), "{said}");
    }
    let scene = Scene::of("s.yaml", FILES[0].1);
    let with = |line: &str| scene.text.replace("    unencrypted_suffix: _unencrypted\n", line);
    let two = with("    encrypted_regex: a\n    encrypted_suffix: b\n");
    assert!(matches!(scene.open(&two), Err(SopsError::BadMetadata { .. })));
    let by_comments = with("    encrypted_comment_regex: a\n");
    assert_eq!(
        scene.open(&by_comments),
        Err(SopsError::MacMismatch { file: "s.yaml".into() }),
        "so all would be in clear"
    );
    let broken = with("    encrypted_regex: (\n");
    assert!(matches!(scene.open(&broken), Err(SopsError::BadMetadata { .. })));
    let shown = format!("{keyring:?} {:?}", SopsFile::parse("s.yaml", scene.text.as_bytes()).unwrap());
    assert!(!shown.contains("ENC["));
}

#[test]
fn an_opened_file_shows_nothing_of_itself() {
    let scene = Scene::of("s.yaml", FILES[0].1);
    let opened = SopsFile::parse("s.yaml", scene.text.as_bytes()).unwrap().open(&scene.keyring).unwrap();
    let shown = format!("{opened:?} {:?}", opened.secret(&"a".parse().unwrap()));
    assert!(!shown.contains(MARKER), "{shown}");
    for path in ["b", "list", "zz", "a.b", "list[9]"] {
        let said = opened.secret(&path.parse().unwrap()).unwrap_err().to_string();
        assert!(said.contains("s.yaml") && said.contains(path) && !said.contains(MARKER), "{said}");
    }
}
