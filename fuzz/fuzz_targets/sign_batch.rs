#![no_main]

use batch_modexp_fuzz::targets;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| targets::sign_batch::run(data));
