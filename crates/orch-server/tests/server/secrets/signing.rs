//! Keys that the site keeps in its sops files: they sign, they are believed, and there are no others.

use std::fs;

use orch_secrets::seal::Identity;
use orch_server::{KeyError, Keys};

use super::house::House;
use crate::scene::{A, write};

const ONE: &str = "1111111111111111111111111111111111111111111111111111111111111111";
const TWO: &str = "2222222222222222222222222222222222222222222222222222222222222222";

/// Says which keys the site has.
fn name(house: &House, keys: &[&str]) {
    let keys: Vec<String> =
        keys.iter().map(|key| format!("{key}: \"secret:secrets/server.yaml#{key}\"")).collect();
    let text = format!("name: lab\nserver: {{ signing_keys: {{ {} }} }}\n", keys.join(", "));
    write(&house.scene.site("site.yaml"), &text);
}

fn house() -> House {
    let mut house = House::new();
    house.keep("secrets/server.yaml", &format!("k1: \"{ONE}\"\nk2: \"{TWO}\"\n"));
    name(&house, &["k1"]);
    house.serve();
    house
}

#[tokio::test(flavor = "multi_thread")]
async fn tokens_are_signed_by_the_keys_of_the_site_and_none_is_made_beside_them() {
    let house = house();
    let token = house.scene.token(A);
    assert_eq!(orch_model::token::read(&token).unwrap().kid.unwrap().as_str(), "k1");
    assert_eq!(house.ask(A, &token, &[]).await.status, 200);
    let folder = house.scene.folder.ledger_path().with_file_name("keys");
    let made = fs::read_dir(folder).into_iter().flatten().flatten().count();
    assert_eq!(made, 0, "no key lies in a file");
    let keys = Keys::of(&house.scene.folder);
    assert!(keys.exist());
    assert!(matches!(keys.rotate(), Err(KeyError::SiteDecides)));
    assert!(matches!(keys.retire(&"k1".parse().unwrap()), Err(KeyError::SiteDecides)));
    // A file that lay there from before is not believed.
    let mut before = House::new();
    before.serve();
    let old = before.scene.token(A);
    assert_eq!(before.ask(A, &old, &[]).await.status, 200);
    before.keep("secrets/server.yaml", &format!("k1: \"{ONE}\"\n"));
    name(&before, &["k1"]);
    before.serve();
    let answer = before.ask(A, &old, &[]).await;
    assert_eq!((answer.status, answer.code().as_str()), (401, "E301"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reload_takes_the_keys_that_the_site_has_now() {
    let house = house();
    let old = house.scene.token(A);
    let server = house.scene.server.as_ref().unwrap();
    name(&house, &["k1", "k2"]);
    server.reload().unwrap();
    let new = house.scene.token(A);
    assert_eq!(orch_model::token::read(&new).unwrap().kid.unwrap().as_str(), "k2", "the last one signs");
    assert_eq!(house.ask(A, &old, &[]).await.status, 200, "both are believed");
    assert_eq!(house.ask(A, &new, &[]).await.status, 200);
    name(&house, &["k2"]);
    server.reload().unwrap();
    let later = house.scene.token(A);
    assert_eq!(house.ask(A, &later, &[]).await.status, 200);
    name(&house, &["k1"]);
    house.scene.operator().reload().await.unwrap();
    let answer = house.ask(A, &later, &[]).await;
    assert_eq!((answer.status, answer.code().as_str()), (401, "E301"), "one that is gone is not believed");
    assert_eq!(house.ask(A, &house.scene.token(A), &[]).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_that_cannot_be_opened_change_nothing_and_are_said_to_be_so_without_being_shown() {
    let house = house();
    let token = house.scene.token(A);
    let server = house.scene.server.as_ref().unwrap();
    let half = &ONE[..40];
    let stranger = Identity::generate();
    let breaks: [(&str, &dyn Fn()); 4] = [
        ("for somebody else", &|| {
            house.keep_for("secrets/server.yaml", &format!("k1: \"{ONE}\"\n"), &stranger);
        }),
        ("not a key", &|| house.keep("secrets/server.yaml", &format!("k1: \"{half}\"\n"))),
        ("not there", &|| house.keep("secrets/server.yaml", "other: x\n")),
        ("gone", &|| fs::remove_file(house.scene.site("secrets/server.yaml")).unwrap()),
    ];
    for (how, spoil) in breaks {
        spoil();
        let error = server.reload().unwrap_err();
        let causes = std::iter::successors(std::error::Error::source(&error), |error| error.source());
        let words = causes.fold(error.to_string(), |words, cause| format!("{words}: {cause}"));
        assert!(words.contains("`k1`") && !words.contains(half), "{how}: {words}");
        let told = house.scene.operator().reload().await.unwrap_err().to_string();
        assert!(!told.contains(half), "{how}: {told}");
        let answer = house.ask(A, &token, &[]).await;
        assert_eq!(answer.status, 200, "{how}: {}", String::from_utf8_lossy(&answer.body));
    }
    assert!(!house.said().contains(half));
    house.keep("secrets/server.yaml", &format!("k1: \"{TWO}\"\n"));
    server.reload().unwrap();
    assert_eq!(house.ask(A, &token, &[]).await.code(), "E301", "another key of the same name is another key");

    // Whoever cannot open them does not begin to serve, and makes none of its own.
    let closed = House::new();
    closed.keep_for("secrets/server.yaml", &format!("k1: \"{ONE}\"\n"), &stranger);
    name(&closed, &["k1"]);
    assert!(closed.enter().is_err());
    assert!(!closed.scene.folder.ledger_path().with_file_name("keys").exists());
}
