//! Keys of every kind, between sops and us: SSH, SSH turned into age, groups that share a key, and where keys are found.

use std::fs;
use std::process::Command;

use orch_secrets::sops::{Policy, encrypt};
use orch_secrets::{
    Env, Format, Keyring, Reader, ReaderKind, SopsError, SopsFile, seal::Identity, ssh_to_age,
};

use crate::program::Desk;

const PLAIN: &[u8] = b"a: secret\nb: [1, 2]\n";

/// A key of SSH, made by ssh-keygen. Nothing where there is none.
fn ssh_key(desk: &Desk, name: &str, passphrase: &str) -> Option<String> {
    let path = desk.folder.path().join(name);
    let made = Command::new("ssh-keygen")
        .args(["-q", "-t", "ed25519", "-C", "me@here", "-N", passphrase, "-f"])
        .arg(&path)
        .status();
    made.ok().filter(std::process::ExitStatus::success)?;
    Some(fs::read_to_string(path.with_extension("pub")).unwrap().trim().to_owned())
}

fn with_ssh(desk: &Desk, name: &str) -> Env {
    Env { ssh_key_file: Some(desk.folder.path().join(name)), ..Env::default() }
}

#[test]
fn ssh_keys_open_what_sops_encrypts_for_them_and_the_other_way_round() {
    let Some(desk) = Desk::new() else { return };
    let Some(public) = ssh_key(&desk, "id", "") else {
        println!("skipped: there is no ssh-keygen program");
        return;
    };
    let keyring = Keyring::from(&with_ssh(&desk, "id"));
    desk.write("x.yaml", PLAIN);
    for recipient in [public.clone(), ssh_to_age(&public).unwrap().to_string()] {
        let sealed = desk.run(&["encrypt", "--age", &recipient, "x.yaml"]).unwrap();
        let file = SopsFile::parse("x.yaml", &sealed).unwrap();
        let opened = file.open(&keyring).unwrap();
        assert_eq!(opened.secret(&"a".parse().unwrap()).unwrap().expose(), b"secret");
    }
    let ours = encrypt("x.yaml", Format::Yaml, PLAIN, &Policy::of([public.parse().unwrap()])).unwrap();
    desk.write("ours.yaml", &ours);
    let key = desk.folder.path().join("id");
    let printed = desk.run_with(
        "SOPS_AGE_SSH_PRIVATE_KEY_FILE",
        key.as_os_str(),
        &["decrypt", "--extract", "['a']", "ours.yaml"],
    );
    assert_eq!(printed.unwrap(), b"secret");
    ssh_key(&desk, "locked", "hunter2").unwrap();
    let locked = Keyring::from(&with_ssh(&desk, "locked"));
    assert!(locked.is_empty() && locked.notes().concat().contains("passphrase"), "{locked:?}");
}

#[test]
fn a_recipient_of_rsa_is_named_and_stands_in_nobodys_way() {
    let Some(desk) = Desk::new() else { return };
    let path = desk.folder.path().join("rsa");
    let made = Command::new("ssh-keygen")
        .args(["-q", "-t", "rsa", "-b", "2048", "-N", "", "-f"])
        .arg(&path)
        .status();
    if !made.is_ok_and(|status| status.success()) {
        println!("skipped: there is no ssh-keygen program");
        return;
    }
    let public = fs::read_to_string(path.with_extension("pub")).unwrap();
    let both = format!("{},{}", public.trim(), desk.recipient());
    desk.write("x.yaml", PLAIN);
    let sealed = desk.run(&["encrypt", "--age", &both, "x.yaml"]).unwrap();
    let file = SopsFile::parse("x.yaml", &sealed).unwrap();
    let kinds: Vec<ReaderKind> = file.recipients().iter().map(Reader::kind).collect();
    assert_eq!(kinds, [ReaderKind::SshRsa, ReaderKind::Age]);
    let keyring = Keyring::of([desk.identity.clone()]);
    assert!(file.open(&keyring).is_ok());
    let readers: Vec<Reader> = file.recipients().iter().cloned().collect();
    assert!(file.rewrap(&keyring, &readers).is_ok(), "it keeps what is wrapped for it");
    let refused = file.renew(&keyring, &readers).unwrap_err();
    assert!(refused.hint().contains("sops rotate"), "{refused}");
}

