//! Speaking to the API of a host: HTTPS with a certificate that is known, a deadline for every question, and an error that
//! says whether the question can have had an effect.
//!
//! What a question means, and whether to ask again, is the business of whoever asks.

mod client;
mod dial;
mod form;
mod trust;

pub(crate) use client::host_and_port;
pub use client::{Client, ClientSettings, Method, Opener, Question, Reply};
pub use dial::{Dial, Stream, Tcp};
pub use form::{encode, form};
pub use trust::{TrustError, Trusting};

use thiserror::Error;

/// Why a question has no answer.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ApiError {
    /// Nobody answers, or the connection broke before the question was sent: nothing happened.
    #[error("`{api}` cannot be reached: {why}")]
    Unreached {
        /// Its address.
        api: String,
        /// What was seen instead.
        why: String,
    },
    /// Another one answers in its place. Nothing was said to it.
    #[error("`{api}` does not show the certificate that it is known by: {why}")]
    Untrusted {
        /// Its address.
        api: String,
        /// What was seen instead.
        why: String,
    },
    /// The question was sent, and no whole answer came: whether anything happened is not known.
    #[error("`{api}` gave no whole answer: {why}")]
    Unanswered {
        /// Its address.
        api: String,
        /// What was seen instead.
        why: String,
    },
    /// The token that opens it cannot be had. Nothing was said.
    #[error("{what}")]
    Sealed {
        /// What cannot be had, and why.
        what: String,
        /// The way out.
        hint: String,
    },
}
