//! Says which tests this build leaves out.

#[path = "common/need.rs"]
mod need;

/// The features that tests ask for in `Cargo.toml`, as cargo leaves those tests out without a word.
#[test]
fn all_tests_are_built() {
    let features = [
        ("std", cfg!(feature = "std")),
        ("cuda", cfg!(feature = "cuda")),
        ("encrypted", cfg!(feature = "encrypted")),
        ("hazmat", cfg!(feature = "hazmat")),
        ("queue", cfg!(feature = "queue")),
        ("rsa", cfg!(feature = "rsa")),
    ];
    let off: Vec<_> = features
        .iter()
        .filter(|(_, on)| !on)
        .map(|(name, _)| *name)
        .collect();
    let all = match off.as_slice() {
        [] => Ok(()),
        off => Err(format!(
            "{} off, and with it tests; run `cargo test --all-features`",
            off.join(", ")
        )),
    };
    need::available("features", all);
}
