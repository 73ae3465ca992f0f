//! Text as it stands in addresses and forms.

use std::fmt::Write as _;

/// Text with everything escaped that could mean something else, spaces and pluses included.
pub fn encode(text: &str) -> String {
    text.bytes().fold(String::with_capacity(text.len()), |mut encoded, byte| {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                encoded.push(char::from(byte));
            }
            _ => write!(encoded, "%{byte:02X}").expect("a string takes any text"),
        }
        encoded
    })
}

/// Pairs as a form, or as what stands behind the `?` of an address.
pub fn form<'p>(pairs: impl IntoIterator<Item = (&'p str, &'p str)>) -> String {
    let pairs = pairs.into_iter().map(|(name, value)| format!("{}={}", encode(name), encode(value)));
    pairs.collect::<Vec<_>>().join("&")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_could_mean_something_else_is_escaped() {
        assert_eq!(form([("size", "+1G"), ("a b", "ä&=")]), "size=%2B1G&a%20b=%C3%A4%26%3D");
    }
}
