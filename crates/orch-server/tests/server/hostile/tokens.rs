//! Tokens that are bad, as many as can be shown.

use std::time::{Duration, Instant};

use super::siege::under;
use super::victim::Victim;
use crate::scene::{A, B};

/// How many show them at once.
const AT_ONCE: usize = 32;
const LASTS: Duration = Duration::from_secs(3);

#[tokio::test(flavor = "multi_thread")]
async fn bad_tokens_as_fast_as_they_can_be_shown_keep_nobody_from_a_good_one() {
    let victim = Victim::new();
    let good = victim.scene.token(A);
    let (payload, signature) = good.split_once('.').unwrap();
    let forged = format!("{payload}.{}", "A".repeat(signature.len()));
    let bad = [
        (A, forged, 401),
        (B, good.clone(), 401),
        (A, "rubbish".to_owned(), 400),
        (A, format!("{}.{signature}", "x".repeat(4000)), 400),
    ];
    let count = under("bad tokens from 32 at once", &victim, async {
        let begun = Instant::now();
        let mut askers = Vec::new();
        for asker in 0..AT_ONCE {
            let (client, bad) = (victim.scene.client.clone(), bad.clone());
            askers.push(tokio::spawn(async move {
                let mut count = 0_u32;
                for (node, token, status) in bad.iter().cycle().skip(asker) {
                    if begun.elapsed() > LASTS {
                        break;
                    }
                    let answer = client.get(&format!("/v1/spec/{node}"), token).await;
                    assert_eq!(answer.status, *status, "{}", String::from_utf8_lossy(&answer.body));
                    count += 1;
                }
                count
            }));
        }
        let mut count = 0;
        for asker in askers {
            count += asker.await.unwrap();
        }
        count
    })
    .await;
    eprintln!("    {} refusals a second, each with a handshake of its own", count / 3);
    assert_eq!(victim.scene.spec(A, &good).await.status, 200);
}
