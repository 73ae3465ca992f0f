//! What a plain scalar of YAML is, as go-yaml v3 sees it: values in clear count in the MAC by their type.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::node::Data;
use crate::Secret;

/// The type of a plain scalar without a tag. Nothing for whole numbers that sops itself cannot hold.
pub(super) fn plain(text: &str) -> Option<Data> {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Some(Data::Null),
        "true" | "True" | "TRUE" => return Some(Data::Bool(true)),
        "false" | "False" | "FALSE" => return Some(Data::Bool(false)),
        ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" => return Some(Data::Float(f64::INFINITY)),
        "-.inf" | "-.Inf" | "-.INF" => return Some(Data::Float(f64::NEG_INFINITY)),
        ".nan" | ".NaN" | ".NAN" => return Some(Data::Float(f64::NAN)),
        _ => {}
    }
    let as_text = || Data::Text(Secret::from(text.to_owned()));
    match text.as_bytes().first() {
        Some(b'.') => Some(float(text).map_or_else(as_text, Data::Float)),
        Some(b'+' | b'-' | b'0'..=b'9') => {
            if let Some(time) = timestamp(text) {
                return Some(Data::Time(time));
            }
            let digits = text.replace('_', "");
            match integer(&digits) {
                Integer::Fits(value) => Some(Data::Int(value)),
                Integer::TooLarge => None,
                Integer::No => Some(float(&digits).map_or_else(as_text, Data::Float)),
            }
        }
        _ => Some(as_text()),
    }
}

/// The value of a scalar with one of YAML's own tags. Nothing where the two do not go together.
pub(super) fn tagged(tag: &str, text: &str) -> Option<Data> {
    let as_text = || Some(Data::Text(Secret::from(text.to_owned())));
    match (tag, plain(text)) {
        ("str", _) => as_text(),
        ("binary", _) => {
            let packed: String = text.chars().filter(|c| !c.is_ascii_whitespace()).collect();
            STANDARD.decode(packed).ok().map(|bytes| Data::Text(Secret::new(bytes)))
        }
        ("null", Some(data @ Data::Null))
        | ("bool", Some(data @ Data::Bool(_)))
        | ("int", Some(data @ Data::Int(_)))
        | ("float", Some(data @ Data::Float(_)))
        | ("timestamp", Some(data @ Data::Time(_))) => Some(data),
        #[allow(clippy::cast_precision_loss, reason = "the loss is what go-yaml does")]
        ("float", Some(Data::Int(value))) => Some(Data::Float(value as f64)),
        _ => None,
    }
}

enum Integer {
    Fits(i64),
    /// Only an unsigned number could hold it, and sops cannot.
    TooLarge,
    No,
}

/// As Go's `ParseInt` with base 0, underscores taken out before.
fn integer(text: &str) -> Integer {
    let (negative, digits) = match text.as_bytes().first() {
        Some(b'-') => (true, &text[1..]),
        Some(b'+') => (false, &text[1..]),
        _ => (false, text),
    };
    let lower = digits.get(..2).map(str::to_ascii_lowercase);
    let (radix, digits) = match lower.as_deref() {
        Some("0x") => (16, &digits[2..]),
        Some("0b") => (2, &digits[2..]),
        Some("0o") => (8, &digits[2..]),
        Some(two) if two.starts_with('0') => (8, &digits[1..]),
        _ => (10, digits),
    };
    // Rust would take a second sign.
    if digits.is_empty() || digits.starts_with(['+', '-']) {
        return Integer::No;
    }
    let Ok(magnitude) = u128::from_str_radix(digits, radix) else {
        return Integer::No;
    };
    let value = i128::try_from(magnitude).map(|value| if negative { -value } else { value });
    match value.map(i64::try_from) {
        Ok(Ok(value)) => Integer::Fits(value),
        _ if !negative && u64::try_from(magnitude).is_ok() && !text.starts_with('+') => Integer::TooLarge,
        _ => Integer::No,
    }
}

/// `^[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?$`, within what a float can hold.
fn float(text: &str) -> Option<f64> {
    let body = text.strip_prefix(['+', '-']).unwrap_or(text);
    let (mantissa, exponent) = match body.find(['e', 'E']) {
        Some(at) => (&body[..at], Some(&body[at + 1..])),
        None => (body, None),
    };
    let is_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let fits = is_digits(whole) && is_digits(fraction) && !(whole.is_empty() && fraction.is_empty());
    let exponent_fits = exponent.is_none_or(|text| {
        let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
        !digits.is_empty() && is_digits(digits)
    });
    let value: f64 = if fits && exponent_fits { text.parse().ok()? } else { return None };
    value.is_finite().then_some(value)
}

