//! The numbers of products from which on lanes are faster than [`Serial`](batch_modexp_core::Serial).

/// The smallest numbers of products for which lanes are faster than `Serial`. Measured on a Zen 5,
/// with widths in bits and numbers that grow by about a half from one to the next. A width in
/// between counts as the next smaller one.
#[derive(Debug)]
pub(crate) struct ProductCounts {
    /// The narrowest moduli that this row is for, in bits.
    pub(crate) bits: u32,
    /// If most instances have the modulus of the one before: for ordinary products, then for those
    /// in Montgomery form.
    pub(crate) shared: [usize; 2],
    /// If most do not.
    pub(crate) mixed: [usize; 2],
}

const fn fewest(bits: u32, shared: [usize; 2], mixed: [usize; 2]) -> ProductCounts {
    ProductCounts {
        bits,
        shared,
        mixed,
    }
}

/// `Serial` is always faster.
const NEVER: usize = usize::MAX;

#[cfg(target_arch = "x86_64")]
pub(super) const IFMA: [ProductCounts; 8] = [
    fewest(128, [512, NEVER], [NEVER, NEVER]),
    fewest(192, [96, NEVER], [NEVER, NEVER]),
    fewest(256, [48, 1024], [96, NEVER]),
    fewest(384, [24, 64], [32, 128]),
    fewest(512, [16, 32], [16, 32]),
    fewest(1024, [6, 8], [6, 8]),
    fewest(2048, [3, 4], [3, 4]),
    fewest(4096, [2, 2], [2, 2]),
];

pub(super) const FMA: [ProductCounts; 4] = [
    fewest(512, [256, NEVER], [NEVER, NEVER]),
    fewest(1024, [12, 24], [NEVER, NEVER]),
    fewest(2048, [4, 8], [8, 8]),
    fewest(4096, [3, 3], [4, 4]),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wider_moduli_and_ordinary_products_need_no_more() {
        let mut tables = alloc::vec![&FMA[..]];
        #[cfg(target_arch = "x86_64")]
        tables.push(&IFMA);
        for table in tables {
            for pair in table.windows(2) {
                assert!(pair[0].bits < pair[1].bits);
                let [narrow, wide] = [&pair[0], &pair[1]];
                for (narrow, wide) in [(narrow.shared, wide.shared), (narrow.mixed, wide.mixed)] {
                    assert!(wide[0] <= narrow[0] && wide[1] <= narrow[1]);
                    assert!(wide[0] <= wide[1] && narrow[0] <= narrow[1]);
                }
            }
        }
    }
}
