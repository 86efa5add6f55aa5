//! Status codes, the message of the last error, the barrier that stops panics, and memory that C names.

use std::cell::RefCell;
use std::ffi::{CString, c_char};
use std::fmt::Display;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::{ptr, slice};

pub(crate) const OK: i32 = 0;
pub(crate) const ARGUMENT: i32 = 1;
pub(crate) const KEY: i32 = 2;
pub(crate) const OPERATION: i32 = 3;
pub(crate) const INTERNAL: i32 = 4;
pub(crate) const SIGNATURE: i32 = 5;

/// A status code with its message.
pub(crate) struct Failure(i32, String);

thread_local! {
    static LAST: RefCell<CString> = RefCell::default();
}

/// The failure of a call whose arguments are wrong.
pub(crate) fn argument(text: impl Display) -> Failure {
    Failure(ARGUMENT, text.to_string())
}

/// The failure of a call that gets no valid key.
pub(crate) fn bad_key(text: impl Display) -> Failure {
    Failure(KEY, text.to_string())
}

/// The failure of a call that could not be carried out.
pub(crate) fn failed(text: impl Display) -> Failure {
    Failure(OPERATION, text.to_string())
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

/// The elements at `data`; none if `len` is 0.
///
/// # Safety
///
/// `data` is NULL or points to `len` readable elements, which stay unchanged during `'a`.
pub(crate) unsafe fn elements<'a, T>(data: *const T, len: usize) -> Result<&'a [T], Failure> {
    check::<T>(data, len)?;
    match len {
        0 => Ok(&[]),
        // SAFETY: not NULL, and the caller vouches for the length.
        _ => Ok(unsafe { slice::from_raw_parts(data, len) }),
    }
}

/// The elements at `data`, to be changed; none if `len` is 0.
///
/// # Safety
///
/// `data` is NULL or points to `len` elements that nobody else uses during `'a`.
pub(crate) unsafe fn elements_mut<'a, T>(data: *mut T, len: usize) -> Result<&'a mut [T], Failure> {
    check::<T>(data, len)?;
    match len {
        0 => Ok(&mut []),
        // SAFETY: not NULL, and the caller vouches for the length.
        _ => Ok(unsafe { slice::from_raw_parts_mut(data, len) }),
    }
}

fn check<T>(data: *const T, len: usize) -> Result<(), Failure> {
    match len {
        0 => Ok(()),
        _ if data.is_null() => Err(argument("a pointer to data is NULL")),
        _ if len > isize::MAX as usize / size_of::<T>() => Err(argument("a length is too large")),
        _ if !data.is_aligned() => Err(argument("a pointer is not aligned")),
        _ => Ok(()),
    }
}

/// What an opaque pointer of the header points to.
///
/// # Safety
///
/// `object` is NULL or comes from [`make`], and nobody frees it during `'a`.
pub(crate) unsafe fn object<'a, T>(object: *const T) -> Result<&'a T, Failure> {
    // SAFETY: the caller vouches for it.
    unsafe { object.as_ref() }.ok_or_else(|| argument("an engine or a key is NULL"))
}

/// Makes an object for C at `out`, or NULL after a failure.
///
/// # Safety
///
/// `out` is NULL or a place for a pointer.
pub(crate) unsafe fn make<T>(out: *mut *mut T, object: impl FnOnce() -> Result<T, Failure>) -> i32 {
    guard(|| {
        if out.is_null() {
            return Err(argument("out is NULL"));
        }
        // SAFETY: not NULL, and the caller vouches for the place.
        unsafe { out.write(ptr::null_mut()) };
        let object = Box::into_raw(Box::new(object()?));
        // SAFETY: as above.
        unsafe { out.write(object) };
        Ok(())
    })
}

/// Frees an object.
///
/// # Safety
///
/// `object` is NULL or comes from [`make`], and nobody uses it any more.
pub(crate) unsafe fn free<T>(object: *mut T) {
    guard(|| {
        if !object.is_null() {
            // SAFETY: made by `make`, and the caller frees it once.
            drop(unsafe { Box::from_raw(object) });
        }
        Ok(())
    });
}

#[unsafe(no_mangle)]
extern "C" fn bme_last_error() -> *const c_char {
    LAST.with(|last| last.borrow().as_ptr())
}
