//! Text with a grammar: names, keys, paths, modes. Checked once, where it enters; inside, nobody checks again.

use alloc::string::String;

/// Defines a text type: its grammar as a function and as a JSON Schema pattern, and the words that describe it.
macro_rules! word {
    (
        $(#[doc = $doc:literal])*
        $name:ident as $noun:literal,
        $pattern:literal, $grammar:path, $rule:literal
    ) => {
        $(#[doc = $doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(alloc::sync::Arc<str>);

        impl $name {
            /// The text itself.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl core::str::FromStr for $name {
            type Err = alloc::string::String;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                if $grammar(text) {
                    return Ok(Self(text.into()));
                }
                Err(alloc::format!(
                    "`{}` is not {}: {}",
                    $crate::word::shorten(text),
                    $crate::decode::with_article($noun),
                    $rule
                ))
            }
        }

        impl core::borrow::Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }

        impl core::fmt::Display for $name {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(&self.0)
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = <alloc::borrow::Cow<'de, str>>::deserialize(deserializer)?;
                text.parse().map_err(serde::de::Error::custom)
            }
        }

        impl $crate::decode::DecodeKey for $name {
            fn decode_key(text: &str) -> Result<Self, alloc::string::String> {
                text.parse()
            }
        }

        impl $crate::decode::Decode for $name {
            fn decode(
                value: &$crate::text::Value<'_>,
                cx: &mut $crate::text::Reporter<'_>,
            ) -> Option<Self> {
                $crate::decode::decode_text(value, cx)
            }

            fn placeholder() -> Self {
                Self(alloc::sync::Arc::from(""))
            }

            fn schema() -> serde_json::Value {
                $crate::decode::text_schema($pattern)
            }
        }
    };
}

/// Cuts a text that is repeated in a message.
pub(crate) fn shorten(text: &str) -> String {
    let mut short: String = text.chars().take(80).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    short
}

word! {
    /// The name of a node, unique in its manifest.
    NodeName as "node name", "^[a-z][a-z0-9-]{0,62}$", is_name,
    "lower-case letters, digits and `-`, first a letter, at most 63 characters"
}
word! {
    /// The name of a manifest: the stem of its file.
    ManifestName as "manifest name", "^[a-z][a-z0-9-]{0,62}$", is_name,
    "lower-case letters, digits and `-`, first a letter, at most 63 characters"
}
word! {
    /// The name of a host: the stem of its file.
    HostName as "host name", "^[a-z][a-z0-9-]{0,62}$", is_name,
    "lower-case letters, digits and `-`, first a letter, at most 63 characters"
}
word! {
    /// The name of a spec: the stem of its file.
    SpecName as "spec name", "^[a-z][a-z0-9-]{0,62}$", is_name,
    "lower-case letters, digits and `-`, first a letter, at most 63 characters"
}
word! {
    /// A path in the Nix store: a thing as a whole, not a file in it.
    StorePath as "store path", "^/nix/store/[0-9abcdfghijklmnpqrsvwxyz]{32}-[0-9a-zA-Z+._?=-]{1,211}$", is_store_path,
    "`/nix/store/`, a hash of 32 characters, `-` and a name"
}
word! {
    /// The name of a preset: the stem of its file.
    PresetName as "preset name", "^[a-z][a-z0-9-]{0,62}$", is_name,
    "lower-case letters, digits and `-`, first a letter, at most 63 characters"
}
word! {
    /// The name of a posture: the stem of its file.
    PostureName as "posture name", "^[a-z][a-z0-9-]{0,62}$", is_name,
    "lower-case letters, digits and `-`, first a letter, at most 63 characters"
}
word! {
    /// A word that groups nodes, for `--only tag:<tag>`.
    Tag as "tag", "^[a-z][a-z0-9-]{0,62}$", is_name,
    "lower-case letters, digits and `-`, first a letter, at most 63 characters"
}
word! {
    /// The name of a site, which marks everything that it owns.
    SiteName as "site name", "^[a-z0-9][a-z0-9.-]{0,62}$", is_site_name,
    "lower-case letters, digits, `.` and `-`, at most 63 characters"
}
word! {
    /// The name under which the site keeps an SSH public key, such as `alice@laptop`.
    KeyName as "key name", "^[A-Za-z0-9][A-Za-z0-9._@-]{0,127}$", is_key_name,
    "letters, digits, `.`, `_`, `@` and `-`"
}
word! {
    /// A user account on a node.
    UserName as "user name", "^[a-z_][a-z0-9_-]{0,31}$", is_user_name,
    "lower-case letters, digits, `_` and `-`, at most 32 characters"
}
word! {
    /// A domain name, such as `example.org`.
    Domain as "domain", "^[A-Za-z0-9]([A-Za-z0-9.-]{0,251}[A-Za-z0-9])?$", is_domain,
    "letters, digits, `-` and `.`"
}
word! {
    /// A package, as the node's package manager calls it.
    Package as "package name",
    "^[A-Za-z0-9]([A-Za-z0-9+._@~-]*[A-Za-z0-9+~])?([:/=][A-Za-z0-9+._@~-]*[A-Za-z0-9+~])*$", is_package,
    "letters, digits and any of `+._:@/~=-`, first a letter or digit, no part ends in `-` or `.`"
}
word! {
    /// A unit that the node's service manager runs, or another thing with a name like one: a bridge, a firewall.
    Unit as "valid name", "^[A-Za-z0-9][A-Za-z0-9:_.@-]{0,254}$", is_unit,
    "letters, digits and any of `:_.@-`, first a letter or digit"
}
word! {
    /// A time zone by its name in the tz database.
    TimeZone as "time zone", "^[A-Za-z][A-Za-z0-9_+/-]{0,63}$", is_time_zone,
    "a name of the tz database such as `Europe/Berlin`"
}
word! {
    /// An absolute path on a node, without `.` or `..` in it.
    NodePath as "absolute path", "^/[^\\u0000]*$", is_absolute_path,
    "it starts with `/` and has no empty part, `.` or `..`"
}
word! {
    /// The permission bits of a file, as four octal digits.
    FileMode as "file mode", "^[0-7]{4}$", is_file_mode,
    "four octal digits in quotes, such as \"0644\""
}
word! {
    /// An SSH public key in the form of one line of `authorized_keys`, without options.
    PublicKey as "ssh public key", "^(ssh-(ed25519|rsa)|ecdsa-sha2-nistp(256|384|521)|sk-[a-z0-9@.-]+) [A-Za-z0-9+/=]+( .*)?$",
    is_public_key, "a key type, the key in base64, and a comment"
}
word! {
    /// Whom something can be encrypted to: an age X25519 recipient.
    AgeRecipient as "age recipient", "^age1[02-9ac-hj-np-z]{58}$", is_age_recipient,
    "`age1` and 58 characters, as `age-keygen -y` prints it"
}
word! {
    /// By what the value of a secret is known again, without saying anything of it to who cannot open it.
    SecretDigest as "digest of a secret", "^[0-9a-f]{32}$", is_secret_digest, "32 hexadecimal digits"
}
word! {
    /// The address of a server: `https://name:port`.
    Url as "https address", "^https://[^\\s]+$", is_https_url, "it starts with `https://`"
}
word! {
    /// The SHA-256 fingerprint of a certificate, as 32 pairs of hexadecimal digits with `:` between.
    Fingerprint as "certificate fingerprint", "^([0-9A-Fa-f]{2}:){31}[0-9A-Fa-f]{2}$", is_fingerprint,
    "32 pairs of hexadecimal digits with `:` between"
}

