//! Buffers for secrets, wiped on drop, on unwinding too, and never printed; and wiping of the stack.

use core::fmt;
use core::hint::black_box;
use core::ops::{Deref, DerefMut};

use crypto_bigint::{Choice, Limb};
use zeroize::{Zeroize, ZeroizeOnDrop, optimization_barrier};

/// A value that is wiped when it goes out of scope, on unwinding too.
///
/// Unlike [`zeroize::Zeroizing`] it is not `Clone`, and its `Debug` prints no value. A copy of a
/// secret is therefore always visible in the code, and a secret is not printed by accident. To take
/// the value out, call [`into_inner`](Self::into_inner).
///
/// Dropping wipes the value at its current place only. Moving a `Secret<[u64; 4]>` leaves its bytes
/// on the stack; moving a `Secret<Vec<u64>>` leaves only a pointer. Therefore keep long-lived
/// secrets in the heap, allocate them at their final size, and do not let a `Vec` grow.
///
/// ```
/// # use batch_modexp_core::facade as batch_modexp;
/// use batch_modexp::secret::Secret;
///
/// let mut key = Secret::new(vec![0u64; 32]);
/// key[0] = 42;
/// assert_eq!(key[0], 42);
/// assert_eq!(format!("{key:?}"), "Secret(..)");
/// drop(key); // the 32 words are zero before the memory is freed
/// ```
///
/// ```compile_fail,E0277
/// # use batch_modexp_core::facade as batch_modexp;
/// # use batch_modexp::secret::Secret;
/// println!("{}", Secret::new(7u64)); // there is no `Display`
/// ```
///
/// ```compile_fail,E0599
/// # use batch_modexp_core::facade as batch_modexp;
/// # use batch_modexp::secret::Secret;
/// struct NoClone;
/// # impl zeroize::Zeroize for NoClone { fn zeroize(&mut self) {} }
/// let _copy = Secret::new(NoClone).clone(); // nor `Clone`
/// ```
pub struct Secret<T: Zeroize>(T);

impl<T: Zeroize> Secret<T> {
    /// Wraps `value`, which is wiped on drop from here on.
    pub fn new(value: T) -> Self {
        Self(value)
    }

    /// Returns the value. The caller is responsible for it from here on; nothing wipes it.
    ///
    /// ```
    /// # use batch_modexp_core::facade as batch_modexp;
    /// use batch_modexp::secret::Secret;
    ///
    /// let signature = Secret::new(vec![1, 2, 3]);
    /// assert_eq!(signature.into_inner(), [1, 2, 3]);
    /// ```
    #[must_use]
    pub fn into_inner(mut self) -> T
    where
        T: Default,
    {
        core::mem::take(&mut self.0)
    }
}

impl<T: Zeroize> fmt::Debug for Secret<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

impl<T: Zeroize> Deref for Secret<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T: Zeroize + AsRef<U>, U: ?Sized> AsRef<U> for Secret<T> {
    fn as_ref(&self) -> &U {
        self.0.as_ref()
    }
}

impl<T: Zeroize> DerefMut for Secret<T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.0
    }
}

impl<T: Zeroize> Drop for Secret<T> {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

impl<T: Zeroize> Zeroize for Secret<T> {
    fn zeroize(&mut self) {
        self.0.zeroize();
    }
}

impl<T: Zeroize> ZeroizeOnDrop for Secret<T> {}

/// Runs `computation`, which has no long numbers on the stack, then overwrites the stack that it
/// used.
///
/// Moved local variables, spilled registers and crypto-bigint's own locals leave copies of powers,
/// products and moduli on the stack. This function overwrites them with one large frame. It is best
/// effort, since the language gives no guarantee about the place of locals. The test `wiping`
/// checks what is left.
#[doc(hidden)]
pub fn scrubbed<R>(computation: impl FnOnce() -> R) -> R {
    scrubbed_for::<16, R>(computation)
}

/// Like [`scrubbed`], for a computation on `Uint<LIMBS>`.
pub(crate) fn scrubbed_for<const LIMBS: usize, R>(computation: impl FnOnce() -> R) -> R {
    /// Overwrites the stack on drop, on unwinding too.
    struct Scrub<const LIMBS: usize>;

    impl<const LIMBS: usize> Drop for Scrub<LIMBS> {
        fn drop(&mut self) {
            overwrite_stack::<LIMBS>();
        }
    }

    let _scrub = Scrub::<LIMBS>;
    call(computation)
}

/// Calls `computation` without inlining, so that its frames lie below the caller's, where
/// [`overwrite_stack`] reaches them.
#[inline(never)]
fn call<R>(computation: impl FnOnce() -> R) -> R {
    computation()
}

#[inline(never)]
fn overwrite_stack<const LIMBS: usize>() {
    /// More than the functions of crypto-bigint and their callers have on the stack.
    const NUMBERS: usize = 96;
    let frame = [[Limb::ZERO; LIMBS]; NUMBERS];
    // One barrier for the whole frame: word by word would take longer than many computations.
    optimization_barrier(&frame);
}

/// Makes a verdict about secrets public: the only way from a secret to a branch.
///
/// The branch is in this function, and its result is a constant on either side. Memcheck looks for
/// branches that depend on secrets, and needs an exception for this function only
/// (`tests/common/valgrind.supp`).
#[inline(never)]
#[must_use]
pub fn reveal(verdict: Choice) -> bool {
    match verdict.to_bool() {
        // Without this the compiler would return the verdict itself.
        true => black_box(true),
        false => black_box(false),
    }
}

/// Makes a length of secret data public, because a result cannot hide its length.
#[must_use]
pub fn reveal_len(len: u16) -> u16 {
    (0..u16::BITS).fold(0, |public, bit| {
        let is_set = reveal(Choice::from_u8_lsb((len >> bit) as u8));
        public | u16::from(is_set) << bit
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::cell::Cell;

    /// Counts how often it is wiped.
    struct Probe<'a>(&'a Cell<u32>);

    impl Zeroize for Probe<'_> {
        fn zeroize(&mut self) {
            self.0.set(self.0.get() + 1);
        }
    }

    #[test]
    fn revealed() {
        assert!(reveal(Choice::TRUE) && !reveal(Choice::FALSE));
        for len in (0..16).map(|bit| 1 << bit).chain([0, 0x1234, u16::MAX]) {
            assert_eq!(reveal_len(len), len);
        }
    }

    #[test]
    fn wiped_on_drop() {
        let wiped = Cell::new(0);
        drop(Secret::new(Probe(&wiped)));
        assert_eq!(wiped.get(), 1);
    }

    #[test]
    fn wiped_on_unwinding() {
        let wiped = Cell::new(0);
        let unwound = std::panic::catch_unwind(core::panic::AssertUnwindSafe(|| {
            let _secret = Secret::new(Probe(&wiped));
            std::panic::resume_unwind(alloc::boxed::Box::new("a panic while a secret is alive"));
        }));
        assert!(unwound.is_err());
        assert_eq!(wiped.get(), 1);
    }

    #[test]
    fn wiped_in_place_keeps_the_buffer() {
        let mut secret = Secret::new([7u64; 4]);
        secret.zeroize();
        assert_eq!(*secret, [0; 4]);
    }
}