/// A moment in one of the four forms of go-yaml, written anew as RFC 3339.
pub(super) fn timestamp(text: &str) -> Option<String> {
    if text.bytes().take_while(u8::is_ascii_digit).count() != 4 {
        return None;
    }
    let (year, rest) = text.split_once('-')?;
    let (month, rest) = number(rest)?;
    let (day, rest) = number(rest.strip_prefix('-')?)?;
    let days = days_in(year.parse().ok()?, month)?;
    if !(1..=days).contains(&day) {
        return None;
    }
    let date = format!("{year}-{month:02}-{day:02}");
    let Some(separator) = rest.chars().next() else {
        return Some(format!("{date}T00:00:00Z"));
    };
    let (hour, rest) = number(rest.strip_prefix(['T', 't', ' '])?)?;
    let (minute, rest) = number(rest.strip_prefix(':')?)?;
    let (second, rest) = number(rest.strip_prefix(':')?)?;
    if hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let (fraction, zone) = fraction(rest);
    let zone = match (separator, zone) {
        (' ', "") | ('T' | 't', "Z") => String::from("Z"),
        ('T' | 't', zone) => offset(zone)?,
        _ => return None,
    };
    Some(format!("{date}T{hour:02}:{minute:02}:{second:02}{fraction}{zone}"))
}

/// One or two digits.
fn number(text: &str) -> Option<(u32, &str)> {
    let count = text.bytes().take(2).take_while(u8::is_ascii_digit).count();
    Some((text.get(..count)?.parse().ok()?, &text[count..]))
}

/// A fraction of a second, of at most nine digits and without zeros at its end.
fn fraction(text: &str) -> (String, &str) {
    let Some(digits) = text.strip_prefix(['.', ',']) else {
        return (String::new(), text);
    };
    let count = digits.bytes().take_while(u8::is_ascii_digit).count();
    if count == 0 {
        return (String::new(), text);
    }
    let kept = digits[..count.min(9)].trim_end_matches('0');
    let dot = if kept.is_empty() { "" } else { "." };
    (format!("{dot}{kept}"), &digits[count..])
}

/// `+hh:mm`; none at all is `Z`.
fn offset(text: &str) -> Option<String> {
    let bytes = text.as_bytes();
    let shaped = bytes.len() == 6 && matches!(bytes[0], b'+' | b'-') && bytes[3] == b':';
    if !shaped {
        return None;
    }
    let (hours, minutes): (u32, u32) = (text.get(1..3)?.parse().ok()?, text.get(4..6)?.parse().ok()?);
    if hours > 23 || minutes > 59 {
        return None;
    }
    Some(if hours == 0 && minutes == 0 { String::from("Z") } else { text.to_owned() })
}

fn days_in(year: u32, month: u32) -> Option<u32> {
    let leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    match month {
        1 | 3 | 5 | 7 | 8 | 10 | 12 => Some(31),
        4 | 6 | 9 | 11 => Some(30),
        2 => Some(if leap { 29 } else { 28 }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sops::node::Value;

    fn check(text: &str, kind: &str, bytes: &str) {
        let value = plain(text).map(|data| Value::new(0..0, data));
        let found = value.and_then(|value| {
            let bytes = value.plain_bytes()?;
            Some((value.type_word(), String::from_utf8_lossy(bytes.expose()).into_owned()))
        });
        assert_eq!(found, Some((kind, bytes.to_owned())), "{text}");
    }

    #[test]
    fn scalars_are_what_go_yaml_takes_them_for() {
        for (text, kind, bytes) in [
            ("yes", "str", "yes"),
            ("0b101", "int", "5"),
            ("0777", "int", "511"),
            ("0o17", "int", "15"),
            ("1_000", "int", "1000"),
            ("-0x1F", "int", "-31"),
            ("09", "float", "9"),
            ("1e400", "str", "1e400"),
            ("1.", "float", "1"),
            ("-.5", "float", "-0.5"),
            (".inf", "float", "+Inf"),
            ("1e3", "float", "1000"),
            ("99999999999999999999", "float", "100000000000000000000"),
            ("2024-1-2", "time", "2024-01-02T00:00:00Z"),
            ("2024-02-30", "str", "2024-02-30"),
            ("2024-01-02 3:4:5.100", "time", "2024-01-02T03:04:05.1Z"),
            ("2024-01-02T03:04:05+02:00", "time", "2024-01-02T03:04:05+02:00"),
            ("2024-01-02t03:04:05+00:00", "time", "2024-01-02T03:04:05Z"),
            ("2024-01-02T03:04:05", "str", "2024-01-02T03:04:05"),
            ("12:30", "str", "12:30"),
            ("1.2.3", "str", "1.2.3"),
            ("+-5", "str", "+-5"),
        ] {
            check(text, kind, bytes);
        }
        assert!(plain("18446744073709551615").is_none(), "sops cannot hold it");
    }
}