impl UserName {
    /// The account that every machine has.
    pub fn root() -> Self {
        "root".parse().expect("root is a user name")
    }
}

fn is_name(text: &str) -> bool {
    text.len() <= 63
        && text.starts_with(|c: char| c.is_ascii_lowercase())
        && text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
}

fn is_site_name(text: &str) -> bool {
    starts_alphanumeric(text)
        && text.len() <= 63
        && text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || matches!(b, b'-' | b'.'))
}

fn is_age_recipient(text: &str) -> bool {
    let is_bech32 = |byte: u8| b"023456789acdefghjklmnpqrstuvwxyz".contains(&byte);
    text.strip_prefix("age1").is_some_and(|data| data.len() == 58 && data.bytes().all(is_bech32))
}

fn is_secret_digest(text: &str) -> bool {
    text.len() == 32 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

fn is_key_name(text: &str) -> bool {
    text.len() <= 128 && starts_alphanumeric(text) && only(text, "._@-")
}

fn is_user_name(text: &str) -> bool {
    text.len() <= 32
        && text.starts_with(|c: char| c.is_ascii_lowercase() || c == '_')
        && text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || matches!(b, b'_' | b'-'))
}

fn is_domain(text: &str) -> bool {
    text.len() <= 253
        && only(text, ".-")
        && text
            .split('.')
            .all(|label| starts_alphanumeric(label) && !label.ends_with('-') && label.len() <= 63)
}

/// What ends in `-` apt would remove instead of installing it, and no package is called so.
fn is_package(text: &str) -> bool {
    let is_ended = |part: &str| part.ends_with(|c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '~'));
    text.len() <= 128
        && starts_alphanumeric(text)
        && only(text, "+._:@/~=-")
        && text.split([':', '/', '=']).all(is_ended)
}

fn is_unit(text: &str) -> bool {
    text.len() <= 255 && starts_alphanumeric(text) && only(text, ":_.@-")
}

fn is_time_zone(text: &str) -> bool {
    text.len() <= 64
        && text.starts_with(|c: char| c.is_ascii_alphabetic())
        && only(text, "_+/-")
        && text.split('/').all(|part| !part.is_empty())
}

