//! libFuzzer's driver of the shared target.

#![no_main]

#[path = "../target.rs"]
mod target;

libfuzzer_sys::fuzz_target!(|data: &[u8]| target::run(data));
