//! Memory for secrets that is wiped as a whole.

use alloc::vec;
use alloc::vec::Vec;
use core::ops::{Deref, DerefMut};

use zeroize::{ZeroizeOnDrop, optimization_barrier};

/// A vector of fixed length, wiped on drop, on unwinding too.
///
/// Memory is filled at once, with the processor's fastest means. A
/// [`Secret`](batch_modexp_core::secret::Secret) of a vector is wiped word by word, which for a
/// table of powers takes as long as several of the multiplications that filled it. The default of
/// `T` must be zero.
pub(super) struct Buffer<T: Copy + Default>(Vec<T>);

impl<T: Copy + Default> Buffer<T> {
    pub(super) fn zeros(len: usize) -> Self {
        Self(vec![T::default(); len])
    }
}

impl<T: Copy + Default> Deref for Buffer<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.0
    }
}

impl<T: Copy + Default> DerefMut for Buffer<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        &mut self.0
    }
}

impl<T: Copy + Default> Drop for Buffer<T> {
    fn drop(&mut self) {
        self.0.fill(T::default());
        optimization_barrier(&self.0[..]);
    }
}

impl<T: Copy + Default> ZeroizeOnDrop for Buffer<T> {}
