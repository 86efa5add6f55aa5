//! The choice of the window.

use crate::window::Window;

/// `(largest exponent_bits, window bits)`: the window that costs the least. A window of `w` bits costs
/// `2^w - 2` multiplications for the table and `ceil(exponent_bits / w) - 1` after that, each with a
/// look-up among `2^w` entries. The last border is measured and takes the look-up into account: as long
/// as a table of 16 entries stays in the first-level cache, one of 32 does not pay.
const WINDOWS: [(u32, u32); 4] = [(4, 1), (24, 2), (100, 3), (1600, 4)];

/// The largest window.
const LARGEST: u32 = 5;

/// The window for exponents of `exponent_bits` bits, which is public.
pub(super) fn window(exponent_bits: u32) -> Window {
    let bits = WINDOWS
        .iter()
        .find(|(largest, _)| exponent_bits <= *largest)
        .map_or(LARGEST, |(_, bits)| *bits);
    Window::new(bits).expect("a window of 1 to 5 bits")
}
