//! A node's tokens open what is that node's, and no answer holds anything else that somebody keeps for himself.

use std::fs;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use orch_model::pull::SpecAnswer;
use serde_json::Value as Json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::scene::{A, B, Scene, limits, write};

const MARK_A: &str = "mark-of-a-3f81c02b";
const MARK_B: &str = "mark-of-b-97d4e61a";
const METHODS: [&str; 8] = ["GET", "POST", "PUT", "DELETE", "PATCH", "HEAD", "OPTIONS", "TRACE"];
const BODIES: [&str; 3] =
    ["", "{\"kind\":\"progress\",\"doing\":\"nothing\"}", "{\"node\":[\"m.b@h\",\"0\"]}"];

/// Something that must not be found, with all the ways in which it could be written.
struct Secret {
    name: String,
    spellings: Vec<Vec<u8>>,
}

impl Secret {
    fn text(name: &str, text: &str) -> Self {
        Self { name: name.to_owned(), spellings: vec![text.as_bytes().to_vec()] }
    }

    /// Either half of it, as it is, in hex, and in base64 wherever it begins in what is encoded.
    fn bytes(name: &str, bytes: &[u8]) -> Self {
        let mut spellings = Vec::new();
        for half in bytes.chunks(bytes.len().div_ceil(2)) {
            let hex: String = half.iter().flat_map(|byte| [byte >> 4, byte & 15]).map(digit).collect();
            spellings.extend([half.to_vec(), hex.to_uppercase().into_bytes(), hex.into_bytes()]);
            for start in 0..3 {
                // What the last letters are hangs on what follows.
                let whole = (half.len() - start) / 3 * 3;
                for engine in [STANDARD_NO_PAD, URL_SAFE_NO_PAD] {
                    spellings.push(engine.encode(&half[start..start + whole]).into_bytes());
                }
            }
        }
        Self { name: name.to_owned(), spellings }
    }

    fn is_in(&self, answer: &[u8]) -> bool {
        self.spellings.iter().any(|spelling| answer.windows(spelling.len()).any(|window| window == spelling))
    }
}

fn digit(value: u8) -> char {
    char::from_digit(value.into(), 16).unwrap()
}

/// Two nodes that have nothing in common.
fn scene() -> Scene {
    let mut scene = Scene::without_server();
    for (spec, mark) in [("alpha", MARK_A), ("beta", MARK_B)] {
        let text = format!("schema_version: 1\nfiles: [{{ path: /etc/motd, content: {mark} }}]\n");
        write(&scene.site(&format!("specs/{spec}.yaml")), &text);
    }
    let manifest = "schema_version: 2\nname: m\nexecution: { default_mode: pull }\nnodes:\n  \
        - { name: a, type: vm, spec: alpha, preset: small, image: any }\n  \
        - { name: b, type: vm, spec: beta, preset: small, image: any }\n";
    write(&scene.site("manifests/m.yaml"), manifest);
    scene.start(&limits());
    scene
}

/// What the server keeps for itself.
fn keys(scene: &Scene) -> Vec<Secret> {
    let folder = scene.base.path().join("state/server/lab");
    let mut secrets = Vec::new();
    for entry in fs::read_dir(folder.join("keys")).unwrap().flatten() {
        let text = fs::read_to_string(entry.path()).unwrap();
        let text = text.trim();
        if text.len() == 64 {
            let byte = |at: usize| u8::from_str_radix(&text[at..at + 2], 16).unwrap();
            let bytes: Vec<u8> = (0..64).step_by(2).map(byte).collect();
            secrets.push(Secret::bytes("a signing key", &bytes));
            // Nor the file as it is, encoded once more.
            secrets.push(Secret::bytes("the text of a signing key", text.as_bytes()));
        }
    }
    let certificates = fs::read(folder.join("certificates.json")).unwrap();
    let certificates: Json = serde_json::from_slice(&certificates).unwrap();
    for which in ["current", "next"] {
        let key = STANDARD.decode(certificates[which]["key"].as_str().unwrap()).unwrap();
        secrets.push(Secret::bytes(&format!("the key of the {which} certificate"), &key));
    }
    assert_eq!(secrets.len(), 4, "a signing key in two spellings, and those of two certificates");
    secrets
}

