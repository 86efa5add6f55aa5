//! The choice of the window.

use batch_modexp_core::window::Window;

use super::Lanes;

/// The largest window of the ladder, in bits. Lane types choose theirs up to it (`max_window`).
pub(crate) const LARGEST_WINDOW: u32 = 5;

/// `(largest exponent_bits, window bits)`: the cheapest window. A window of `w` bits costs
/// `2^w - 2` multiplications for the table. It then costs `ceil(exponent_bits / w) - 1`
/// multiplications, each with a look-up among `2^w` entries.
const WINDOWS: [(u32, u32); 3] = [(4, 1), (24, 2), (100, 3)];

/// The window for exponents of `exponent_bits` bits, which is public. Above 100 bits it is 4 bits,
/// and above [`LONG_EXPONENT_BITS`](Lanes::LONG_EXPONENT_BITS) `largest`.
pub(super) fn window<L: Lanes>(exponent_bits: u32, largest: u32) -> Window {
    let longest = if exponent_bits <= L::LONG_EXPONENT_BITS {
        4
    } else {
        largest
    };
    let bits = WINDOWS
        .iter()
        .find(|(longest_exponent, _)| exponent_bits <= *longest_exponent)
        .map_or(longest, |(_, bits)| *bits);
    Window::new(bits).expect("a window of 1 to 5 bits")
}
