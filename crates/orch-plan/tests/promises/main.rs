//! What the plan promises, by its public face. One program, so that it is linked once.

#![expect(clippy::needless_raw_string_hashes, reason = "expect-test writes them")]

mod config;
mod create;
mod destroy;
mod json;
mod naming;
mod properties;
mod readback;
mod replace;
mod sample_site;
mod selection;
mod simulate;
mod site;
mod staging;
