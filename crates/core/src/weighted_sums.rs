//! Weighted sums of the words of a number, which trial division takes most of its time for.

/// The sums that are computed at a time.
pub const SUMS: usize = 16;

/// Sets `sums[j]` to the sum of all `words[i] * weights[i][j]`. The sums must be below 2^64.
///
/// Constant-time in the words and weights.
pub fn weighted_sums(words: &[u32], weights: &[[u32; SUMS]], sums: &mut [u64; SUMS]) {
    sums.fill(0);
    accumulate(words, weights.as_flattened(), sums);
}

/// With slices instead of arrays, compilers keep neighbouring sums in a vector.
#[inline(never)]
fn accumulate(words: &[u32], weights: &[u32], sums: &mut [u64]) {
    for (word, weights) in words.iter().zip(weights.chunks_exact(sums.len())) {
        for (sum, weight) in sums.iter_mut().zip(weights) {
            *sum += u64::from(*word) * u64::from(*weight);
        }
    }
}