#[test]
fn groups_share_a_key_between_sops_and_us() {
    let Some(desk) = Desk::new() else { return };
    let identities = [desk.identity.clone(), Identity::generate(), Identity::generate()];
    let recipients: Vec<String> = identities.iter().map(|one| one.recipient().to_string()).collect();
    let groups: Vec<String> = recipients.iter().map(|one| format!("  - age: [{one}]\n")).collect();
    let groups = groups.concat();
    desk.write("groups", format!("creation_rules:\n- shamir_threshold: 2\n  key_groups:\n{groups}"));
    let policy = |threshold| Policy {
        groups: recipients.iter().map(|one| vec![one.parse().unwrap()]).collect(),
        threshold,
        ..Policy::default()
    };
    for (name, plain) in
        [("g.yaml", "a: 1\n"), ("g.json", "{\"a\": 1}"), ("g.env", "a=1\n"), ("g.ini", "[s]\na = 1\n")]
    {
        desk.write(name, plain);
        let sealed = desk.run(&["--config", "groups", "encrypt", name]).unwrap();
        let file = SopsFile::parse(name, &sealed).unwrap();
        assert_eq!((file.recipients().groups.len(), file.recipients().threshold), (3, 2), "{name}");
        assert!(file.open(&Keyring::of(identities[1..].to_vec())).is_ok(), "{name}");
        let few = file.open(&Keyring::of([desk.identity.clone()])).unwrap_err();
        assert!(matches!(few, SopsError::TooFewGroups { opened: 1, needed: 2, .. }), "{name}: {few}");
        let none = file.open(&Keyring::default()).unwrap_err();
        assert!(matches!(none, SopsError::NoIdentity { .. }), "{name}: {none}");
        assert!(file.rewrap(&Keyring::of(identities.clone()), &[]).is_err());
        let ours = encrypt(name, Format::of(name), plain.as_bytes(), &policy(2)).unwrap();
        desk.write(name, ours);
        let two: Vec<String> = identities[..2]
            .iter()
            .map(|one| String::from_utf8(one.to_secret().expose().to_vec()).unwrap())
            .collect();
        assert!(desk.run(&["decrypt", name]).is_err(), "{name}: one of them is too few");
        desk.run_with("SOPS_AGE_KEY", two.join("\n").as_ref(), &["decrypt", name]).unwrap();
    }
}

#[test]
fn identities_are_found_where_sops_finds_them() {
    let Some(desk) = Desk::new() else { return };
    let sealed = desk.encrypt("x.yaml", PLAIN, &[]).unwrap();
    let file = SopsFile::parse("x.yaml", &sealed).unwrap();
    let key = format!("# created: now\n# public key: {}\n{}\n", desk.recipient(), desk.key_text());
    let path = desk.write("keys.txt", &key);
    let home = desk.folder.path().join("home");
    fs::create_dir_all(home.join(".config/sops/age")).unwrap();
    fs::write(home.join(".config/sops/age/keys.txt"), &key).unwrap();
    let envs = [
        Env { key: Some(key.clone().into()), ..Env::default() },
        Env { key_file: Some(path.clone()), ..Env::default() },
        Env { key_command: Some(format!("cat '{}'", path.display()).into()), ..Env::default() },
        Env { home: Some(home.clone()), ..Env::default() },
        Env { config_home: Some(home.join(".config")), ..Env::default() },
        Env::of(|name| (name == "SOPS_AGE_KEY_FILE").then(|| path.clone().into_os_string())),
    ];
    for env in envs {
        assert!(file.open(&Keyring::from(&env)).is_ok(), "{env:?}");
    }
    let missing = Env {
        key_file: Some("/no/such/file".into()),
        key_command: Some(String::from("false").into()),
        ..Env::default()
    };
    let refused = file.open(&Keyring::from(&missing)).unwrap_err().to_string();
    for words in [
        "x.yaml",
        &desk.recipient(),
        "SOPS_AGE_KEY_FILE=`/no/such/file` (not there)",
        "SOPS_AGE_KEY_CMD (it failed)",
    ] {
        assert!(refused.contains(words), "{refused}");
    }
}
