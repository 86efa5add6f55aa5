//! Status codes, the message of the last error, and the barrier that stops panics.

use std::cell::RefCell;
use std::ffi::{CString, c_char};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::slice;

pub(crate) const OK: i32 = 0;
pub(crate) const ARGUMENT: i32 = 1;
pub(crate) const KEY: i32 = 2;
pub(crate) const OPERATION: i32 = 3;
pub(crate) const INTERNAL: i32 = 4;

/// A status code with its message.
pub(crate) struct Failure(pub(crate) i32, pub(crate) String);

thread_local! {
    static LAST: RefCell<CString> = RefCell::default();
}

/// The failure of a call whose arguments are wrong.
pub(crate) fn argument(text: &str) -> Failure {
    Failure(ARGUMENT, text.into())
}

/// Runs the body of a function; keeps the message of its failure or panic for `bme_last_error`.
pub(crate) fn guard(body: impl FnOnce() -> Result<(), Failure>) -> i32 {
    let result = catch_unwind(AssertUnwindSafe(body));
    let Failure(status, text) = match result {
        Ok(Ok(())) => return OK,
        Ok(Err(failure)) => failure,
        Err(_) => Failure(INTERNAL, "internal error".into()),
    };
    LAST.with(|last| *last.borrow_mut() = CString::new(text).unwrap_or_default());
    status
}

/// The octets at `data`; none if `len` is 0.
///
/// # Safety
///
/// `data` is NULL or points to `len` readable octets, which stay unchanged during `'a`.
pub(crate) unsafe fn octets<'a>(data: *const u8, len: usize) -> Result<&'a [u8], Failure> {
    match len {
        0 => Ok(&[]),
        _ if data.is_null() => Err(argument("octets are NULL")),
        _ if len > isize::MAX as usize => Err(argument("length is too large")),
        // SAFETY: not NULL, and the caller vouches for the length.
        _ => Ok(unsafe { slice::from_raw_parts(data, len) }),
    }
}

#[unsafe(no_mangle)]
extern "C" fn bme_last_error() -> *const c_char {
    LAST.with(|last| last.borrow().as_ptr())
}
