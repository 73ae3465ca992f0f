//! `choice!`: an enum of words, its reader, its printing and its JSON Schema from one definition.

use alloc::vec::Vec;

use super::{found, suggestion, with_article};
use crate::text::{Finding, Reporter, Span, Value};
use crate::word::shorten;

/// An enum of which every variant is one word in a site file.
pub(crate) trait Choice: Sized + Copy + 'static {
    /// Every variant with its word, in the order of their definition.
    const WORDS: &'static [(Self, &'static str)];

    /// Finds the variant of a word.
    fn from_word(word: &str) -> Option<Self> {
        Self::WORDS.iter().find(|(_, candidate)| *candidate == word).map(|(variant, _)| *variant)
    }
}

/// Reports a word that is none of a choice.
pub(crate) fn refuse_word<T: Choice>(word: &str, span: Span, noun: &str, cx: &mut Reporter<'_>) {
    let words = T::WORDS.iter().map(|(_, word)| *word);
    let message = alloc::format!("`{}` is not {}", shorten(word), with_article(noun));
    let hint = suggestion(word, words, cx);
    cx.report(Finding::new(span, message).hint_option(hint));
}

/// Reports a value that is no word at all, with the words that there are.
pub(crate) fn refuse_kind<T: Choice>(value: &Value<'_>, noun: &str, cx: &mut Reporter<'_>) -> Option<T> {
    let words: Vec<&str> = T::WORDS.iter().map(|(_, word)| *word).collect();
    let message = alloc::format!("expected a {noun}, found {}", found(value, cx));
    cx.report(Finding::new(value.span, message).hint(alloc::format!("choose from `{}`", words.join("`, `"))));
    None
}

/// Defines an enum of words. The noun names it in messages.
macro_rules! choice {
    (
        $(#[doc = $doc:literal])*
        $vis:vis enum $name:ident as $noun:literal {
            $( $(#[doc = $variant_doc:literal])* $variant:ident = $word:literal, )*
        }
    ) => {
        $(#[doc = $doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        $vis enum $name {
            $( $(#[doc = $variant_doc])* $variant, )*
        }

        impl $name {
            /// The word that stands for it in site files, output and JSON.
            pub const fn as_str(self) -> &'static str {
                match self { $( Self::$variant => $word, )* }
            }
        }

        impl $crate::decode::Choice for $name {
            const WORDS: &'static [(Self, &'static str)] = &[$( (Self::$variant, $word), )*];
        }

        impl core::fmt::Display for $name {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl core::str::FromStr for $name {
            type Err = alloc::string::String;

            fn from_str(word: &str) -> Result<Self, Self::Err> {
                $crate::decode::Choice::from_word(word).ok_or_else(|| {
                    let words = [$( $word, )*].join(", ");
                    alloc::format!("`{word}` is not {}: choose from {words}", $crate::decode::with_article($noun))
                })
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let word = <alloc::borrow::Cow<'de, str>>::deserialize(deserializer)?;
                word.parse().map_err(serde::de::Error::custom)
            }
        }

        impl $crate::decode::Decode for $name {
            fn decode(
                value: &$crate::text::Value<'_>,
                cx: &mut $crate::text::Reporter<'_>,
            ) -> Option<Self> {
                let $crate::text::Data::Text(word) = &value.data else {
                    return $crate::decode::choice::refuse_kind::<Self>(value, $noun, cx);
                };
                let choice = <Self as $crate::decode::Choice>::from_word(word);
                if choice.is_none() {
                    $crate::decode::choice::refuse_word::<Self>(word, value.span, $noun, cx);
                }
                choice
            }

            fn placeholder() -> Self {
                <Self as $crate::decode::Choice>::WORDS[0].0
            }

            fn schema() -> serde_json::Value {
                serde_json::json!({ "type": "string", "enum": [$( $word, )*] })
            }
        }
    };
}
pub(crate) use choice;
