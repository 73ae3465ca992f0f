//! Bytes in letters and digits that every provider's labels and tags take: RFC 4648 in lower case, without padding.

const ALPHABET: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";

/// Bytes as text.
pub(super) fn encode(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(5) * 8);
    let (mut held, mut count) = (0_u32, 0);
    for byte in bytes {
        held = held << 8 | u32::from(*byte);
        count += 8;
        while count >= 5 {
            count -= 5;
            text.push(letter(held >> count));
        }
    }
    if count > 0 {
        text.push(letter(held << (5 - count)));
    }
    text
}

fn letter(bits: u32) -> char {
    char::from(ALPHABET[(bits & 31) as usize])
}

/// Text as bytes; nothing where it is not what [`encode`] writes.
pub(super) fn decode(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len() * 5 / 8);
    let (mut held, mut count) = (0_u32, 0);
    for letter in text.bytes() {
        let place = ALPHABET.iter().position(|known| *known == letter)?;
        held = held << 5 | u32::try_from(place).ok()?;
        count += 5;
        if count >= 8 {
            count -= 8;
            bytes.push(u8::try_from(held >> count & 255).ok()?);
        }
    }
    // Two texts for the same bytes would be two marks for one key.
    (encode(&bytes) == text).then_some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_is_read_and_nothing_else_is() {
        for (bytes, text) in [("", ""), ("f", "my"), ("fo", "mzxq"), ("foo", "mzxw6"), ("foob", "mzxw6yq")] {
            assert_eq!(encode(bytes.as_bytes()), text);
            assert_eq!(decode(text).as_deref(), Some(bytes.as_bytes()));
        }
        for wrong in ["MY", "mz", "m1", "my======", "mzxw6y1"] {
            assert_eq!(decode(wrong), None, "{wrong}");
        }
        let key: Vec<u8> = (0..32).collect();
        assert_eq!(encode(&key).len(), 52, "a key and its letter fit into a label");
        assert_eq!(decode(&encode(&key)), Some(key));
    }
}
