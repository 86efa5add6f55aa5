//! The measured machine and libraries.

use std::fs;

/// The lock file of this build.
const LOCK_FILE: &str = include_str!("../../../Cargo.lock");

/// Binds the process to core `wanted`, by default the last allowed one, and returns its number.
pub(crate) fn pin(wanted: Option<usize>) -> Result<usize, String> {
    let cores = core_affinity::get_core_ids().unwrap_or_default();
    let core = match wanted {
        Some(id) => cores.iter().find(|core| core.id == id),
        None => cores.last(),
    };
    let core = *core.ok_or_else(|| {
        let ids: Vec<_> = cores.iter().map(|core| core.id).collect();
        format!("no such core; this process may use {ids:?}")
    })?;
    if core_affinity::set_for_current(core) {
        Ok(core.id)
    } else {
        Err(format!("cannot bind the process to core {}", core.id))
    }
}

/// Prints the facts that a reader needs to compare the figures.
pub(crate) fn describe(core: usize) {
    println!(
        "CPU: {}, {}, core {core} only",
        cpu_model(),
        vector_extensions()
    );
    println!("{} (vendored)", openssl::version::version());
    for package in [
        "batch-modexp",
        "crypto-bigint",
        "rsa",
        "ring",
        "aws-lc-rs",
        "aws-lc-sys",
    ] {
        println!("{package}: {}", locked_version(package));
    }
    if let Ok(mask) = std::env::var("OPENSSL_ia32cap") {
        println!("OPENSSL_ia32cap={mask}");
    }
}

fn cpu_model() -> String {
    let info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = info
        .lines()
        .filter_map(|line| line.split_once(':'))
        .find(|(key, _)| key.trim() == "model name")
        .map(|(_, model)| model.trim().to_owned());
    model.unwrap_or_else(|| format!("unknown {}", std::env::consts::ARCH))
}

#[cfg(target_arch = "x86_64")]
fn vector_extensions() -> &'static str {
    if is_x86_feature_detected!("avx512ifma") {
        "AVX-512 IFMA"
    } else if is_x86_feature_detected!("avx2") {
        "AVX2 but no AVX-512 IFMA"
    } else {
        "no AVX2"
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn vector_extensions() -> &'static str {
    "no x86 extensions"
}

/// The version of `package` in the lock file; all of them if there are several.
fn locked_version(package: &str) -> String {
    let name = format!("name = \"{package}\"");
    let mut lines = LOCK_FILE.lines();
    let mut versions = Vec::new();
    while lines.any(|line| line == name) {
        let version = lines.next().and_then(|line| line.split('"').nth(1));
        versions.extend(version);
    }
    versions.join(", ")
}
