//! The targets of `tests/fuzz`, for libFuzzer. CONTRIBUTING.md tells how to run them.

#[path = "../../tests/fuzz/targets/mod.rs"]
pub mod targets;
