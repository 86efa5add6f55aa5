#![no_main]

use batch_modexp_fuzz::targets;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let _ = targets::multi_exp::run(data);
});
