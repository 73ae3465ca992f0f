//! One line: JSON in which the entry stands beside the checksum of its own text.
//!
//! `{"crc":"cbf43926","entry":…}` and a line feed. Any reader of JSON lines can read it; only this file checks it.

use serde::Serialize;

use super::crc::crc32;

const BEFORE: &[u8] = br#"{"crc":""#;
const BETWEEN: &[u8] = br#"","entry":"#;
const AFTER: &[u8] = b"}\n";

/// The line for an entry. JSON escapes line feeds, so there is none but the last.
pub(super) fn encode<E: Serialize + ?Sized>(entry: &E) -> serde_json::Result<Vec<u8>> {
    let body = serde_json::to_vec(entry)?;
    let crc = format!("{:08x}", crc32(&body));
    Ok([BEFORE, crc.as_bytes(), BETWEEN, &body, AFTER].concat())
}

/// The entry's text, if the line is whole.
pub(super) fn decode(line: &[u8]) -> Option<&[u8]> {
    let (crc, rest) = line.strip_prefix(BEFORE)?.split_at_checked(8)?;
    let body = rest.strip_prefix(BETWEEN)?.strip_suffix(AFTER)?;
    let stated = u32::from_str_radix(std::str::from_utf8(crc).ok()?, 16).ok()?;
    (stated == crc32(body)).then_some(body)
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    #[test]
    fn a_line_is_json_and_carries_its_checksum() {
        let line = encode(&["a\nb"]).unwrap();
        expect![[r#"
            {"crc":"29c5126e","entry":["a\nb"]}
        "#]]
        .assert_eq(std::str::from_utf8(&line).unwrap());
        assert_eq!(decode(&line), Some(br#"["a\nb"]"#.as_slice()));
        assert!(serde_json::from_slice::<serde_json::Value>(&line).is_ok());
    }

    #[test]
    fn no_part_of_a_line_and_no_line_with_a_flipped_bit_is_whole() {
        let line = encode(&"entry").unwrap();
        for length in 0..line.len() {
            assert_eq!(decode(&line[..length]), None, "the first {length} bytes");
        }
        for index in 0..line.len() {
            let mut flipped = line.clone();
            flipped[index] ^= 1;
            assert_eq!(decode(&flipped), None, "byte {index}");
        }
    }
}
