//! `record!`: a struct, its reader and its JSON Schema from one definition.

use alloc::string::String;
use alloc::vec::Vec;

use serde_json::{Map, Value as Json, json};

use super::{Fields, or_null};
use crate::text::Reporter;

/// One key of a record, as its schema shows it.
pub(crate) struct Property {
    pub(crate) key: &'static str,
    pub(crate) schema: Json,
    pub(crate) doc: String,
    pub(crate) required: bool,
    pub(crate) default: Option<Json>,
}

/// A type that is read from the keys of a map; a record may be part of another one (`..field: Type`).
pub(crate) trait Record: Sized {
    /// Takes the record's own fields out of a map.
    fn take(fields: &mut Fields<'_, '_>, cx: &mut Reporter<'_>) -> Self;

    /// The record's keys.
    fn properties() -> Vec<Property>;
}

/// The schema of a map with exactly these keys.
pub(crate) fn properties_schema(doc: &str, properties: Vec<Property>) -> Json {
    let mut shown = Map::new();
    let mut required = Vec::new();
    for property in properties {
        if property.required {
            required.push(Json::from(property.key));
        }
        let mut schema = if property.required { property.schema } else { or_null(property.schema) };
        if let Json::Object(object) = &mut schema {
            object.entry("description").or_insert_with(|| Json::from(property.doc.trim()));
            if let Some(default) = property.default {
                object.insert("default".into(), default);
            }
        }
        shown.insert(property.key.into(), schema);
    }
    json!({
        "type": "object",
        "description": doc.trim(),
        "properties": shown,
        "required": required,
        "additionalProperties": false,
    })
}

/// Defines a struct that [`Decode`](super::Decode)s from a map.
///
/// ```text
/// record! {
///     /// Doc, which becomes the schema's description.
///     pub struct Node as "node" {          // "node" names it in messages
///         name: Located<Name>,              // required
///         kind as "type": Located<Kind>,    // under another key
///         count: Count = Count::ONE,        // with a default
///         parent: Option<Located<Name>>,    // its type knows what absence means
///         ..rest: Shared,                   // the fields of another record, in the same map
///     }
/// }
/// ```
macro_rules! record {
    (
        $(#[doc = $doc:literal])*
        $vis:vis struct $name:ident as $noun:literal {
            $(
                $(#[doc = $field_doc:literal])*
                $field:ident $(as $key:literal)? : $ty:ty $(= $default:expr)?,
            )*
            $(
                ..
                $(#[doc = $flat_doc:literal])*
                $flat:ident : $flat_ty:ty,
            )?
        }
    ) => {
        $(#[doc = $doc])*
        #[derive(Debug, Clone, PartialEq)]
        $vis struct $name {
            $( $(#[doc = $field_doc])* pub(crate) $field: $ty, )*
            $( $(#[doc = $flat_doc])* pub(crate) $flat: $flat_ty, )?
        }

        impl $crate::decode::Record for $name {
            fn take(
                fields: &mut $crate::decode::Fields<'_, '_>,
                cx: &mut $crate::text::Reporter<'_>,
            ) -> Self {
                Self {
                    $( $field: record!(@take fields, cx, record!(@key $field $($key)?) $(, $default)?), )*
                    $( $flat: <$flat_ty as $crate::decode::Record>::take(fields, cx), )?
                }
            }

            #[allow(unused_mut)]
            fn properties() -> alloc::vec::Vec<$crate::decode::Property> {
                let mut properties = alloc::vec![
                    $( $crate::decode::Property {
                        key: record!(@key $field $($key)?),
                        schema: <$ty as $crate::decode::Decode>::schema(),
                        doc: alloc::string::String::from(concat!($($field_doc,)*)),
                        required: record!(@required $ty $(, $default)?),
                        default: record!(@default $ty $(, $default)?),
                    }, )*
                ];
                $( properties.extend(<$flat_ty as $crate::decode::Record>::properties()); )?
                properties
            }
        }

        impl $crate::decode::Decode for $name {
            fn decode(
                value: &$crate::text::Value<'_>,
                cx: &mut $crate::text::Reporter<'_>,
            ) -> Option<Self> {
                let mut fields = $crate::decode::Fields::of(value, $noun, cx)?;
                let record = <Self as $crate::decode::Record>::take(&mut fields, cx);
                fields.finish(cx);
                Some(record)
            }

            fn placeholder() -> Self {
                Self {
                    $( $field: <$ty as $crate::decode::Decode>::placeholder(), )*
                    $( $flat: <$flat_ty as $crate::decode::Decode>::placeholder(), )?
                }
            }

            /// A record may be left out when each of its fields may.
            fn absent() -> Option<Self> {
                Some(Self {
                    $( $field: record!(@absent $ty $(, $default)?), )*
                    $( $flat: <$flat_ty as $crate::decode::Decode>::absent()?, )?
                })
            }

            fn schema() -> serde_json::Value {
                let properties = <Self as $crate::decode::Record>::properties();
                $crate::decode::properties_schema(concat!($($doc,)*), properties)
            }
        }
    };
    (@key $field:ident $key:literal) => { $key };
    (@key $field:ident) => { stringify!($field) };
    (@take $fields:ident, $cx:ident, $key:expr, $default:expr) => {
        $fields.take_or($key, || Some($default), $cx)
    };
    (@take $fields:ident, $cx:ident, $key:expr) => { $fields.take($key, $cx) };
    (@required $ty:ty, $default:expr) => { false };
    (@required $ty:ty) => { <$ty as $crate::decode::Decode>::absent().is_none() };
    (@absent $ty:ty, $default:expr) => { $default };
    (@absent $ty:ty) => { <$ty as $crate::decode::Decode>::absent()? };
    (@default $ty:ty, $default:expr) => {{
        let default: $ty = $default;
        serde_json::to_value(default).ok()
    }};
    (@default $ty:ty) => { None };
}
pub(crate) use record;
