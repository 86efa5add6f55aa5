//! The kernels that the crate ships, of all families.

use super::family::entry::{Entry, Registry};
use super::family::{dpf, int, rns, rns_mma};

/// The table of each family.
static FAMILIES: [&[Entry]; 4] = [
    &dpf::ENTRIES,
    &int::ENTRIES,
    &rns::ENTRIES,
    &rns_mma::ENTRIES,
];

/// The families that the crate ships.
pub(crate) static SHIPPED: Registry = Registry::new(&FAMILIES);

#[cfg(test)]
mod tests;
