//! libFuzzer's driver of the shared target for sops files.

#![no_main]
#![allow(dead_code, reason = "the other target is driven by another program")]

#[path = "../secrets.rs"]
mod secrets;

libfuzzer_sys::fuzz_target!(|data: &[u8]| secrets::sops(data));
