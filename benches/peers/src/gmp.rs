//! GMP's modular powers, by the C library of the system.

#![allow(unsafe_code)]

use std::ffi::{CStr, c_char, c_int, c_void};
use std::mem::MaybeUninit;
use std::ptr;

/// A number of GMP.
pub(crate) struct Mpz(RawMpz);

impl Mpz {
    /// Takes a little-endian number.
    pub(crate) fn new(octets: &[u8]) -> Self {
        let mut raw = MaybeUninit::uninit();
        // SAFETY: the function writes the whole structure.
        let mut number = Self(unsafe {
            mpz_init(raw.as_mut_ptr());
            raw.assume_init()
        });
        // SAFETY: the number was made above, and the pointer has that many octets.
        unsafe {
            mpz_import(
                &raw mut number.0,
                octets.len(),
                -1,
                1,
                0,
                0,
                octets.as_ptr().cast(),
            );
        }
        number
    }

    /// The number, of at most `len` octets, as `len` of them, least significant first.
    pub(crate) fn to_le_bytes(&self, len: usize) -> Vec<u8> {
        // SAFETY: reads a live number.
        let used = unsafe { mpz_sizeinbase(&raw const self.0, 2) }.div_ceil(8);
        assert!(used <= len, "a number of more than {len} octets");
        let mut octets = vec![0; len];
        // SAFETY: the vector is long enough for the number, as just checked.
        unsafe {
            mpz_export(
                octets.as_mut_ptr().cast(),
                ptr::null_mut(),
                -1,
                1,
                0,
                0,
                &raw const self.0,
            );
        }
        octets
    }
}

impl Drop for Mpz {
    fn drop(&mut self) {
        // SAFETY: made by `mpz_init` and owned by this value alone.
        unsafe { mpz_clear(&raw mut self.0) }
    }
}

/// Computes products of powers modulo one number.
pub(crate) struct Powers {
    pub(crate) modulus: Mpz,
    /// `mpz_powm` if the exponents are public, otherwise `mpz_powm_sec`.
    pub(crate) are_public: bool,
    pub(crate) power: Mpz,
    pub(crate) product: Mpz,
}

impl Powers {
    /// Sets `product` to the product of all powers. Exponents are above 0, and the modulus is odd.
    pub(crate) fn compute<'a>(&mut self, terms: impl Iterator<Item = (&'a Mpz, &'a Mpz)>) {
        let powm = match self.are_public {
            true => mpz_powm,
            false => mpz_powm_sec,
        };
        for (i, (base, exponent)) in terms.enumerate() {
            let (power, product) = (&raw mut self.power.0, &raw mut self.product.0);
            let modulus = &raw const self.modulus.0;
            // SAFETY: all numbers are live, and only the first of each call is written to.
            unsafe {
                powm(power, &raw const base.0, &raw const exponent.0, modulus);
                if i == 0 {
                    mpz_set(product, power);
                } else {
                    mpz_mul(product, product, power);
                    mpz_tdiv_r(product, product, modulus);
                }
            }
        }
    }
}

/// The version of the library.
pub(crate) fn version() -> String {
    // SAFETY: a constant string with an end.
    let version = unsafe { CStr::from_ptr(GMP_VERSION) };
    version.to_string_lossy().into_owned()
}

/// An `mpz_t`.
#[repr(C)]
struct RawMpz {
    allocated: c_int,
    size: c_int,
    limbs: *mut c_void,
}

#[link(name = "gmp")]
unsafe extern "C" {
    #[link_name = "__gmp_version"]
    static GMP_VERSION: *const c_char;
    #[link_name = "__gmpz_init"]
    fn mpz_init(number: *mut RawMpz);
    #[link_name = "__gmpz_clear"]
    fn mpz_clear(number: *mut RawMpz);
    #[link_name = "__gmpz_import"]
    fn mpz_import(
        out: *mut RawMpz,
        count: usize,
        order: c_int,
        size: usize,
        endian: c_int,
        nails: usize,
        words: *const c_void,
    );
    #[link_name = "__gmpz_export"]
    fn mpz_export(
        out: *mut c_void,
        count: *mut usize,
        order: c_int,
        size: usize,
        endian: c_int,
        nails: usize,
        number: *const RawMpz,
    ) -> *mut c_void;
    #[link_name = "__gmpz_sizeinbase"]
    fn mpz_sizeinbase(number: *const RawMpz, base: c_int) -> usize;
    #[link_name = "__gmpz_set"]
    fn mpz_set(out: *mut RawMpz, number: *const RawMpz);
    #[link_name = "__gmpz_mul"]
    fn mpz_mul(out: *mut RawMpz, a: *const RawMpz, b: *const RawMpz);
    #[link_name = "__gmpz_tdiv_r"]
    fn mpz_tdiv_r(out: *mut RawMpz, number: *const RawMpz, divisor: *const RawMpz);
    #[link_name = "__gmpz_powm"]
    fn mpz_powm(
        out: *mut RawMpz,
        base: *const RawMpz,
        exponent: *const RawMpz,
        modulus: *const RawMpz,
    );
    #[link_name = "__gmpz_powm_sec"]
    fn mpz_powm_sec(
        out: *mut RawMpz,
        base: *const RawMpz,
        exponent: *const RawMpz,
        modulus: *const RawMpz,
    );
}
