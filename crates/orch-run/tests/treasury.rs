//! What a run may do to the sops files of a site, and what it may not.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::thread;

use orch_model::{AgeRecipient, Identity};
use orch_run::{SiteTreasury, Treasury, TreasuryError};
use orch_secrets::sops::{Policy, encrypt};
use orch_secrets::{Format, Identities, Keyring, Reader, Secret, SopsFile, Vault, seal};
use tempfile::TempDir;

/// A site with two files, and who works on it.
struct Site {
    folder: TempDir,
    you: seal::Identity,
}

impl Site {
    /// Its files are for whoever works on it, and the first of them for these too.
    fn with(others: &[&seal::Identity]) -> Self {
        let folder = TempDir::new().expect("a folder can be made");
        let site = Self { folder, you: seal::Identity::generate() };
        let readers = || [&site.you].into_iter().chain(others.iter().copied());
        let names: Vec<String> = readers().map(|reader| reader.recipient().to_string()).collect();
        let rules = format!("creation_rules:\n  # ours\n  - age: {}\n", names.join(","));
        fs::create_dir(site.root().join("secrets")).expect("a folder can be made");
        site.write(".sops.yaml", rules.as_bytes());
        site.seal("secrets/app.yaml", "db: hunter2\n", readers());
        site.seal("secrets/own.yaml", "own: x\n", [&site.you]);
        site
    }

    fn root(&self) -> &Path {
        self.folder.path()
    }

    fn write(&self, file: &str, bytes: &[u8]) {
        fs::write(self.root().join(file), bytes).expect("a file can be written");
    }

    fn text(&self, file: &str) -> String {
        fs::read_to_string(self.root().join(file)).expect("a file can be read")
    }

    fn seal<'i>(&self, file: &str, plain: &str, readers: impl IntoIterator<Item = &'i seal::Identity>) {
        let policy = Policy::of(readers.into_iter().map(|reader| Reader::from(reader.recipient())));
        let sealed = encrypt(file, Format::of(file), plain.as_bytes(), &policy);
        self.write(file, &sealed.expect("it can be encrypted"));
    }

    fn treasury(&self) -> SiteTreasury {
        self.treasury_of(Keyring::of([self.you.clone()]))
    }

    fn treasury_of(&self, keyring: Keyring) -> SiteTreasury {
        SiteTreasury::new(Vault::new(self.root(), Identities::of(keyring)))
    }

    fn opens(&self, file: &str, identity: &seal::Identity) -> bool {
        let sops = SopsFile::parse(file, self.text(file).as_bytes()).expect("it is a sops file");
        sops.open(&Keyring::of([identity.clone()])).is_ok()
    }
}

fn dismiss(treasury: &SiteTreasury, who: &seal::Identity) -> Result<Vec<String>, TreasuryError> {
    let node: Identity = "m.web@father".parse().expect("this is an identity");
    treasury.dismiss(&node, &recipient(who))
}

fn recipient(of: &seal::Identity) -> AgeRecipient {
    of.recipient().to_string().parse().expect("this is a recipient")
}

#[test]
fn who_is_shown_out_opens_nothing_any_more_and_what_it_knew_is_told() {
    let other = seal::Identity::generate();
    let site = Site::with(&[&other]);
    let untouched = site.text("secrets/own.yaml");
    let notes = dismiss(&site.treasury(), &other).expect("it can be shown out");
    assert!(notes.len() == 1 && notes[0].contains("`secrets/app.yaml`: db"), "{notes:?}");
    assert!(site.opens("secrets/app.yaml", &site.you) && !site.opens("secrets/app.yaml", &other));
    assert!(!site.text(".sops.yaml").contains(recipient(&other).as_str()));
    assert!(site.text(".sops.yaml").contains("# ours"));
    assert_eq!(site.text("secrets/own.yaml"), untouched);
    assert_eq!(dismiss(&site.treasury(), &other), Ok(Vec::new()), "a second time changes nothing");
}

#[test]
fn what_cannot_be_done_to_the_end_is_not_begun_and_says_what_was_known() {
    let other = seal::Identity::generate();
    let site = Site::with(&[&other]);
    let before = [site.text(".sops.yaml"), site.text("secrets/app.yaml")];
    let stranger = site.treasury_of(Keyring::of([seal::Identity::generate()]));
    let error = dismiss(&stranger, &other).expect_err("nobody here can open the file");
    assert!(error.what.contains("`secrets/app.yaml`: db"), "{error}");
    assert!(error.hint.contains("sops updatekeys"), "{}", error.hint);
    assert_eq!([site.text(".sops.yaml"), site.text("secrets/app.yaml")], before);
}

#[test]
fn what_is_wrong_with_other_files_keeps_nobody() {
    let (other, nobody) = (seal::Identity::generate(), seal::Identity::generate());
    let site = Site::with(&[&other]);
    site.write("secrets/broken.yaml", b"<<<<<<< ours\n");
    dismiss(&site.treasury(), &other).expect("it can be shown out");
    site.write(".sops.yaml", b"creation_rules: [\n");
    assert_eq!(dismiss(&site.treasury(), &nobody), Ok(Vec::new()), "it is named nowhere");
    // One that names it may be for it.
    site.write("secrets/broken.yaml", format!("sops: {}\n<<<<\n", recipient(&nobody)).as_bytes());
    assert!(dismiss(&site.treasury(), &nobody).is_err());
}

#[test]
fn somebody_is_known_who_works_here_or_reads_a_file_or_is_named() {
    let (other, nobody) = (seal::Identity::generate(), seal::Identity::generate());
    let site = Site::with(&[&other]);
    let is_known = |who: &seal::Identity| site.treasury().is_known(&recipient(who));
    assert_eq!((is_known(&site.you), is_known(&other), is_known(&nobody)), (Ok(true), Ok(true), Ok(false)));
}

#[test]
fn of_many_who_make_a_value_at_once_one_does_and_it_stays() {
    let site = Arc::new(Site::with(&[]));
    let mention: orch_model::SecretRef = "secret:secrets/app.yaml#k1".parse().expect("this is a mention");
    let put = |number: usize| {
        let (site, mention) = (Arc::clone(&site), mention.clone());
        thread::spawn(move || site.treasury().put(&mention, &Secret::from(format!("value{number}"))))
    };
    let all: Vec<_> = (0..8).map(put).collect();
    let made: Vec<usize> = all
        .into_iter()
        .enumerate()
        .filter_map(|(number, put)| {
            let made = put.join().expect("nobody panics").expect("it can be put there");
            made.then_some(number)
        })
        .collect();
    assert_eq!(made.len(), 1, "{made:?}");
    let vault = Vault::new(site.root(), Identities::of(Keyring::of([site.you.clone()])));
    let value = vault.secret(&mention).expect("it is there");
    assert_eq!(value.expose(), format!("value{}", made[0]).as_bytes());
}

#[test]
fn what_somebody_left_who_was_cut_off_while_writing_is_swept_away() {
    let site = Site::with(&[]);
    let draft = site.root().join("secrets/.app.yaml.57a5e0b7.orch-new");
    fs::write(&draft, "half").expect("a file can be written");
    dismiss(&site.treasury(), &seal::Identity::generate()).expect("there is nobody to show out");
    assert!(!draft.exists() && site.root().join("secrets/app.yaml").exists());
}
