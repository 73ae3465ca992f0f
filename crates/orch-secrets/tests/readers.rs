//! Who can read a file, before and after: what a change of recipients keeps, and what it refuses.

#![allow(clippy::unwrap_used, reason = "a test that cannot set its scene has failed")]

use orch_secrets::seal::Identity;
use orch_secrets::sops::{Policy, Rule, Selection, encrypt};
use orch_secrets::{Format, KeyPath, Keyring, Reader, ReaderKind, Secret, SopsError, SopsFile};

const FILES: [(&str, &str); 5] = [
    ("r.yaml", "a: x\nb: [y, 2]\n"),
    ("r.json", "{\"a\": \"x\", \"b\": [\"y\", 2]}"),
    ("r.env", "a=x\nb=y\n"),
    ("r.ini", "[s]\na = x\n"),
    ("r.key", "x"),
];
const PGP: &str = "    pgp:\n        - created_at: \"2024-01-01T00:00:00Z\"\n          enc: kept\n          fp: ABCD\n    unknown: kept too\n    lastmodified:";

fn identities() -> [Identity; 2] {
    [Identity::generate(), Identity::generate()]
}

fn readers(identities: &[Identity]) -> Vec<Reader> {
    identities.iter().map(|identity| identity.recipient().into()).collect()
}

fn sealed(name: &str, plain: &str, identities: &[Identity]) -> String {
    let text = encrypt(name, Format::of(name), plain.as_bytes(), &Policy::of(readers(identities))).unwrap();
    String::from_utf8(text).unwrap()
}

fn parse(name: &str, text: &[u8]) -> SopsFile {
    SopsFile::parse(name, text).unwrap()
}

#[test]
fn a_recipient_comes_and_goes_and_no_value_changes() {
    let both = identities();
    let [one, two] = [0, 1].map(|at| Keyring::of([both[at].clone()]));
    for (name, plain) in FILES {
        let text = sealed(name, plain, &both[..1]);
        let file = parse(name, text.as_bytes());
        assert!(file.open(&two).is_err(), "{name}");
        let wider = file.rewrap(&one, &readers(&both)).unwrap();
        let file = parse(name, &wider);
        assert!(file.open(&one).is_ok() && file.open(&two).is_ok(), "{name}");
        let narrower = file.rewrap(&two, &readers(&both[1..])).unwrap();
        let file = parse(name, &narrower);
        assert!(file.open(&one).is_err() && file.open(&two).is_ok(), "{name}");
        let values = |text: &str| text.matches("ENC[").count();
        let narrower = String::from_utf8(narrower).unwrap();
        let kept =
            text.split("ENC[").skip(1).filter(|part| narrower.contains(part.split(']').next().unwrap()));
        assert_eq!(kept.count(), values(&text), "{name}: values and MAC are the same");
        assert_eq!(
            file.rewrap(&two, &readers(&both[1..])).unwrap(),
            narrower.as_bytes(),
            "{name}: nothing to do"
        );
        let renewed = file.renew(&two, &readers(&both[..1])).unwrap();
        let file = parse(name, &renewed);
        assert!(file.open(&one).is_ok() && file.open(&two).is_err(), "{name}");
        let renewed = String::from_utf8(renewed).unwrap();
        let stale =
            text.split("ENC[").skip(1).filter(|part| renewed.contains(part.split(']').next().unwrap()));
        assert_eq!(stale.count(), 0, "{name}: nothing of the old key is left");
    }
}

#[test]
fn what_others_wrote_into_the_metadata_stays() {
    let both = identities();
    let ring = Keyring::of([both[0].clone()]);
    let text = sealed("r.yaml", FILES[0].1, &both[..1]).replacen("    lastmodified:", PGP, 1);
    let file = parse("r.yaml", text.as_bytes());
    let kinds: Vec<ReaderKind> = file.recipients().iter().map(Reader::kind).collect();
    assert_eq!(kinds, [ReaderKind::Other("pgp"), ReaderKind::Age]);
    // Whoever lets one more in names all that are there already, of whatever kind.
    let mut named: Vec<Reader> = file.recipients().iter().cloned().collect();
    assert_eq!(file.rewrap(&ring, &named).unwrap(), text.as_bytes(), "nothing to do");
    named.extend(readers(&both[1..]));
    for wanted in [readers(&both), named.clone()] {
        let wider = String::from_utf8(file.rewrap(&ring, &wanted).unwrap()).unwrap();
        let file = parse("r.yaml", wider.as_bytes());
        assert!(wider.contains(PGP) && file.open(&ring).is_ok());
        assert!(file.open(&Keyring::of([both[1].clone()])).is_ok());
        let refused = parse("r.yaml", sealed("r.yaml", "a: x\n", &both).as_bytes()).rewrap(&ring, &named);
        assert!(matches!(refused, Err(SopsError::Unsupported { .. })), "a new one cannot be let in");
        let refused = file.renew(&ring, &wanted).unwrap_err();
        assert!(refused.to_string().contains("not age's") && refused.hint().contains("sops rotate"));
    }
    let set = file.set(&ring, &"a".parse().unwrap(), &Secret::from(String::from("new"))).unwrap();
    assert!(String::from_utf8(set).unwrap().contains(PGP));
}

