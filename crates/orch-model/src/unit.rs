//! Values with a unit or a structure of their own: durations, addresses, references to secrets.

use alloc::format;
use alloc::string::String;
use core::fmt;
use core::net::IpAddr;
use core::str::FromStr;
use core::time::Duration;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Value as Json, json};

use crate::decode::{Decode, decode_text, expected, refuse, text_schema};
use crate::text::{Data, Finding, Reporter, Value};
use crate::word::{KeyName, shorten};

/// Implements `Decode`, `Serialize` and `Deserialize` by way of `FromStr` and `Display`.
macro_rules! through_text {
    ($type:ty, $placeholder:expr, $schema:expr) => {
        impl Decode for $type {
            fn decode(value: &Value<'_>, cx: &mut Reporter<'_>) -> Option<Self> {
                decode_text(value, cx)
            }

            fn placeholder() -> Self {
                $placeholder
            }

            fn schema() -> Json {
                $schema
            }
        }
    };
}

macro_rules! serde_through_text {
    ($type:ty) => {
        impl Serialize for $type {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = String::deserialize(deserializer)?;
                text.parse().map_err(serde::de::Error::custom)
            }
        }
    };
}

/// A length of time, written as a number and one of `ms`, `s`, `m`, `h`, `d`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Timespan(Duration);

impl Timespan {
    /// So many seconds.
    pub const fn seconds(seconds: u64) -> Self {
        Self(Duration::from_secs(seconds))
    }

    /// So many minutes.
    pub const fn minutes(minutes: u64) -> Self {
        Self::seconds(minutes * 60)
    }

    /// As the type that the standard library waits with.
    pub const fn duration(self) -> Duration {
        self.0
    }
}

const UNITS: [(&str, u64); 5] = [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)];

impl FromStr for Timespan {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let digits = text.bytes().take_while(u8::is_ascii_digit).count();
        let (number, unit) = text.split_at(digits);
        let scale = UNITS.iter().find(|(name, _)| *name == unit).map(|(_, scale)| *scale);
        let millis = number.parse::<u64>().ok().zip(scale).and_then(|(n, scale)| n.checked_mul(scale));
        match millis {
            Some(0) => {
                Err(format!("`{}` is not a length of time: it must be longer than nothing", shorten(text)))
            }
            Some(millis) if digits <= 9 => Ok(Self(Duration::from_millis(millis))),
            _ => Err(format!(
                "`{}` is not a length of time: write it as `90s`, `10m`, `2h` or `1d`",
                shorten(text)
            )),
        }
    }
}

/// The largest unit that gives a whole number.
impl fmt::Display for Timespan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let millis = self.0.as_millis();
        for (unit, scale) in UNITS {
            if millis.is_multiple_of(u128::from(scale)) {
                return write!(f, "{}{unit}", millis / u128::from(scale));
            }
        }
        Ok(())
    }
}

serde_through_text!(Timespan);
through_text!(Timespan, Timespan::seconds(1), text_schema("^[0-9]{1,9}(ms|s|m|h|d)$"));

/// An address with the length of its network's prefix, such as `10.0.0.5/24`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cidr {
    address: IpAddr,
    prefix: u8,
}

impl Cidr {
    /// The address without the prefix.
    pub const fn address(self) -> IpAddr {
        self.address
    }

    /// The length of the network's prefix, in bits.
    pub const fn prefix(self) -> u8 {
        self.prefix
    }
}

impl FromStr for Cidr {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let refused = || format!("`{}` is not an address with a prefix such as `10.0.0.5/24`", shorten(text));
        let (address, prefix) = text.split_once('/').ok_or_else(refused)?;
        let address: IpAddr = address.parse().map_err(|_| refused())?;
        let longest = if address.is_ipv4() { 32 } else { 128 };
        match prefix.parse() {
            Ok(prefix) if prefix <= longest && !text.contains('+') => Ok(Self { address, prefix }),
            _ => Err(refused()),
        }
    }
}

impl fmt::Display for Cidr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.prefix)
    }
}

