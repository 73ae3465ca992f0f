//! libFuzzer's driver of the shared target for keys, paths and rules.

#![no_main]
#![allow(dead_code, reason = "the other target is driven by another program")]

#[path = "../secrets.rs"]
mod secrets;

libfuzzer_sys::fuzz_target!(|data: &[u8]| secrets::keys(data));