fn is_absolute_path(text: &str) -> bool {
    let parts = text.strip_prefix('/');
    let fit = |part: &str| !matches!(part, "" | "." | "..") && !part.contains(|c: char| c.is_control());
    text.len() <= 4096 && parts.is_some_and(|parts| parts.split('/').all(fit))
}

fn is_store_path(text: &str) -> bool {
    let Some((hash, name)) = text.strip_prefix("/nix/store/").and_then(|rest| rest.split_once('-')) else {
        return false;
    };
    let is_digit = |b: u8| (b.is_ascii_digit() || b.is_ascii_lowercase()) && !b"eotu".contains(&b);
    let is_fit = |b: u8| b.is_ascii_alphanumeric() || b"+._?=-".contains(&b);
    hash.len() == 32
        && hash.bytes().all(is_digit)
        && (1..=211).contains(&name.len())
        && !matches!(name, "." | "..")
        && name.bytes().all(is_fit)
}

fn is_file_mode(text: &str) -> bool {
    text.len() == 4 && text.bytes().all(|b| (b'0'..=b'7').contains(&b))
}

fn is_public_key(text: &str) -> bool {
    let mut parts = text.splitn(3, ' ');
    let kind = parts.next().unwrap_or_default();
    let known = matches!(kind, "ssh-ed25519" | "ssh-rsa")
        || kind.starts_with("ecdsa-sha2-nistp")
        || (kind.starts_with("sk-") && only(kind, "@.-"));
    let base64 = |key: &str| key.len() >= 16 && only(key, "+/=");
    known && parts.next().is_some_and(base64) && !text.contains(|c: char| c.is_control())
}

fn is_https_url(text: &str) -> bool {
    let rest = text.strip_prefix("https://");
    rest.is_some_and(|rest| !rest.is_empty() && rest.bytes().all(|b| b.is_ascii_graphic()))
}

fn is_fingerprint(text: &str) -> bool {
    let pairs = text.split(':');
    pairs.clone().count() == 32
        && pairs.clone().all(|p| p.len() == 2 && p.bytes().all(|b| b.is_ascii_hexdigit()))
}

fn starts_alphanumeric(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphanumeric())
}

fn only(text: &str, others: &str) -> bool {
    text.chars().all(|c| c.is_ascii_alphanumeric() || others.contains(c))
}

#[cfg(test)]
mod tests {
    use core::str::FromStr;

    use super::*;

    fn check<T: FromStr>(good: &[&str], bad: &[&str]) {
        for text in good {
            assert!(text.parse::<T>().is_ok(), "{text:?} should be fine");
        }
        for text in bad {
            assert!(text.parse::<T>().is_err(), "{text:?} should be refused");
        }
    }

    #[test]
    fn grammars_take_what_is_meant_and_refuse_what_could_harm() {
        let long = "a".repeat(64);
        check::<NodeName>(&["a", "web-1"], &["", "1a", "A", "a_b", "../etc", "a/b", "a\n", &long]);
        check::<KeyName>(&["alice@laptop"], &["", "a b", "-a", "$(id)"]);
        check::<UserName>(&["ops", "_apt"], &["Root", "a b", "x;y", ""]);
        check::<Domain>(&["example.org", "core"], &["a..b", "-a.b", ".", "a b"]);
        check::<Package>(
            &["htop", "a", "g++", "libc6:amd64", "a-b.c", "vim=2:9.0~rc1-1+b2", "htop/stable-backports"],
            &[
                "-rf",
                "a b",
                "$(x)",
                "a;b",
                "",
                "sudo-",
                "a.",
                "sudo-:amd64",
                "sudo-=1.0",
                "sudo-/x",
                "a=1-",
                "a=",
            ],
        );
        check::<NodePath>(&["/etc/motd"], &["etc", "/", "/a/../b", "/a//b", "/a/./b", "/a\n"]);
        check::<StorePath>(
            &["/nix/store/00000000000000000000000000000000-nixos-system-web-25.11"],
            &[
                "/nix/store/00000000000000000000000000000000-",
                "/nix/store/0000000000000000000000000000000e-x",
                "/nix/store/00000000000000000000000000000000-x/y",
                "/nix/store/00000000000000000000000000000000-$(x)",
                "/nix/store/0-x",
                "/etc",
            ],
        );
        check::<FileMode>(&["0644", "1777"], &["644", "0o644", "0888", "u+x"]);
        check::<PublicKey>(
            &["ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIE comment words"],
            &[
                "ssh-ed25519",
                "command=\"x\" ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIE",
                "ssh-dss AAAAC3NzaC1lZDI1NTE5AA",
            ],
        );
        check::<TimeZone>(&["UTC", "Europe/Berlin", "Etc/GMT+1"], &["", "/etc/passwd", "a//b", "../x"]);
        check::<Url>(&["https://orch.example:44443"], &["http://a", "https://", "https://a b"]);
    }
}
