//! The choice of the window.

use super::Lanes;
use crate::window::Window;

/// `(largest exponent_bits, window bits)`: the window that costs the least. A window of `w` bits costs
/// `2^w - 2` multiplications for the table and `ceil(exponent_bits / w) - 1` after that, each with a
/// look-up among `2^w` entries.
const WINDOWS: [(u32, u32); 2] = [(24, 2), (100, 3)];

/// The window of longer exponents, up to [`Lanes::LONG_EXPONENT_BITS`].
const LARGE: u32 = 4;

/// The window of exponents that are longer still.
const LARGEST: u32 = 5;

/// How many entries a squaring looks at, at most, if a look-up is spread evenly over the squarings before
/// its multiplication: `2^w / w` of a window of `w` bits.
pub(crate) const ENTRIES_PER_SQUARING: usize = (1usize << LARGEST).div_ceil(LARGEST as usize);

/// The window for exponents of `exponent_bits` bits, which is public.
pub(super) fn window<L: Lanes>(exponent_bits: u32) -> Window {
    let long = (L::LONG_EXPONENT_BITS, LARGE);
    let bits = WINDOWS
        .into_iter()
        .chain([long])
        .find(|(largest, _)| exponent_bits <= *largest)
        .map_or(LARGEST, |(_, bits)| bits);
    Window::new(bits).expect("a window of 2 to 5 bits")
}
