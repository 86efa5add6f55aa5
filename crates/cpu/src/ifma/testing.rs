//! The backend on units other than those that this processor would select.

pub(super) mod portable;

use alloc::boxed::Box;

use super::{avx_ifma, eight, four};
use crate::adx;
use crate::adx::Words;
use crate::lanes::{SimdEngine, backend};

/// [`Ifma`](super::Ifma) on other units.
pub(crate) struct OnUnits(Box<dyn SimdEngine + Send>);

impl OnUnits {
    fn simd(&self) -> &dyn SimdEngine {
        &*self.0
    }
}

backend!(pub(crate) OnUnits);

/// Eight lanes without AVX-512.
pub(crate) fn eight_on_portable_unit() -> OnUnits {
    OnUnits(Box::new(eight(portable::EIGHT)))
}

/// Eight lanes with fewer multiply-adds, as on a Zen 4.
pub(crate) fn eight_saving_on_portable_unit() -> OnUnits {
    OnUnits(Box::new(eight(portable::EIGHT_SAVING)))
}

/// Four lanes without AVX-IFMA.
pub(crate) fn four_on_portable_unit() -> OnUnits {
    OnUnits(Box::new(four(portable::FOUR, None)))
}

/// Four lanes in the encoding of AVX-512, if this processor has it.
pub(crate) fn four_by_evex() -> Option<OnUnits> {
    let words = adx::Token::detect().map(Words);
    let token = avx_ifma::Token::<true>::detect()?;
    Some(OnUnits(Box::new(four(token, words))))
}
