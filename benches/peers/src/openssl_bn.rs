//! OpenSSL's constant-time modular exponentiation, which the crate `openssl` does not wrap.
//!
//! With prepared Montgomery constants, as OpenSSL's RSA calls it.

#![allow(unsafe_code)]

use std::ffi::c_int;

use foreign_types::ForeignType;
use openssl::bn::{BigNum, BigNumContext};
use openssl_sys::{BIGNUM, BN_CTX};

/// One instance: `base ^ exponent mod modulus`.
pub(crate) struct BnInstance {
    base: BigNum,
    exponent: BigNum,
    modulus: BigNum,
    mont: MontCtx,
}

impl BnInstance {
    /// Takes three big-endian numbers. The modulus must be odd, and the base below it.
    pub(crate) fn new(base: &[u8], exponent: &[u8], modulus: &[u8]) -> Self {
        let number = |bytes| BigNum::from_slice(bytes).expect("a number");
        let modulus = number(modulus);
        let mut exponent = number(exponent);
        exponent.set_const_time();
        Self {
            base: number(base),
            exponent,
            mont: MontCtx::new(&modulus),
            modulus,
        }
    }
}

/// `BN_mod_exp_mont_consttime`.
pub(crate) fn mod_exp(out: &mut BigNum, x: &BnInstance, context: &mut BigNumContext) {
    // SAFETY: all pointers come from live values of the types that the function expects, only
    // `out`, which is borrowed mutably, is written to, and the constants belong to the modulus.
    let ok = unsafe {
        BN_mod_exp_mont_consttime(
            out.as_ptr(),
            x.base.as_ptr(),
            x.exponent.as_ptr(),
            x.modulus.as_ptr(),
            context.as_ptr(),
            x.mont.0,
        )
    };
    assert_eq!(ok, 1, "OpenSSL failed");
}

/// `BN_mod_exp_mont_consttime_x2`: two instances in one call, side by side where the processor has
/// AVX-512 IFMA and the width is 1024, 1536 or 2048 bits.
pub(crate) fn mod_exp_x2(out: &mut [BigNum; 2], x: [&BnInstance; 2], context: &mut BigNumContext) {
    // SAFETY: as for `mod_exp`; the two outputs are distinct.
    let ok = unsafe {
        BN_mod_exp_mont_consttime_x2(
            out[0].as_ptr(),
            x[0].base.as_ptr(),
            x[0].exponent.as_ptr(),
            x[0].modulus.as_ptr(),
            x[0].mont.0,
            out[1].as_ptr(),
            x[1].base.as_ptr(),
            x[1].exponent.as_ptr(),
            x[1].modulus.as_ptr(),
            x[1].mont.0,
            context.as_ptr(),
        )
    };
    assert_eq!(ok, 1, "OpenSSL failed");
}

/// The Montgomery constants of a modulus.
struct MontCtx(*mut BnMontCtx);

impl MontCtx {
    fn new(modulus: &BigNum) -> Self {
        let context = BigNumContext::new().expect("a context");
        // SAFETY: allocates, and takes nothing.
        let mont = Self(unsafe { BN_MONT_CTX_new() });
        assert!(!mont.0.is_null(), "out of memory");
        // SAFETY: the first pointer was just allocated, the others come from live values.
        let ok = unsafe { BN_MONT_CTX_set(mont.0, modulus.as_ptr(), context.as_ptr()) };
        assert_eq!(ok, 1, "OpenSSL failed");
        mont
    }
}

impl Drop for MontCtx {
    fn drop(&mut self) {
        // SAFETY: allocated by `BN_MONT_CTX_new` and owned by this value alone.
        unsafe { BN_MONT_CTX_free(self.0) }
    }
}

/// An opaque `BN_MONT_CTX`.
#[repr(C)]
struct BnMontCtx {
    _opaque: [u8; 0],
}

unsafe extern "C" {
    fn BN_MONT_CTX_new() -> *mut BnMontCtx;
    fn BN_MONT_CTX_free(mont: *mut BnMontCtx);
    fn BN_MONT_CTX_set(mont: *mut BnMontCtx, modulus: *const BIGNUM, ctx: *mut BN_CTX) -> c_int;
    fn BN_mod_exp_mont_consttime(
        rr: *mut BIGNUM,
        a: *const BIGNUM,
        p: *const BIGNUM,
        m: *const BIGNUM,
        ctx: *mut BN_CTX,
        in_mont: *mut BnMontCtx,
    ) -> c_int;
    fn BN_mod_exp_mont_consttime_x2(
        rr1: *mut BIGNUM,
        a1: *const BIGNUM,
        p1: *const BIGNUM,
        m1: *const BIGNUM,
        in_mont1: *mut BnMontCtx,
        rr2: *mut BIGNUM,
        a2: *const BIGNUM,
        p2: *const BIGNUM,
        m2: *const BIGNUM,
        in_mont2: *mut BnMontCtx,
        ctx: *mut BN_CTX,
    ) -> c_int;
}
