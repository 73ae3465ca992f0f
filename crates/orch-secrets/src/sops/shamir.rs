//! Shares of a key among groups, byte by byte over GF(2^8), as sops (and Vault, which it has it from) does it.

use zeroize::Zeroizing;

use super::cipher::random;

/// A share: a byte of the line for each byte of the secret, and then where on the line it stands.
pub(super) type Share = Zeroizing<Vec<u8>>;

/// Puts a secret together. Nothing where the shares cannot be of one secret.
pub(super) fn combine(shares: &[Share]) -> Option<Zeroizing<Vec<u8>>> {
    let length = shares.first()?.len();
    let places: Vec<u8> = shares.iter().filter_map(|share| share.last().copied()).collect();
    let distinct = places.iter().enumerate().all(|(at, place)| !places[..at].contains(place) && *place != 0);
    if shares.len() < 2 || length < 2 || !distinct || shares.iter().any(|share| share.len() != length) {
        return None;
    }
    let mut secret = Zeroizing::new(vec![0; length - 1]);
    for (share, place) in shares.iter().zip(&places) {
        let others = places.iter().filter(|other| *other != place);
        let weight =
            others.fold(1, |weight, other| multiply(weight, multiply(*other, inverse(place ^ other))));
        for (byte, part) in secret.iter_mut().zip(share.iter()) {
            *byte ^= multiply(*part, weight);
        }
    }
    Some(secret)
}

/// Shares a secret out so that `threshold` of the shares give it back.
pub(super) fn split(secret: &[u8], shares: usize, threshold: usize) -> Option<Vec<Share>> {
    if !(2..=255).contains(&threshold) || !(threshold..=255).contains(&shares) {
        return None;
    }
    // Random coefficients for each byte, the byte itself being the lowest.
    let higher = random(secret.len() * (threshold - 1));
    let share = |place: u8| {
        let mut share = Zeroizing::new(Vec::with_capacity(secret.len() + 1));
        for (byte, coefficients) in secret.iter().zip(higher.chunks(threshold - 1)) {
            let sum =
                coefficients.iter().rev().fold(0, |sum, coefficient| multiply(sum, place) ^ coefficient);
            share.push(multiply(sum, place) ^ byte);
        }
        share.push(place);
        share
    };
    Some((1..=255).take(shares).map(share).collect())
}

/// Without a branch or a table, so that the time does not depend on what is multiplied.
fn multiply(a: u8, b: u8) -> u8 {
    let mut product = 0;
    let mut a = a;
    for bit in 0..8 {
        product ^= a & 0_u8.wrapping_sub((b >> bit) & 1);
        a = (a << 1) ^ (0x1b & 0_u8.wrapping_sub(a >> 7));
    }
    product
}

/// By Fermat: the 254th power.
fn inverse(a: u8) -> u8 {
    let mut power = a;
    for _ in 0..6 {
        power = multiply(multiply(power, power), a);
    }
    multiply(power, power)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot set its scene has failed")]

    use super::*;

    #[test]
    fn every_number_has_its_inverse() {
        assert!((1..=255).all(|number| multiply(number, inverse(number)) == 1));
    }

    #[test]
    fn enough_shares_give_the_secret_back_and_fewer_do_not() {
        let secret = b"thirty-two bytes of a data key..";
        let shares = split(secret, 5, 3).unwrap();
        for take in [[0, 1, 2], [4, 2, 0], [1, 3, 4]] {
            let some: Vec<Share> = take.iter().map(|at| shares[*at].clone()).collect();
            assert_eq!(&**combine(&some).unwrap(), secret);
        }
        assert_ne!(&**combine(&shares[..2]).unwrap(), secret);
        assert!(combine(&[shares[0].clone(), shares[0].clone()]).is_none());
    }
}
