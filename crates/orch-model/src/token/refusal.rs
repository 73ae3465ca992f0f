//! Why a token is not believed, or a question not answered: the codes that a node sees, and what HTTP calls them.

use core::fmt;

/// Why a token is not believed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// There is none.
    Missing,
    /// There is no key to believe one by.
    NoKey,
    /// It is not a token.
    Malformed,
    /// No key of ours has signed it.
    Forged,
    /// It is for another node.
    OtherNode,
    /// It opens something else.
    OtherAudience,
    /// Its time is over.
    Expired,
    /// It was used up: one that came after it was shown since.
    UsedUp,
    /// It was taken back.
    Revoked,
    /// It came with other keys than the first one of its chain: somebody else has it.
    OtherKeys,
}

impl Refusal {
    /// The code that is answered.
    pub const fn code(self) -> Code {
        match self {
            Self::Missing | Self::Malformed => Code::E300,
            Self::NoKey => Code::E500,
            Self::Forged | Self::OtherNode | Self::OtherAudience | Self::Expired => Code::E301,
            Self::UsedUp | Self::Revoked | Self::OtherKeys => Code::E302,
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Missing => "no bearer token was given",
            Self::NoKey => "the server has no key to check tokens with",
            Self::Malformed => "what was given is not a token",
            // Which of these it is helps nobody but who tries tokens.
            Self::Forged | Self::OtherNode | Self::OtherAudience => "the token is not good for this",
            Self::Expired => "the token has expired",
            Self::UsedUp => "the token was used up",
            Self::Revoked => "the token was revoked",
            Self::OtherKeys => "the token came with other keys than before: another machine has it",
        })
    }
}

/// What the spec server answers where it does not answer the question.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Code {
    /// There is nothing at this path.
    E100,
    /// The path names no node.
    E101,
    /// The node is not known, or becomes nothing.
    E200,
    /// The token cannot be read.
    E300,
    /// The token is not believed.
    E301,
    /// The token was good once.
    E302,
    /// What the site says of the node makes no sense.
    E400,
    /// The server itself is at fault.
    E500,
}

impl Code {
    /// The word.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::E100 => "E100",
            Self::E101 => "E101",
            Self::E200 => "E200",
            Self::E300 => "E300",
            Self::E301 => "E301",
            Self::E302 => "E302",
            Self::E400 => "E400",
            Self::E500 => "E500",
        }
    }

    /// What HTTP calls it.
    pub const fn status(self) -> u16 {
        match self {
            Self::E100 | Self::E200 => 404,
            Self::E101 | Self::E300 => 400,
            Self::E301 => 401,
            Self::E302 => 403,
            Self::E400 => 422,
            Self::E500 => 500,
        }
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
