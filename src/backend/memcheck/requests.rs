//! What a program under valgrind tells it: which memory is undefined, and which is so no longer.

use core::slice;

use crypto_bigint::BoxedUint;
use crypto_bigint::modular::MontyParams;

/// Marks a modulus and its constants.
pub(crate) fn set_params_undefined(params: &MontyParams<BoxedUint>, undefined: bool) {
    set_undefined(params.modulus().as_ref().as_limbs(), undefined);
    set_undefined(params.one().as_limbs(), undefined);
    set_undefined(params.r2().as_limbs(), undefined);
    set_undefined(slice::from_ref(params.mod_inv()), undefined);
}

/// Whether this runs under valgrind.
pub(crate) fn is_under_valgrind() -> bool {
    /// `RUNNING_ON_VALGRIND` of valgrind.h.
    const RUNNING_ON_VALGRIND: u64 = 0x1001;
    client_request(&[RUNNING_ON_VALGRIND, 0, 0, 0, 0, 0]) != 0
}

/// Marks memory as undefined, or as defined again, for valgrind; does nothing elsewhere.
pub(crate) fn set_undefined<T>(values: &[T], undefined: bool) {
    /// `VALGRIND_MAKE_MEM_UNDEFINED` of memcheck.h: the letters M and C, and number 1.
    const MAKE_MEM_UNDEFINED: u64 = 0x4d43_0001;
    /// `VALGRIND_MAKE_MEM_DEFINED`.
    const MAKE_MEM_DEFINED: u64 = 0x4d43_0002;
    let request = [
        if undefined {
            MAKE_MEM_UNDEFINED
        } else {
            MAKE_MEM_DEFINED
        },
        values.as_ptr() as u64,
        size_of_val(values) as u64,
        0,
        0,
        0,
    ];
    client_request(&request);
}

/// A client request as valgrind.h encodes it for amd64: four rotations by 128 bits in all, which change
/// nothing, and an exchange of `rbx` with itself.
#[allow(unsafe_code)]
fn client_request(request: &[u64; 6]) -> u64 {
    let answer;
    // SAFETY: outside of valgrind nothing changes; valgrind reads the request, writes its answer to
    // `rdx`, and changes what it believes about the memory, not the memory.
    unsafe {
        core::arch::asm!(
            "rol rdi, 3",
            "rol rdi, 13",
            "rol rdi, 61",
            "rol rdi, 51",
            "xchg rbx, rbx",
            inout("rdx") 0u64 => answer,
            in("rax") request.as_ptr(),
            inout("rdi") 0u64 => _,
        );
    }
    answer
}
