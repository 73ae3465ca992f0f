//! One encrypted value: `ENC[AES256_GCM,data:…,iv:…,tag:…,type:…]`.

use aes_gcm::AesGcm;
use aes_gcm::aead::consts::{U12, U16, U32};
use aes_gcm::aead::generic_array::{ArrayLength, GenericArray};
use aes_gcm::aead::rand_core::RngCore;
use aes_gcm::aead::{AeadInPlace, KeyInit, OsRng};
use aes_gcm::aes::Aes256;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use zeroize::Zeroizing;

use super::node::{Data, Value};
use super::scalar;
use crate::Secret;

/// The key of a file, which its values are encrypted with.
pub(crate) type DataKey = Zeroizing<[u8; 32]>;

/// Why a value does not open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Closed {
    /// It is not an encrypted value at all.
    NotEncrypted,
    /// It is damaged, of another key, or of another place.
    Wrong,
}

/// So many random bytes.
pub(super) fn random(count: usize) -> Zeroizing<Vec<u8>> {
    let mut bytes = Zeroizing::new(vec![0; count]);
    OsRng.fill_bytes(&mut bytes);
    bytes
}

/// A new key.
pub(crate) fn new_key() -> DataKey {
    let mut key = Zeroizing::new([0; 32]);
    OsRng.fill_bytes(&mut *key);
    key
}

/// The parts of an encrypted value.
struct Parts<'a> {
    data: &'a str,
    iv: &'a str,
    tag: &'a str,
    kind: &'a str,
}

fn parts(text: &str) -> Option<Parts<'_>> {
    let rest = text.strip_prefix("ENC[AES256_GCM,data:")?.strip_suffix(']')?;
    let (data, rest) = rest.split_once(",iv:")?;
    let (iv, rest) = rest.split_once(",tag:")?;
    let (tag, kind) = rest.split_once(",type:")?;
    Some(Parts { data, iv, tag, kind })
}

/// Whether a value is an encrypted comment, by what it says of itself.
pub(super) fn is_comment(text: &str) -> bool {
    parts(text).is_some_and(|parts| parts.kind == "comment")
}

/// Opens a value that was encrypted for a place. The empty text is stored as it is.
pub(super) fn open(text: &str, key: &DataKey, place: &str) -> Result<Data, Closed> {
    if text.is_empty() {
        return Ok(Data::Text(Secret::new(Vec::new())));
    }
    let parts = parts(text).ok_or(Closed::NotEncrypted)?;
    let decode = |part: &str| STANDARD.decode(part).map_err(|_| Closed::Wrong);
    let (iv, tag) = (decode(parts.iv)?, decode(parts.tag)?);
    let mut data = Zeroizing::new(decode(parts.data)?);
    if tag.len() != 16 {
        return Err(Closed::Wrong);
    }
    let place = place.as_bytes();
    // sops writes 32 bytes, and takes any length; these are all that were ever written.
    let opened = match iv.len() {
        32 => unlock::<U32>(key, &iv, &tag, place, &mut data),
        16 => unlock::<U16>(key, &iv, &tag, place, &mut data),
        12 => unlock::<U12>(key, &iv, &tag, place, &mut data),
        _ => None,
    };
    opened.ok_or(Closed::Wrong)?;
    typed(parts.kind, Secret::new(std::mem::take(&mut *data))).ok_or(Closed::Wrong)
}

fn unlock<N: ArrayLength<u8>>(
    key: &DataKey,
    iv: &[u8],
    tag: &[u8],
    place: &[u8],
    data: &mut [u8],
) -> Option<()> {
    let cipher = AesGcm::<Aes256, N>::new(GenericArray::from_slice(&**key));
    let (iv, tag) = (GenericArray::from_slice(iv), GenericArray::from_slice(tag));
    cipher.decrypt_in_place_detached(iv, place, data, tag).ok()
}

/// What the bytes are, by the word that stands beside them.
fn typed(kind: &str, bytes: Secret) -> Option<Data> {
    let text = std::str::from_utf8(bytes.expose()).ok();
    Some(match kind {
        "str" | "bytes" => Data::Text(bytes),
        "comment" => Data::Comment(bytes),
        "int" => Data::Int(text?.parse().ok()?),
        "float" => Data::Float(go_float(text?)?),
        "bool" => Data::Bool(match text? {
            "1" | "t" | "T" | "true" | "TRUE" | "True" => true,
            "0" | "f" | "F" | "false" | "FALSE" | "False" => false,
            _ => return None,
        }),
        "time" => {
            Data::Time(scalar::timestamp(text?).filter(|_| text.is_some_and(|text| text.contains('T')))?)
        }
        _ => return None,
    })
}

fn go_float(text: &str) -> Option<f64> {
    match text {
        "NaN" => Some(f64::NAN),
        "+Inf" => Some(f64::INFINITY),
        "-Inf" => Some(f64::NEG_INFINITY),
        text => text.parse().ok().filter(|value: &f64| value.is_finite()),
    }
}

/// Encrypts a value for a place.
pub(super) fn close(value: &Value, key: &DataKey, place: &str) -> String {
    let plain = value.plain_bytes().unwrap_or_else(|| Secret::new(Vec::new()));
    if plain.is_empty() {
        return String::new();
    }
    let iv = random(32);
    let mut data = plain.expose().to_vec();
    let cipher = AesGcm::<Aes256, U32>::new(GenericArray::from_slice(&**key));
    let tag = cipher
        .encrypt_in_place_detached(GenericArray::from_slice(&iv), place.as_bytes(), &mut data)
        .expect("a value is shorter than what the cipher can take");
    let encode = |bytes: &[u8]| STANDARD.encode(bytes);
    let kind = value.type_word();
    format!("ENC[AES256_GCM,data:{},iv:{},tag:{},type:{kind}]", encode(&data), encode(&iv), encode(&tag))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_opens_at_its_place_only() {
        let key = new_key();
        let closed = close(&Value::text("hunter2"), &key, "a:b:");
        assert!(matches!(open(&closed, &key, "a:b:"), Ok(Data::Text(text)) if text.expose() == b"hunter2"));
        assert_eq!(open(&closed, &key, "a:").err(), Some(Closed::Wrong));
        assert_eq!(open(&closed, &new_key(), "a:b:").err(), Some(Closed::Wrong));
        assert_eq!(open("hunter2", &key, "a:b:").err(), Some(Closed::NotEncrypted));
        assert_eq!(close(&Value::text(""), &key, "a:"), "");
    }
}
