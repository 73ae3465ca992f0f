//! What we write is opened by sops: new files, other recipients, other keys, single values.

use orch_secrets::sops::{Policy, encrypt};
use orch_secrets::{Format, KeyPath, Keyring, Reader, Secret, SopsError, SopsFile, seal::Identity};

use crate::cells::{Cell, cells};
use crate::on_two_threads;
use crate::program::Desk;

fn show(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// What sops prints of its own file, and that file.
fn by_sops(desk: &Desk, cell: &Cell, kind: &str) -> Result<(Vec<u8>, Vec<u8>), String> {
    let name = format!("{kind}-{}", cell.name);
    let sealed = desk.encrypt(&name, &cell.plain, &cell.options)?;
    let printed = desk.decrypt(&name, &sealed)?;
    Ok((sealed, printed))
}

fn compare(desk: &Desk, name: &str, text: &[u8], printed: &[u8]) -> Result<(), String> {
    let again = desk.decrypt(name, text).map_err(|why| format!("{why}\n{}", show(text)))?;
    if again == printed {
        Ok(())
    } else {
        Err(format!("sops opens it to\n{}\nand not to\n{}", show(&again), show(printed)))
    }
}

#[test]
fn sops_opens_what_we_encrypt() {
    let Some(desk) = Desk::new() else { return };
    on_two_threads(&cells(), |cell| {
        let told = |why: String| format!("{}: {why}", cell.name);
        let (_, printed) = by_sops(&desk, cell, "e").map_err(told)?;
        let policy = Policy { selection: cell.selection(), ..Policy::of([desk.identity.recipient().into()]) };
        let format = Format::of(&cell.name);
        let text = match encrypt(&cell.name, format, &cell.plain, &policy) {
            Err(SopsError::Unsupported { what, .. }) if what.contains("comments say") => return Ok(()),
            // Versions of sops read these numbers differently, so we do not write them.
            Err(SopsError::Unsupported { .. }) if cell.name.contains("clear.json") => return Ok(()),
            // sops itself loses such bytes where they stay in clear.
            Err(SopsError::Unsupported { .. }) if format == Format::Binary => return Ok(()),
            text => text.map_err(|error| told(error.to_string()))?,
        };
        // sops up to 3.13.1 takes it for a float; we do not.
        let printed = if cell.name == "numbers.json" {
            show(&printed).replace("9007199254740992", "9007199254740993").into_bytes()
        } else {
            printed
        };
        compare(&desk, &format!("f-{}", cell.name), &text, &printed).map_err(told)
    });
}

#[test]
fn sops_opens_what_we_wrapped_for_others_and_what_we_renewed() {
    let Some(desk) = Desk::new() else { return };
    let other = Identity::generate();
    let keyring = Keyring::of([desk.identity.clone()]);
    on_two_threads(&cells(), |cell| {
        let told = |why: String| format!("{}: {why}", cell.name);
        let (sealed, printed) = by_sops(&desk, cell, "r").map_err(told)?;
        let file = SopsFile::parse(&cell.name, &sealed).map_err(|error| told(error.to_string()))?;
        let both: [Reader; 2] = [desk.identity.recipient().into(), other.recipient().into()];
        let wrapped =
            file.rewrap(&keyring, &both).map_err(|error| told(format!("{error}\n{}", show(&sealed))))?;
        compare(&desk, &format!("s-{}", cell.name), &wrapped, &printed).map_err(told)?;
        let old = show(&sealed);
        let kept = old.match_indices("data:").filter(|(at, _)| !show(&wrapped).contains(&old[*at..*at + 30]));
        assert_eq!(kept.count(), 0, "{}: every value stays as it is", cell.name);
        let back = SopsFile::parse(&cell.name, &wrapped).unwrap();
        let ours = back.rewrap(&keyring, &both[..1]).map_err(|error| told(error.to_string()))?;
        assert_eq!(SopsFile::parse(&cell.name, &ours).unwrap().recipients().iter().count(), 1);
        if cell.name.starts_with("by-comments") {
            assert!(back.renew(&keyring, &both[..1]).is_err(), "{}: that is left to sops", cell.name);
            return Ok(());
        }
        let renewed =
            back.renew(&keyring, &both[..1]).map_err(|error| told(format!("{error}\n{}", show(&sealed))))?;
        compare(&desk, &format!("n-{}", cell.name), &renewed, &printed).map_err(told)?;
        let new = show(&renewed);
        let stale = old.match_indices("ENC[AES256_GCM,").filter(|(at, _)| new.contains(&old[*at..*at + 60]));
        // What stands in clear and only looks encrypted stays.
        let stale = stale.filter(|(at, _)| !old[*at..].starts_with("ENC[AES256_GCM,data:x,"));
        assert_eq!(stale.count(), 0, "{}: nothing is left of the old key\n{old}\n{new}", cell.name);
        assert_eq!(shape(&new), shape(&old), "{}: layout and comments stay", cell.name);
        Ok(())
    });
}

/// A text up to its metadata, without what is encrypted in it.
fn shape(text: &str) -> String {
    let metadata = ["\nsops:", "\n\t\"sops\"", "\n[sops]", "\nsops_"];
    let end = metadata.iter().filter_map(|start| text.find(start)).min().unwrap_or_default();
    let mut parts = text[..end].split("ENC[");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |shape, part| shape + part.split_once(']').map_or("", |(_, rest)| rest))
}