#[test]
fn what_cannot_be_renewed_whole_is_not_renewed_at_all() {
    let both = identities();
    let ring = Keyring::of([both[0].clone()]);
    let text = sealed("r.yaml", FILES[0].1, &both[..1]);
    let value = &text[text.find("ENC[").unwrap()..=text.find(']').unwrap()];
    let lost =
        format!("# {}\n{text}", value.replace("type:str", "type:comment").replace("data:", "data:AAAA"));
    let refused = parse("r.yaml", lost.as_bytes()).renew(&ring, &readers(&both)).unwrap_err();
    assert!(refused.to_string().contains("comment") && refused.hint().contains("sops rotate"), "{refused}");
    let file = parse("r.yaml", text.as_bytes());
    assert!(matches!(file.renew(&ring, &[]), Err(SopsError::NobodyCanRead { .. })));
    assert!(matches!(file.rewrap(&ring, &[]), Err(SopsError::NobodyCanRead { .. })));
    let plugin: Reader = "age1yubikey1q2w3e4r5t6y7u8i9o0p".parse().unwrap();
    assert_eq!(plugin.kind(), ReaderKind::AgePlugin);
    assert!(matches!(file.renew(&ring, std::slice::from_ref(&plugin)), Err(SopsError::Unsupported { .. })));
    assert!(matches!(
        file.rewrap(&ring, &[plugin, readers(&both)[0].clone()]),
        Err(SopsError::Unsupported { .. })
    ));
    let stranger = Keyring::of([both[1].clone()]);
    assert!(matches!(file.rewrap(&stranger, &readers(&both)), Err(SopsError::NoIdentity { .. })));
}

#[test]
fn a_file_for_kinds_that_never_open_here_says_so() {
    let both = identities();
    let text = sealed("r.yaml", FILES[0].1, &both[..1]);
    let recipient = both[0].recipient().to_string();
    for other in ["ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAABgQ", "age1pq1qqqq", "age1yubikey1qqqq"] {
        let file = parse("r.yaml", text.replace(&recipient, other).as_bytes());
        let refused = file.open(&Keyring::of([both[1].clone()])).unwrap_err();
        assert!(refused.to_string().contains(other), "{refused}");
        assert!(refused.hint().contains("none of its recipients is of a kind"), "{refused}");
    }
}

#[test]
fn a_value_is_set_only_where_it_will_be_encrypted_and_is_one() {
    let both = identities();
    let ring = Keyring::of([both[0].clone()]);
    let selection = Selection { rule: Some(Rule::EncryptedRegex("^a".into())), mac_only_encrypted: false };
    let policy = Policy { selection, ..Policy::of(readers(&both[..1])) };
    let text = encrypt("r.yaml", Format::Yaml, b"a: {b: [x]}\nc: seen\n", &policy).unwrap();
    let file = parse("r.yaml", &text);
    let set =
        |path: &str| file.set(&ring, &path.parse::<KeyPath>().unwrap(), &Secret::from(String::from("s")));
    assert!(matches!(set("new"), Err(SopsError::Unsupported { .. })), "it would stay in clear");
    assert!(matches!(set("a.b"), Err(SopsError::NotOneValue { .. })));
    assert!(matches!(set("a.b[1]"), Err(SopsError::Unsupported { .. })), "lists do not grow");
    assert!(matches!(set("a.b[0].x"), Err(SopsError::Unsupported { .. })), "a value stands in the way");
    assert!(set("a.new").is_ok() && set("a.b[0]").is_ok() && set("aa.bb").is_ok());
    let flat = sealed("r.env", "a=x\n", &both[..1]);
    let flat =
        parse("r.env", flat.as_bytes()).set(&ring, &"a".parse().unwrap(), &Secret::from(String::from("s")));
    assert!(matches!(flat, Err(SopsError::Unsupported { .. })));
}

#[test]
fn nothing_is_encrypted_for_nobody_or_over_what_is_sops_own() {
    let policy = Policy::of(readers(&identities()));
    let try_it = |name: &str, plain: &str, policy: &Policy| {
        encrypt(name, Format::of(name), plain.as_bytes(), policy).unwrap_err()
    };
    assert!(matches!(try_it("r.yaml", "a: 1\n", &Policy::default()), SopsError::NobodyCanRead { .. }));
    assert!(matches!(try_it("r.yaml", "a: 1\n", &Policy::of([])), SopsError::NobodyCanRead { .. }));
    for (name, plain) in [
        ("r.yaml", "sops: 1\n"),
        ("r.json", "{\"sops\": {}}"),
        ("r.env", "sops_mac=1\n"),
        ("r.ini", "[sops]\na = 1\n"),
    ] {
        assert!(matches!(try_it(name, plain, &policy), SopsError::Unsupported { .. }), "{name}");
    }
    let three = Policy { groups: vec![readers(&identities()); 2], threshold: 3, ..Policy::default() };
    assert!(matches!(try_it("r.yaml", "a: 1\n", &three), SopsError::BadMetadata { .. }));
}
