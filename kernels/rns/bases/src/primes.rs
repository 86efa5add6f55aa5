//! Primes just below a power of two.

/// Odd primes below `2^29`, greatest first.
pub(crate) fn below_2_to_29() -> impl Iterator<Item = u32> {
    (1u32..1 << 29).rev().step_by(2).filter(|&n| is_prime(n))
}

/// Whether an odd number is prime, by trial division.
fn is_prime(n: u32) -> bool {
    let small = (3..).step_by(2).take_while(|d| d * d <= n);
    n > 2 && small.into_iter().all(|d| !n.is_multiple_of(d))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn primes_are_those_that_are_known() {
        let small: Vec<_> = (1..60).step_by(2).filter(|&n| is_prime(n)).collect();
        let known = [3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53, 59];
        assert_eq!(small, known);
        // The Prime Pages, "primes just less than a power of two": 2^29 - k.
        let distances: Vec<_> = below_2_to_29().take(10).map(|p| (1 << 29) - p).collect();
        assert_eq!(distances, [3, 33, 43, 63, 73, 75, 93, 99, 121, 133]);
    }
}
