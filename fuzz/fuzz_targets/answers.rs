//! libFuzzer's driver of the shared target for answers of APIs.

#![no_main]
#![allow(dead_code, reason = "the seeds are made by another program")]

#[path = "../answers.rs"]
mod answers;

libfuzzer_sys::fuzz_target!(|data: &[u8]| answers::answers(data));
