//! Names and versions, as they are written in store paths.

use orch_model::StorePath;

/// Outputs of a package that are named behind its version.
const OUTPUTS: [&str; 14] = [
    "bin", "dev", "lib", "man", "doc", "info", "out", "data", "debug", "devdoc", "static", "dist", "getent",
    "terminfo",
];

/// The name in a store path, taken apart as Nix does.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Named<'p> {
    pub(super) name: &'p str,
    /// Without the output behind it.
    pub(super) version: Option<&'p str>,
}

impl<'p> Named<'p> {
    pub(super) fn of(path: &'p StorePath) -> Self {
        let text = path.as_str().rsplit('/').next().unwrap_or_default();
        let text = text.split_once('-').map_or("", |(_, text)| text);
        // A version begins behind the first dash that no letter follows.
        let at = text
            .match_indices('-')
            .find(|(at, _)| text[at + 1..].chars().next().is_some_and(|next| !next.is_ascii_alphabetic()));
        let Some((at, _)) = at else { return Self { name: text, version: None } };
        let (name, version) = (&text[..at], &text[at + 1..]);
        let version = match version.rsplit_once('-') {
            Some((version, output)) if OUTPUTS.contains(&output) => version,
            _ => version,
        };
        // `etc-1.conf` and the like: a version is not a file.
        Self { name, version: version.starts_with(|c: char| c.is_ascii_digit()).then_some(version) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_versions_are_those_of_nix() {
        let check = |text: &str, name: &str, version: Option<&str>| {
            let path: StorePath = format!("/nix/store/{}-{text}", "0".repeat(32)).parse().unwrap();
            assert_eq!(Named::of(&path), Named { name, version });
        };
        check("openssl-3.0.7", "openssl", Some("3.0.7"));
        check("openssl-3.0.7-bin", "openssl", Some("3.0.7"));
        check("glibc-2.38-66", "glibc", Some("2.38-66"));
        check("glibc-2.38-66-bin", "glibc", Some("2.38-66"));
        check("python3.11-requests-2.31.0", "python3.11-requests", Some("2.31.0"));
        check("gcc-wrapper-12.3.0", "gcc-wrapper", Some("12.3.0"));
        check("nixos-system-web-24.05.20240601.abc", "nixos-system-web", Some("24.05.20240601.abc"));
        check("system-path", "system-path", None);
        check("unit-nginx.service", "unit-nginx.service", None);
        check("x-", "x-", None);
        check("a-.b", "a", None);
        check("-1", "", Some("1"));
    }
}
