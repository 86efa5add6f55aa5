//! The instructions in plain Rust, for tests on any machine and under valgrind.

use alloc::vec;
use alloc::vec::Vec;
use core::array::from_fn;
use core::cell::RefCell;
use core::hint::black_box;
use core::marker::PhantomData;

use crate::ifma::madd52::{Kernel, LaneLimb, Limb4, Limb8, Madd52, Processor, RADIX_BITS};
use crate::ifma::pair::{Across, Pair, PairKernel};
use crate::lanes::MAX_LANES;

/// As many lanes as `L` has, in plain Rust. Its methods are not inlined: unrolled, they would take
/// minutes to compile. For the same reason a vector is a [`Handle`].
#[derive(Clone, Copy)]
pub(crate) struct Portable<L> {
    processor: Processor,
    lanes: PhantomData<L>,
}

/// Eight lanes as on AVX-512.
pub(in crate::ifma) const EIGHT: Portable<Limb8> = Portable {
    processor: Processor::Other,
    lanes: PhantomData,
};

/// Eight lanes with the code for a Zen 4.
pub(in crate::ifma) const EIGHT_SAVING: Portable<Limb8> = Portable {
    processor: Processor::Zen4,
    ..EIGHT
};

/// Four lanes as on AVX-IFMA.
pub(in crate::ifma) const FOUR: Portable<Limb4> = Portable {
    processor: Processor::Other,
    lanes: PhantomData,
};

const MASK: u64 = (1 << RADIX_BITS) - 1;

fn product(a: u64, b: u64) -> u128 {
    u128::from(a & MASK) * u128::from(b & MASK)
}

impl<L: LaneLimb> Madd52 for Portable<L> {
    const MAX_TILE: usize = if L::LANES == 8 { 20 } else { 10 };
    const MERGES_INTO_ZERO: bool = L::LANES != 8;
    const CAN_SAVE_PRODUCTS: bool = L::LANES == 8;

    type Limb = L;
    type Vector = Handle;
    /// All ones in the selected lanes.
    type Mask = Handle;

    fn processor(self) -> Processor {
        self.processor
    }

    fn zero(self) -> Handle {
        Handle::ZERO
    }

    #[inline(never)]
    fn load(self, limb: &L) -> Handle {
        make(|i| limb.lanes().get(i).copied().unwrap_or(0))
    }

    #[inline(never)]
    fn store(self, limb: &mut L, vector: Handle) {
        let lanes = limb.lanes_mut();
        lanes.copy_from_slice(&vector.lanes()[..lanes.len()]);
    }

    #[inline(never)]
    fn madd_lo(self, sum: Handle, a: Handle, b: Handle) -> Handle {
        let (a, b) = (a.lanes(), b.lanes());
        change(sum, |i, sum| sum + (product(a[i], b[i]) as u64 & MASK))
    }

    #[inline(never)]
    fn madd_hi(self, sum: Handle, a: Handle, b: Handle) -> Handle {
        let (a, b) = (a.lanes(), b.lanes());
        change(sum, |i, sum| {
            sum + (product(a[i], b[i]) >> RADIX_BITS) as u64
        })
    }

    #[inline(never)]
    fn add(self, a: Handle, b: Handle) -> Handle {
        let b = b.lanes();
        change(a, |i, a| a + b[i])
    }

    #[inline(never)]
    fn carry(self, a: Handle) -> Handle {
        change(a, |_, lane| lane >> RADIX_BITS)
    }

    #[inline(never)]
    fn carry_of_cleared(self, a: Handle) -> Handle {
        change(a, |_, lane| (lane + MASK) >> RADIX_BITS)
    }

    #[inline(never)]
    fn low(self, a: Handle) -> Handle {
        change(a, |_, lane| lane & MASK)
    }

    fn widen(self, bytes: [u8; MAX_LANES]) -> Handle {
        make(|i| u64::from(bytes[i]))
    }

    #[inline(never)]
    fn equal(self, a: Handle, b: u64) -> Handle {
        change(a, |_, lane| {
            black_box((((lane ^ b) as i64 - 1) >> 63) as u64)
        })
    }

    /// Requires zeros exactly where the processor does.
    #[inline(never)]
    fn merge(self, old: Handle, mask: Handle, new: &L) -> Handle {
        let kept = u64::from(Self::MERGES_INTO_ZERO).wrapping_neg();
        let (mask, new) = (mask.lanes(), self.load(new).lanes());
        change(old, |i, old| old & (!mask[i] | kept) | new[i] & mask[i])
    }

    fn lane_numbers(self, bytes: [u8; MAX_LANES]) -> Handle {
        self.widen(bytes)
    }

    /// A permutation that uses no address depending on the lane numbers.
    #[inline(never)]
    fn pick(self, old: Handle, mask: Handle, lanes: Handle, words: &L::Words) -> Handle {
        let picked = (0..L::LANES).fold(self.zero(), |picked, number| {
            let equal = self.equal(lanes, number as u64).lanes();
            change(picked, |i, picked| {
                picked | words.as_ref()[number] & equal[i]
            })
        });
        let kept = u64::from(Self::MERGES_INTO_ZERO).wrapping_neg();
        let (mask, new) = (mask.lanes(), picked.lanes());
        change(old, |i, old| old & (!mask[i] | kept) | new[i] & mask[i])
    }

