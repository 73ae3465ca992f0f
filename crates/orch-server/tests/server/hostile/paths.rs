//! Paths that would lead out, in every spelling, over the wire.

use std::fs;
use std::path::Path;

use super::siege::under;
use super::victim::Victim;
use crate::client::Client;
use crate::scene::A;

/// Ways to say "the folder above".
const UP: [&[u8]; 14] = [
    b"../",
    b"..%2f",
    b"%2e%2e/",
    b"%2E%2E%2F",
    b".%2e/",
    b"%252e%252e%252f",
    b"..\\",
    b"..%5c",
    b"....//",
    b"..;/",
    b"%c0%ae%c0%ae%c0%af",
    b"%e0%80%ae%e0%80%ae/",
    b"\xc0\xae\xc0\xae/",
    b"..%00/",
];
/// What somebody may want to have.
const WANTED: [&str; 5] = ["keys", "certificates.json", "ledger.jsonl", "etc/passwd", "site.yaml"];
/// Where a path may begin.
const BEGINNINGS: [&str; 6] =
    ["/", "/v1/spec/", "/v1/spec/m.a@h/", "/health/", "http://orch/", "http://orch/v1/spec/"];

#[tokio::test(flavor = "multi_thread")]
async fn no_spelling_of_a_path_is_answered_with_anything_but_no() {
    let victim = Victim::new();
    let token = victim.scene.token(A);
    victim.scene.fetch(A, &token).await;
    let kept = lines_below(&victim.scene.base.path().join("state"));
    assert!(kept.len() >= 3, "keys, certificates and a ledger are there to be found");
    let paths = paths();
    let asked = paths.len();
    under(&format!("{asked} paths that lead out"), &victim, async {
        // Four at once: each is a connection, because whoever is refused is sent away.
        let quarters = paths.chunks(asked.div_ceil(4)).map(|paths| {
            let (client, token) = (victim.scene.client.clone(), token.clone());
            let (paths, kept) = (paths.to_vec(), kept.clone());
            tokio::spawn(async move { ask_all(&client, &token, &paths, &kept).await })
        });
        for quarter in quarters.collect::<Vec<_>>() {
            quarter.await.unwrap();
        }
    })
    .await;
}

async fn ask_all(client: &Client, token: &str, paths: &[Vec<u8>], kept: &[String]) {
    for path in paths {
        let mut words = b"GET ".to_vec();
        words.extend_from_slice(path);
        let rest = format!(" HTTP/1.1\r\nHost: orch\r\nAuthorization: Bearer {token}\r\n\r\n");
        words.extend_from_slice(rest.as_bytes());
        let answer = client.say(&words).await.unwrap();
        let (path, body) = (String::from_utf8_lossy(path), String::from_utf8_lossy(&answer.body));
        assert!([400, 404].contains(&answer.status), "{path}: {} {body}", answer.status);
        assert!(!kept.iter().any(|line| body.contains(line)), "{path}: {body}");
    }
}

fn paths() -> Vec<Vec<u8>> {
    let mut paths = Vec::new();
    for (number, up) in UP.into_iter().enumerate() {
        for beginning in BEGINNINGS {
            // Not every wish in every spelling: they are told apart nowhere.
            let wanted = WANTED[(number + beginning.len()) % WANTED.len()];
            for deep in [1, 8] {
                paths.push([beginning.as_bytes(), &up.repeat(deep), wanted.as_bytes()].concat());
            }
        }
    }
    paths.extend(
        ["/", "//", "/v1/spec//etc/passwd", "/.", "/..", "/v1/spec/%", "/%", "/?../../keys"].map(Into::into),
    );
    paths
}

/// Every line of every file below a folder that is long enough to be nothing else, and the names of the files.
fn lines_below(folder: &Path) -> Vec<String> {
    let mut lines = Vec::new();
    for entry in fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        lines.push(entry.file_name().into_string().unwrap());
        if path.is_dir() {
            lines.extend(lines_below(&path));
        } else if let Ok(text) = fs::read_to_string(&path) {
            lines.extend(text.lines().map(str::to_owned));
        }
    }
    lines.retain(|line| line.len() >= 10);
    lines
}
