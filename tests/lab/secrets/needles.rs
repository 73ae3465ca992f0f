//! What is searched for: values in every form in which they could have got somewhere, and a search that misses none, however
//! what is searched comes in pieces.

use std::collections::{BTreeSet, HashMap};
use std::fmt::Write as _;
use std::io::{self, Read};

/// How many bytes are looked at together. Every form is at least twice as long, so that one such piece of it begins at a
/// place that is looked at.
const STRIDE: usize = 8;
/// How much is read at once.
const CHUNK: usize = 1 << 20;

/// Values that must not be found, each by a name that may be shown.
pub(crate) struct Needles {
    forms: Vec<Form>,
    pieces: HashMap<[u8; STRIDE], Vec<(usize, usize)>>,
    /// Whether there is a piece with this fingerprint: most of what is searched is told apart by that alone.
    fingerprints: Vec<bool>,
    longest: usize,
}

struct Form {
    /// Whose it is and how it is written.
    what: String,
    bytes: Vec<u8>,
}

impl Needles {
    pub(crate) fn of(values: &[(&str, &[u8])]) -> Self {
        let forms: Vec<Form> = values.iter().flat_map(|(name, value)| forms(name, value)).collect();
        let mut needles = Self {
            longest: forms.iter().map(|form| form.bytes.len()).max().unwrap_or(0),
            pieces: HashMap::new(),
            fingerprints: vec![false; 1 << 16],
            forms,
        };
        for (index, form) in needles.forms.iter().enumerate() {
            assert!(form.bytes.len() >= 2 * STRIDE, "{} is long enough to be found", form.what);
            for offset in 0..STRIDE {
                let piece: [u8; STRIDE] = form.bytes[offset..offset + STRIDE].try_into().unwrap();
                needles.fingerprints[fingerprint(piece)] = true;
                needles.pieces.entry(piece).or_default().push((index, offset));
            }
        }
        needles
    }

    /// What of it is in these bytes.
    pub(crate) fn in_bytes(&self, bytes: &[u8]) -> BTreeSet<String> {
        let mut found = BTreeSet::new();
        for (number, piece) in bytes.chunks_exact(STRIDE).enumerate() {
            let piece: [u8; STRIDE] = piece.try_into().unwrap();
            if !self.fingerprints[fingerprint(piece)] {
                continue;
            }
            for (index, offset) in self.pieces.get(&piece).into_iter().flatten() {
                let form = &self.forms[*index];
                let whole = (number * STRIDE).checked_sub(*offset).and_then(|from| bytes.get(from..));
                if whole.is_some_and(|whole| whole.starts_with(&form.bytes)) {
                    found.insert(form.what.clone());
                }
            }
        }
        found
    }

    /// What of it is in a stream.
    pub(crate) fn in_stream(&self, stream: &mut impl Read) -> io::Result<BTreeSet<String>> {
        let (mut found, mut held) = (BTreeSet::new(), Vec::new());
        loop {
            let read = stream.by_ref().take(CHUNK as u64).read_to_end(&mut held)?;
            found.extend(self.in_bytes(&held));
            if read == 0 {
                return Ok(found);
            }
            // One that begins in this piece may end in the next.
            held.drain(..held.len().saturating_sub(self.longest));
        }
    }
}

fn fingerprint(piece: [u8; STRIDE]) -> usize {
    (u64::from_le_bytes(piece).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 48) as usize
}

/// The ways in which a value is written: as it is, in the encodings of headers, addresses and documents, and as `{:?}` shows
/// bytes.
fn forms(name: &str, value: &[u8]) -> Vec<Form> {
    let hex: String = value.iter().fold(String::new(), |text, byte| text + &format!("{byte:02x}"));
    let list = |between: &str| value.iter().map(u8::to_string).collect::<Vec<_>>().join(between);
    let mut forms = vec![
        ("as it is", value.to_vec()),
        ("in hex", hex.clone().into_bytes()),
        ("in HEX", hex.to_uppercase().into_bytes()),
        ("as a list", list(", ").into_bytes()),
        ("as a short list", list(",").into_bytes()),
        ("in an address", escaped(value, "%").into_bytes()),
        ("in \\x", escaped(value, "\\x").to_lowercase().into_bytes()),
    ];
    if let Ok(text) = std::str::from_utf8(value) {
        let json = serde_json::to_string(text).unwrap();
        forms.push(("in JSON", json.trim_matches('"').as_bytes().to_vec()));
        let html = text.replace('&', "&amp;").replace('<', "&lt;").replace('"', "&quot;");
        forms.push(("in HTML", html.into_bytes()));
    }
    for alphabet in [b"+/", b"-_"] {
        // It may begin anywhere in a group of three bytes; what depends on its neighbours is left out.
        for before in 0..3 {
            let shifted = [&[0; 3][..before], value].concat();
            let encoded = base64(&shifted, *alphabet);
            forms.push(("in base64", encoded[if before == 0 { 0 } else { 4 }..encoded.len() - 4].to_vec()));
        }
    }
    forms.into_iter().map(|(how, bytes)| Form { what: format!("{name} {how}"), bytes }).collect()
}

/// With everything escaped that an address does not hold as it is.
fn escaped(value: &[u8], sign: &str) -> String {
    value.iter().fold(String::new(), |mut text, byte| {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(byte) {
            text.push(char::from(*byte));
        } else {
            write!(text, "{sign}{byte:02X}").unwrap();
        }
        text
    })
}

fn base64(value: &[u8], last: [u8; 2]) -> Vec<u8> {
    let alphabet: Vec<u8> = (b'A'..=b'Z').chain(b'a'..=b'z').chain(b'0'..=b'9').chain(last).collect();
    let group = |three: &[u8]| {
        let byte = |index: usize| u32::from(three.get(index).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        [18, 12, 6, 0].map(|shift| alphabet[(bits >> shift & 63) as usize])
    };
    value.chunks(3).flat_map(group).collect()
}

#[test]
fn a_value_is_found_in_every_form_at_every_place_and_across_every_border() {
    let text = b"poison \"0123456789abcdef\" & /more+";
    let binary: Vec<u8> = (0..32_u8).map(|number| number.wrapping_mul(37) ^ 0xA5).collect();
    let needles = Needles::of(&[("text", text), ("binary", &binary)]);
    for form in &needles.forms {
        for offset in 0..2 * STRIDE {
            let hay = [&vec![b'x'; 40 + offset][..], &form.bytes, b"rest"].concat();
            assert!(needles.in_bytes(&hay).contains(&form.what), "{} at {offset}", form.what);
        }
        for short in [0, 1, STRIDE, form.bytes.len() / 2, form.bytes.len() - 1, form.bytes.len()] {
            let hay = [&vec![0; CHUNK - short][..], &form.bytes, &vec![0; CHUNK]].concat();
            let found = needles.in_stream(&mut &hay[..]).unwrap();
            assert!(found.contains(&form.what), "{} {short} bytes before the border", form.what);
        }
    }
    // Not its own encodings of what is around it.
    let around = [b"some text before ", &text[..], b" and some after"].concat();
    for shift in 0..3 {
        let encoded = base64(&around[shift..], *b"+/");
        assert_eq!(needles.in_bytes(&encoded).into_iter().collect::<Vec<_>>(), ["text in base64"], "{shift}");
    }
    assert!(needles.in_bytes(&[&text[..text.len() - 1], b"?", &binary[1..]].concat()).is_empty());
}