/// Everything that comes back, head and body, until the connection ends.
async fn ask(scene: &Scene, method: &str, path: &str, token: Option<&str>, body: &str) -> Vec<u8> {
    let token = token.map(|token| format!("Authorization: Bearer {token}\r\n")).unwrap_or_default();
    let length = body.len();
    let words = format!(
        "{method} {path} HTTP/1.1\r\nHost: orch\r\nConnection: close\r\n{token}Content-Length: {length}\r\n\r\n{body}"
    );
    let mut stream = scene.client.connect().await.unwrap();
    stream.write_all(words.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    // How it ends is not what is asked here.
    let _ = stream.read_to_end(&mut answer).await;
    assert!(answer.starts_with(b"HTTP/1.1 "), "{method} {path} is answered");
    answer
}

fn paths() -> Vec<String> {
    let fixed = ["/", "/health", "/metrics", "/v1", "/v1/revoke", "/v1/reload", "/v1/spec", "/v1/nodes"];
    let mut paths: Vec<String> = fixed.map(str::to_owned).into();
    for node in [A, B, "m.nobody@h", "m.%62@h"] {
        for what in ["spec", "report", "nodes", "converge"] {
            paths.push(format!("/v1/{what}/{node}"));
        }
        paths.push(format!("/v1/wait/{node}?after=0"));
    }
    paths
}

#[tokio::test(flavor = "multi_thread")]
async fn no_endpoint_gives_a_node_anything_but_its_own_and_a_key_to_nobody() {
    let scene = scene();
    let a = scene.fetch(A, &scene.token(A)).await;
    let b = scene.fetch(B, &scene.token(B)).await;
    let of_b = |answer: &SpecAnswer| {
        let tokens = [&answer.next.spec, &answer.next.report];
        let mut secrets: Vec<Secret> =
            tokens.map(|token| Secret::text("a token of b", token.expose())).into();
        secrets.push(Secret::text("the mark of b", MARK_B));
        secrets.push(Secret::text("the spec of b", "beta"));
        secrets
    };
    let secrets: Vec<Secret> = keys(&scene).into_iter().chain(of_b(&b)).collect();
    let (spec, report) = (a.next.spec.expose(), a.next.report.expose());
    let (mut asked, mut own) = (0, 0);
    for path in paths() {
        for method in METHODS {
            for token in [None, Some(spec), Some(report)] {
                for body in if method == "POST" { &BODIES[..] } else { &BODIES[..1] } {
                    let answer = ask(&scene, method, &path, token, body).await;
                    for secret in &secrets {
                        assert!(!secret.is_in(&answer), "{method} {path} gave {} away", secret.name);
                    }
                    let is_open = path == "/health" || path.ends_with(A) || path.contains("wait/m.a@h");
                    let is_given = answer.starts_with(b"HTTP/1.1 2");
                    assert!(is_open || !is_given, "{method} {path} is not for a");
                    own += usize::from(Secret::text("the mark of a", MARK_A).is_in(&answer));
                    asked += 1;
                }
            }
        }
    }
    eprintln!("{asked} questions with the tokens of a: {own} answers hold what is its own");
    assert_eq!(own, 1, "its own configuration, with its token for it, and nowhere else");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_looked_for_would_be_found() {
    let scene = scene();
    let answer = ask(&scene, "GET", &format!("/v1/spec/{B}"), Some(&scene.token(B)), "").await;
    assert!(Secret::text("the mark of b", MARK_B).is_in(&answer), "in an answer to b it is found");
    let folder = scene.base.path().join("state/server/lab");
    let keys = keys(&scene);
    let certificates = fs::read(folder.join("certificates.json")).unwrap();
    assert!(keys[2].is_in(&certificates) && keys[3].is_in(&certificates), "in the files they are found");
    let key =
        fs::read_dir(folder.join("keys")).unwrap().flatten().map(|entry| fs::read(entry.path()).unwrap());
    let key = key.max_by_key(Vec::len).unwrap();
    assert!(keys[0].is_in(&key));
    let encoded = STANDARD.encode([b"ab", &*key].concat());
    assert!(keys[1].is_in(encoded.as_bytes()), "and wherever base64 has them begin");
}
