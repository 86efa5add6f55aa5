//! Writes the constants as a CUDA C++ header.

use crate::{Bases, Constants};

/// The name of the header for a width.
#[must_use]
pub fn file_name(bits: u32) -> String {
    format!("bases_{bits}.cuh")
}

/// The text of the header.
#[must_use]
pub fn text(bases: &Bases) -> String {
    let bits = bases.bits;
    let table = Constants::new(bases).flat();
    let mut text = format!(
        "// Made by kernels/rns/bases from the primes below 2^29: do not edit. Layout: shape.cuh.\n\
         #pragma once\n\n\
         namespace rns {{\n\n\
         constexpr int BASES_{bits}_COUNT = {};\n\n\
         // {} moduli in each base. In a function, so that it is in the modules alone that call it.\n\
         __device__ __forceinline__ const unsigned* bases_{bits}() {{\n    \
         static const __device__ unsigned TABLE[BASES_{bits}_COUNT] = {{\n",
        table.len(),
        bases.count(),
    );
    for row in table.chunks(12) {
        let cells: Vec<_> = row.iter().map(|word| format!("{word},")).collect();
        text += &format!("        {}\n", cells.join(" "));
    }
    text += "    };\n    return TABLE;\n}\n\n}  // namespace rns\n";
    text
}
