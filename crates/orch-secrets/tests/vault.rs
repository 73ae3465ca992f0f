//! The sops files of a site, by its folder: what a mention leads to, what is read anew, and what each failure says.

#![allow(clippy::unwrap_used, reason = "a test that cannot set its scene has failed")]

use std::fs;
use std::path::Path;

use orch_secrets::seal::Identity;
use orch_secrets::sops::{Policy, encrypt};
use orch_secrets::{Env, Format, Identities, Keyring, Vault, VaultError, rules};
use tempfile::TempDir;

/// A site with a file of two values and one that is a value as a whole.
fn site() -> (TempDir, Vault) {
    let folder = TempDir::new().unwrap();
    let identity = Identity::generate();
    fs::create_dir(folder.path().join("secrets")).unwrap();
    for (file, plain) in [
        ("secrets/app.yaml", "db: {user: u, password: p}\n"),
        ("secrets/none.yaml", "{}\n"),
        ("secrets/tls.key", "k"),
    ] {
        write(folder.path(), file, plain, &identity);
    }
    let vault = Vault::new(folder.path(), Identities::of(Keyring::of([identity])));
    (folder, vault)
}

fn write(root: &Path, file: &str, plain: &str, identity: &Identity) {
    let policy = Policy::of([identity.recipient().into()]);
    let text = encrypt(file, Format::of(file), plain.as_bytes(), &policy).unwrap();
    fs::write(root.join(file), text).unwrap();
}

#[test]
fn a_mention_of_a_file_with_several_values_is_asked_which() {
    let (_folder, vault) = site();
    let find = |mention: &str| vault.find(&mention.parse().unwrap());
    assert!(find("secret:secrets/tls.key").is_ok() && find("secret:secrets/app.yaml#db.password").is_ok());
    let error = find("secret:secrets/app.yaml").unwrap_err();
    let told = "`secrets/app.yaml` holds several values; say which: `secret:secrets/app.yaml#<path>`";
    assert_eq!(error.to_string(), told);
    assert_eq!(error.hint(), "such as `secret:secrets/app.yaml#db.user`");
    assert_eq!(find("secret:secrets/none.yaml").unwrap_err().to_string(), "`secrets/none.yaml` has no value");
    let error = find("secret:secrets/app.yaml#db.none").unwrap_err();
    assert_eq!(error.to_string(), "`secrets/app.yaml` has no value at `db.none`");
}

#[test]
fn the_rules_are_there_or_not_or_say_where_they_are_wrong() {
    let (folder, vault) = site();
    assert_eq!(vault.rules(), Ok(None));
    let path = folder.path().join(rules::FILE);
    fs::write(&path, "creation_rules:\n- age: age1x\n").unwrap();
    assert!(vault.rules().unwrap().unwrap().policy("secrets/app.yaml").is_ok());
    fs::write(&path, "creation_rules:\n  - {\n").unwrap();
    let error = vault.rules().unwrap_err();
    assert!(matches!(error, VaultError::Rules(_)) && error.to_string().starts_with(".sops.yaml:"), "{error}");
    fs::write(&path, b"creation_rules: \xff\n").unwrap();
    let error = vault.rules().unwrap_err().to_string();
    assert!(error.starts_with("`.sops.yaml` cannot be read: invalid utf-8"), "{error}");
    fs::remove_file(&path).unwrap();
    fs::create_dir(&path).unwrap();
    let error = vault.rules().unwrap_err().to_string();
    assert_eq!(error, "`.sops.yaml` cannot be read: it is not a regular file");
}

#[test]
fn a_file_stays_as_it_was_first_read_unless_it_is_asked_for_as_it_is_now() {
    let (folder, vault) = site();
    let file = "secrets/app.yaml";
    let count = |vault: &Vault| vault.file(file).as_ref().as_ref().unwrap().paths().len();
    assert_eq!((count(&vault), vault.parse_now(file).unwrap().paths().len()), (2, 2));
    write(folder.path(), file, "a: 1\n", &Identity::generate());
    assert_eq!((count(&vault), vault.parse_now(file).unwrap().paths().len()), (2, 1));
    assert_eq!(vault.read(file).unwrap(), fs::read(folder.path().join(file)).unwrap());
    assert!(matches!(vault.read("secrets/other"), Err(VaultError::NoFile { .. })));
    assert!(matches!(vault.read("secrets"), Err(VaultError::Unreadable { .. })));
}

#[test]
fn a_file_that_is_too_large_is_refused_and_not_cut() {
    let (folder, vault) = site();
    let file = fs::File::create(folder.path().join("secrets/large")).unwrap();
    file.set_len((32 << 20) + 1).unwrap();
    let error = vault.read("secrets/large").unwrap_err().to_string();
    assert_eq!(error, "`secrets/large` cannot be read: it is larger than 32 MiB");
    file.set_len(32 << 20).unwrap();
    assert_eq!(vault.read("secrets/large").unwrap().len(), 32 << 20);
}

#[test]
fn identities_are_looked_for_in_the_files_that_are_named() {
    let env = Env {
        key_file: Some("/there/is/no/key".into()),
        ssh_key_file: Some("/there/is/no/ssh".into()),
        home: Some("/there/is/no/home".into()),
        ..Env::default()
    };
    let notes = Keyring::from(&env).notes().join("\n");
    assert_eq!(env.files().len(), 4);
    for file in env.files() {
        assert!(notes.contains(&format!("`{}` (not there)", file.display())), "{notes}");
    }
    let moved = Env { config_home: Some("/config".into()), ..env };
    assert!(moved.files().contains(&"/config/sops/age/keys.txt".into()));
}
