//! The fingerprint of a public key as Hetzner shows it: MD5, in pairs of hex digits. It proves nothing; it only names.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

const SHIFTS: [[u32; 4]; 4] = [[7, 12, 17, 22], [5, 9, 14, 20], [4, 11, 16, 23], [6, 10, 15, 21]];

/// The fingerprint of a key in one line, as `authorized_keys` has it; none if it is no key.
pub(super) fn of(key: &str) -> Option<String> {
    let mut words = key.split_whitespace();
    let kind = words
        .next()
        .filter(|kind| kind.starts_with("ssh-") || kind.starts_with("ecdsa-") || kind.starts_with("sk-"))?;
    let blob = STANDARD.decode(words.next()?).ok()?;
    // A key says its own kind first: a length of four bytes, and the name.
    let said = blob.get(4..4 + kind.len())?;
    let pairs: Vec<String> = md5(&blob).iter().map(|byte| format!("{byte:02x}")).collect();
    (said == kind.as_bytes()).then(|| pairs.join(":"))
}

fn md5(bytes: &[u8]) -> [u8; 16] {
    let mut padded = bytes.to_vec();
    padded.push(0x80);
    while padded.len() % 64 != 56 {
        padded.push(0);
    }
    padded.extend((bytes.len() as u64 * 8).to_le_bytes());
    let mut sum = [0x6745_2301_u32, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476];
    for block in padded.chunks_exact(64) {
        let mut words = [0_u32; 16];
        for (word, four) in words.iter_mut().zip(block.chunks_exact(4)) {
            *word = u32::from_le_bytes(four.try_into().expect("these are four bytes"));
        }
        let mixed = mix(sum, &words);
        for (sum, mixed) in sum.iter_mut().zip(mixed) {
            *sum = sum.wrapping_add(mixed);
        }
    }
    let mut digest = [0; 16];
    for (four, sum) in digest.chunks_exact_mut(4).zip(sum) {
        four.copy_from_slice(&sum.to_le_bytes());
    }
    digest
}

fn mix([mut a, mut b, mut c, mut d]: [u32; 4], words: &[u32; 16]) -> [u32; 4] {
    for step in 0..64_usize {
        let (mixed, word) = match step / 16 {
            0 => ((b & c) | (!b & d), step),
            1 => ((d & b) | (!d & c), (5 * step + 1) % 16),
            2 => (b ^ c ^ d, (3 * step + 5) % 16),
            _ => (c ^ (b | !d), 7 * step % 16),
        };
        let turned = a
            .wrapping_add(mixed)
            .wrapping_add(constant(step))
            .wrapping_add(words[word])
            .rotate_left(SHIFTS[step / 16][step % 4]);
        (a, d, c, b) = (d, c, b, b.wrapping_add(turned));
    }
    [a, b, c, d]
}

/// The constants of MD5 are the first digits of sines.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss)]
fn constant(step: usize) -> u32 {
    (((step + 1) as f64).sin().abs() * 4_294_967_296.0) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn md5_is_md5() {
        let hex = |bytes: &[u8]| format!("{:032x}", u128::from_be_bytes(md5(bytes)));
        assert_eq!(hex(b""), "d41d8cd98f00b204e9800998ecf8427e");
        assert_eq!(hex(b"abc"), "900150983cd24fb0d6963f7d28e17f72");
        let long = "12345678901234567890123456789012345678901234567890123456789012345678901234567890";
        assert_eq!(hex(long.as_bytes()), "57edf4a22be3c955ac49da2e2107b67a");
    }

    #[test]
    fn what_is_no_key_has_no_fingerprint() {
        let key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJvT0ZzX6mFz1sFQ2E0oT5QyYHhC0rKk0H5wFqvV7u7A me@here";
        assert_eq!(of(key).map(|found| found.len()), Some(47));
        for wrong in ["", "ssh-ed25519", "ssh-rsa AAAAC3NzaC1lZDI1NTE5AAAA", "hello AAAA", "ssh-ed25519 !!"] {
            assert_eq!(of(wrong), None, "{wrong}");
        }
    }
}
