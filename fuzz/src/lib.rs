//! The targets of `tests/fuzz`, for libFuzzer. Run them as CONTRIBUTING.md says.

#[path = "../../tests/fuzz/targets/mod.rs"]
pub mod targets;
