//! Buffers for secrets: wiped on drop, on unwinding too, and impossible to print.

use core::ops::{Deref, DerefMut};

use zeroize::{Zeroize, ZeroizeOnDrop};

/// A value that is wiped when it goes out of scope, whichever way it goes.
///
/// Unlike [`zeroize::Zeroizing`] it implements neither `Debug` nor `Clone`: a secret is not printed
/// by accident, and a copy of one is always visible in the code.
///
/// What is wiped is the value where it lies when it is dropped. Moving a `Secret<[u64; 4]>` leaves
/// its bytes behind on the stack, moving a `Secret<Vec<u64>>` leaves only a pointer; therefore keep
/// long-lived secrets in the heap, allocate them at their final size and do not let a `Vec` grow.
///
/// ```
/// use batch_modexp::secret::Secret;
///
/// let mut key = Secret::new(vec![0u64; 32]);
/// key[0] = 42;
/// assert_eq!(key[0], 42);
/// drop(key); // the 32 words are zero before the memory is freed
/// ```
///
/// ```compile_fail
/// # use batch_modexp::secret::Secret;
/// println!("{:?}", Secret::new(7u64)); // there is no `Debug`
/// ```
#[allow(missing_debug_implementations)]
pub struct Secret<T: Zeroize>(T);

impl<T: Zeroize> Secret<T> {
    /// Takes charge of `value`.
    pub fn new(value: T) -> Self {
        Self(value)
    }
}

impl<T: Zeroize> Deref for Secret<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
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

/// Makes a verdict about secrets public: the one way from a secret to a branch.
#[cfg(feature = "rsa")]
pub(crate) fn reveal(verdict: crypto_bigint::Choice) -> bool {
    // Memcheck (`backend::memcheck`) looks for branches that depend on secrets; this is one by intention.
    #[cfg(all(test, feature = "std", target_arch = "x86_64"))]
    let verdict = crate::backend::memcheck::declassified(verdict);
    verdict.to_bool()
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
    fn wiped_on_drop() {
        let wiped = Cell::new(0);
        drop(Secret::new(Probe(&wiped)));
        assert_eq!(wiped.get(), 1);
    }

    #[test]
    #[cfg(feature = "std")]
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
