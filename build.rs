//! Embeds the GPU kernels, for the feature `cuda`. Does nothing else.

#[cfg(feature = "cuda")]
#[path = "kernels/tools/embed.rs"]
mod embed;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    #[cfg(feature = "cuda")]
    if let Err(message) = embed::all_families() {
        eprintln!("{message}");
        std::process::exit(1);
    }
}