    #[inline(never)]
    fn splat(self, value: u64) -> Handle {
        make(|_| value)
    }

    #[inline(never)]
    fn run<K: Kernel<L>, const B: usize>(self, kernel: &mut K) {
        within(|| kernel.run::<Self, B>(self));
    }
}

/// Not inlined, as for `Madd52`, since the kernels are unrolled.
impl Across for Portable<Limb8> {
    #[inline(never)]
    fn store_pairs(self, pairs: &mut [Pair; 4], vector: Handle) {
        let vector = vector.lanes();
        *pairs = from_fn(|i| Pair([vector[2 * i], vector[2 * i + 1]]));
    }

    #[inline(never)]
    fn gather(self, pairs: [&Pair; 4]) -> Handle {
        make(|i| pairs[i / 2].0[i % 2])
    }

    #[inline(never)]
    fn scatter(self, pairs: [&mut Pair; 4], vector: Handle) {
        let vector = vector.lanes();
        for (i, pair) in pairs.into_iter().enumerate() {
            *pair = Pair([vector[2 * i], vector[2 * i + 1]]);
        }
    }

    #[inline(never)]
    fn spread(self, pair: &Pair) -> Handle {
        make(|i| pair.0[i % 2])
    }

    #[inline(never)]
    fn spread_lowest(self, a: Handle) -> Handle {
        let a = a.lanes();
        make(|i| a[i % 2])
    }

    #[inline(never)]
    fn lowest(self, a: Handle) -> Handle {
        change(a, |i, a| if i < 2 { a } else { 0 })
    }

    #[inline(never)]
    fn down(self, a: Handle) -> Handle {
        let a = a.lanes();
        make(|i| a.get(i + 2).copied().unwrap_or(0))
    }

    #[inline(never)]
    fn up(self, a: Handle) -> Handle {
        let a = a.lanes();
        make(|i| if i < 2 { 0 } else { a[i - 2] })
    }

    #[inline(never)]
    fn mask_of(self, bit: Handle) -> Handle {
        change(bit, |_, bit| {
            black_box(bit.wrapping_neg()) >> (64 - RADIX_BITS)
        })
    }

    #[inline(never)]
    fn and(self, a: Handle, b: Handle) -> Handle {
        let b = b.lanes();
        change(a, |i, a| a & b[i])
    }

    #[inline(never)]
    fn pick_pairs(self, old: Handle, new: &[Pair; 4], digits: Handle, entry: u64) -> Handle {
        let digits = digits.lanes();
        change(old, |i, old| {
            // All ones where the digit is the entry.
            let mask = black_box((((digits[i] ^ entry) as i64 - 1) >> 63) as u64);
            old & !mask | new[i / 2].0[i % 2] & mask
        })
    }

    #[inline(never)]
    fn run_pairs<K: PairKernel, const J: usize>(self, kernel: K) {
        within(|| kernel.run::<Self, J>(self));
    }
}

// The kernels are unrolled, for all tile sizes. With vectors of eight words in place of their
// numbers, the compiler would spend a quarter of the work for all unit tests on copying them.

std::thread_local! {
    /// All vectors that the running kernels have made; the first is zero.
    static VECTORS: RefCell<Vec<[u64; MAX_LANES]>> = RefCell::new(vec![[0; MAX_LANES]]);
}

/// The number of a vector of this thread. Lanes beyond those of the unit are ignored.
#[derive(Clone, Copy)]
pub(crate) struct Handle(u32);

impl Handle {
    /// Zero in every lane.
    pub(in crate::ifma) const ZERO: Self = Self(0);

    /// The value of each lane.
    pub(crate) fn lanes(self) -> [u64; MAX_LANES] {
        VECTORS.with_borrow(|vectors| vectors[self.0 as usize])
    }
}

/// Makes a vector from the number of each lane.
pub(crate) fn make(f: impl Fn(usize) -> u64) -> Handle {
    change(Handle::ZERO, |i, _| f(i))
}

/// Makes a vector from the number and the value of each lane.
pub(crate) fn change(vector: Handle, f: impl Fn(usize, u64) -> u64) -> Handle {
    VECTORS.with_borrow_mut(|vectors| {
        let mut lanes = vectors[vector.0 as usize];
        for (i, lane) in lanes.iter_mut().enumerate() {
            *lane = f(i, *lane);
        }
        vectors.push(lanes);
        Handle(vectors.len() as u32 - 1)
    })
}

/// Runs a kernel, then frees the vectors that it made.
pub(crate) fn within(kernel: impl FnOnce()) {
    let count = || VECTORS.with_borrow(Vec::len);
    let before = count();
    kernel();
    VECTORS.with_borrow_mut(|vectors| vectors.truncate(before));
}