const SETS: [(&str, &str, &str, &str); 12] = [
    ("replace.yaml", "a: 1 # said\nb: {c: x}\n", "a", "['a']"),
    ("nested.yaml", "a:\n    b: x\n    # mark\nc: y\n", "a.b", "['a']['b']"),
    ("append.yaml", "a: 1\n# end\n", "new", "['new']"),
    ("append-nested.yaml", "a:\n    b: x\nc: y\n", "a.new", "['a']['new']"),
    ("make-maps.yaml", "a: 1\n", "x.y.z", "['x']['y']['z']"),
    ("list-item.yaml", "a:\n    - x\n    - y\nb: 1\n", "a[1]", "['a'][1]"),
    ("in-list.yaml", "a:\n    - k: x\n      l: y\n    - k: z\n", "a[0].new", "['a'][0]['new']"),
    ("odd-key.yaml", "a: 1\n", "[\"a b: #\"]", "['a b: #']"),
    ("empty-map.yaml", "a: {}\nb: 1\n", "a.new", "['a']['new']"),
    ("append.json", "{\"a\": {\"b\": 1}}", "new.deep", "['new']['deep']"),
    ("nested.json", "{\"a\": {\"b\": 1}, \"c\": []}", "a.new", "['a']['new']"),
    ("empty.json", "{\"a\": {}}", "a.new", "['a']['new']"),
];

#[test]
fn sops_finds_the_value_that_we_set_and_all_the_others() {
    let Some(desk) = Desk::new() else { return };
    let keyring = Keyring::of([desk.identity.clone()]);
    on_two_threads(&SETS, |(name, plain, path, extract)| {
        let told = |why: String| format!("{name}: {why}");
        let sealed = desk.encrypt(name, plain.as_bytes(), &[]).map_err(told)?;
        let file = SopsFile::parse(name, &sealed).unwrap();
        let before = file.open(&keyring).unwrap();
        let path: KeyPath = path.parse().unwrap();
        let value = Secret::from(String::from("set by us: 'ö'"));
        let text =
            file.set(&keyring, &path, &value).map_err(|error| told(format!("{error}\n{}", show(&sealed))))?;
        desk.write(name, &text);
        let found = desk
            .run(&["decrypt", "--extract", extract, name])
            .map_err(|why| told(format!("{why}\n{}", show(&text))))?;
        assert_eq!(show(&found), "set by us: 'ö'", "{name}");
        let after = SopsFile::parse(name, &text).unwrap();
        for other in file.paths().into_iter().filter(|other| *other != path) {
            let opened = after.open(&keyring).unwrap();
            assert_eq!(opened.secret(&other).unwrap(), before.secret(&other).unwrap(), "{name}: {other}");
        }
        Ok(())
    });
}

#[test]
fn a_value_has_the_bytes_that_sops_extracts() {
    let Some(desk) = Desk::new() else { return };
    let keyring = Keyring::of([desk.identity.clone()]);
    let cases = [
        (
            "x.yaml",
            "a: text\nb: 42\nc: true\nd: 1234567.5\ne: 1e21\nf: 0.5\ng: {h: [x, \"\"]}\ni: 2024-01-02\n",
        ),
        ("x.json", "{\"a\": \"text\", \"b\": 42, \"c\": false, \"d\": 1234567.5, \"e\": 1e21, \"f\": 1e-9}"),
    ];
    for (name, plain) in cases {
        let sealed = desk.encrypt(name, plain.as_bytes(), &[]).unwrap();
        desk.write(name, &sealed);
        let file = SopsFile::parse(name, &sealed).unwrap();
        let opened = file.open(&keyring).unwrap();
        for path in file.paths() {
            let words = path
                .to_string()
                .replace('[', ".[")
                .split('.')
                .map(|step| if step.starts_with('[') { step.to_owned() } else { format!("['{step}']") })
                .collect::<String>();
            let printed = show(&desk.run(&["decrypt", "--extract", &words, name]).unwrap());
            let ours = show(opened.secret(&path).unwrap().expose());
            // What is not text comes with a line break.
            assert_eq!(ours, printed.strip_suffix('\n').unwrap_or(&printed), "{name}: {path}");
        }
        let whole = if name.ends_with("yaml") { "g" } else { "" };
        assert!(matches!(opened.secret(&whole.parse().unwrap()), Err(SopsError::NotOneValue { .. })));
    }
}