serde_through_text!(Cidr);
through_text!(
    Cidr,
    Cidr { address: IpAddr::from([0, 0, 0, 0]), prefix: 0 },
    text_schema("^[0-9A-Fa-f.:]+/[0-9]{1,3}$")
);

impl Decode for IpAddr {
    fn decode(value: &Value<'_>, cx: &mut Reporter<'_>) -> Option<Self> {
        let text = String::decode(value, cx)?;
        match text.parse() {
            Ok(address) => Some(address),
            Err(_) => refuse(value.span, format!("`{}` is not an IP address", shorten(&text)), cx),
        }
    }

    fn placeholder() -> Self {
        Self::from([0, 0, 0, 0])
    }

    fn schema() -> Json {
        text_schema("^[0-9A-Fa-f.:]+$")
    }
}

/// A mention of a secret: `secret:<file>#<path>` or `secret:<name>`. Never the secret itself.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct SecretRef(String);

impl SecretRef {
    /// The short mention of a secret.
    pub(crate) fn named(name: &KeyName) -> Self {
        Self(name.as_str().into())
    }

    /// What stands after `secret:`.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for SecretRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "secret:{}", self.0)
    }
}

impl FromStr for SecretRef {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let name = text.strip_prefix("secret:").unwrap_or_default();
        let fit = |c: char| c.is_ascii_alphanumeric() || "#./_@-[]\"'".contains(c);
        let climbs = name.split(['/', '#']).any(|part| part == "..");
        if name.is_empty() || climbs || name.starts_with('/') || !name.chars().all(fit) {
            // The text may be the secret itself, so it is not repeated.
            return Err(String::from("this is not a mention of a secret"));
        }
        Ok(Self(name.into()))
    }
}

serde_through_text!(SecretRef);

impl Decode for SecretRef {
    fn decode(value: &Value<'_>, cx: &mut Reporter<'_>) -> Option<Self> {
        let parsed = match &value.data {
            Data::Text(text) => text.parse().ok(),
            Data::Null | Data::List(_) | Data::Map(_) => return expected("a mention of a secret", value, cx),
            // Digits may be the secret itself.
            Data::Bool(_) | Data::Int(_) | Data::Float(_) => None,
        };
        if parsed.is_none() {
            let message =
                "a secret is mentioned as `secret:<file>#<path>` or `secret:<name>`, never written here";
            let hint = "put it into a sops file under secrets/, and change it wherever it was used: it has been in a plain file";
            cx.report(Finding::new(value.span, message).hint(hint).concealed());
        }
        parsed
    }

    fn placeholder() -> Self {
        Self(String::new())
    }

    fn schema() -> Json {
        json!({ "type": "string", "pattern": "^secret:[A-Za-z0-9#./_@\\-\\[\\]\"']+$" })
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use super::*;

    #[test]
    fn a_span_of_time_is_printed_as_it_is_written() {
        for text in ["90s", "10m", "2h", "1d", "250ms"] {
            assert_eq!(text.parse::<Timespan>().map(|span| span.to_string()).as_deref(), Ok(text));
        }
        assert_eq!("60s".parse::<Timespan>().map(|span| span.to_string()).as_deref(), Ok("1m"));
        for text in ["", "5", "m", "0s", "-1s", "1.5h", "1w", "99999999999999999999s", "9999999999d"] {
            assert!(text.parse::<Timespan>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_cidr_needs_a_prefix_that_fits() {
        assert!("10.0.0.5/24".parse::<Cidr>().is_ok());
        assert!("fd00::1/64".parse::<Cidr>().is_ok());
        for text in ["10.0.0.5", "10.0.0.5/33", "10.0.0/8", "fd00::1/129", "10.0.0.5/+8", "x/8"] {
            assert!(text.parse::<Cidr>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_secret_is_mentioned_and_never_repeated() {
        assert!("secret:father-api-token".parse::<SecretRef>().is_ok());
        assert!("secret:secrets/api.yaml#father.token".parse::<SecretRef>().is_ok());
        for text in ["hunter2", "secret:", "secret:../x", "secret:/etc/shadow", "secret:a b"] {
            let error = text.parse::<SecretRef>().unwrap_err();
            assert!(!error.contains("hunter2"));
        }
    }
}
