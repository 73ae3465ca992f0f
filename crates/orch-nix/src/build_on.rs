//! Where systems are built.

use std::str::FromStr;

/// Where systems are built.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum BuildOn {
    /// On this machine, and on the builders that its Nix is told of.
    #[default]
    Here,
    /// On this builder alone, as Nix writes one: `ssh://builder x86_64-linux`.
    Builder(String),
    /// On the node that is to run it: it is sent the derivations instead of what they make.
    Target,
}

impl FromStr for BuildOn {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "here" => Ok(Self::Here),
            "target" => Ok(Self::Target),
            builder if builder.contains("://") => Ok(Self::Builder(builder.into())),
            _ => Err(format!(
                "`{text}` is no place to build: `here`, `target`, or a builder as Nix writes it, such as `ssh://builder x86_64-linux`"
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_here_the_target_or_a_builder() {
        assert_eq!("here".parse(), Ok(BuildOn::Here));
        assert_eq!("target".parse(), Ok(BuildOn::Target));
        assert_eq!("ssh://b aarch64-linux".parse(), Ok(BuildOn::Builder("ssh://b aarch64-linux".into())));
        assert!("there".parse::<BuildOn>().is_err_and(|why| why.contains("`there`")));
    }
}
