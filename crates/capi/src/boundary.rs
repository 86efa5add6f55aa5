//! Status codes, the message of the last error, the barrier that stops panics, and access to memory
//! from C.

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
pub(crate) const DECRYPTION: i32 = 6;
pub(crate) const FULL: i32 = 7;
pub(crate) const CLOSED: i32 = 8;
pub(crate) const CANCELLED: i32 = 9;
pub(crate) const LATE: i32 = 10;
pub(crate) const FORKED: i32 = 11;

/// A status code with its message.
pub(crate) struct Failure(i32, String);

thread_local! {
    static LAST: RefCell<CString> = RefCell::default();
}

impl Failure {
    pub(crate) fn new(status: i32, text: impl Display) -> Self {
        Self(status, text.to_string())
    }

    /// Keeps the message for `bme_last_error`; returns the status.
    pub(crate) fn keep(self) -> i32 {
        LAST.with(|last| *last.borrow_mut() = CString::new(self.1).unwrap_or_default());
        self.0
    }
}

/// The failure of a call whose arguments are wrong.
pub(crate) fn argument(text: impl Display) -> Failure {
    Failure::new(ARGUMENT, text)
}

/// The failure of a call that gets no valid key.
pub(crate) fn bad_key(text: impl Display) -> Failure {
    Failure::new(KEY, text)
}

/// The failure of a call that could not be carried out.
pub(crate) fn failed(text: impl Display) -> Failure {
    Failure::new(OPERATION, text)
}

/// Runs the body of a function; keeps the message of its failure or panic for `bme_last_error`.
pub(crate) fn guard(body: impl FnOnce() -> Result<(), Failure>) -> i32 {
    let result = catch_unwind(AssertUnwindSafe(body));
    match result {
        Ok(Ok(())) => OK,
        Ok(Err(failure)) => failure.keep(),
        Err(_) => Failure::new(INTERNAL, "internal error").keep(),
    }
}

/// The elements at `data`; none if `len` is 0.
///
/// # Safety
///
/// `data` is NULL or points to `len` readable elements, which stay unchanged during `'a`.
pub(crate) unsafe fn elements<'a, T>(data: *const T, len: usize) -> Result<&'a [T], Failure> {
    check(data, len)?;
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
/// `data` is NULL or points to `len` elements without other users during `'a`.
pub(crate) unsafe fn elements_mut<'a, T>(data: *mut T, len: usize) -> Result<&'a mut [T], Failure> {
    check(data, len)?;
    match len {
        0 => Ok(&mut []),
        // SAFETY: not NULL, and the caller vouches for the length.
        _ => Ok(unsafe { slice::from_raw_parts_mut(data, len) }),
    }
}

/// The items of a batch; `size` is the item size in the program's header.
///
/// # Safety
///
/// That of [`elements_mut`], if `size` is that of `T`.
pub(crate) unsafe fn batch<'a, T>(
    data: *mut T,
    count: usize,
    size: usize,
) -> Result<&'a mut [T], Failure> {
    check_size::<T>(size)?;
    // SAFETY: the caller vouches for it.
    unsafe { elements_mut(data, count) }
}

/// A struct of parameters that begins with its size.
///
/// # Safety
///
/// `data` is NULL or points to a size, and, if that is the size of `T`, to a `T` that stays
/// unchanged during `'a`.
pub(crate) unsafe fn parameters<'a, T>(data: *const T) -> Result<&'a T, Failure> {
    check(data, 1)?;
    // SAFETY: the caller vouches for the size at the beginning.
    check_size::<T>(unsafe { data.cast::<usize>().read() })?;
    // SAFETY: not NULL, aligned, and the caller vouches for the struct of this size.
    Ok(unsafe { &*data })
}

/// Checks the size of a struct of the header. Structs may grow; their size tells versions apart.
/// There is one version so far.
fn check_size<T>(size: usize) -> Result<(), Failure> {
    match size == size_of::<T>() {
        true => Ok(()),
        false => Err(argument(
            "the size of a struct is not that of the header of this library",
        )),
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

/// Octets for output. They may overlap the input: they are written after all input is read.
pub(crate) struct Place {
    start: *mut u8,
    len: usize,
}

impl Place {
    /// # Safety
    ///
    /// `start` is NULL or points to `len` octets that may be written during the life of the
    /// `Place`.
    pub(crate) unsafe fn new(start: *mut u8, len: usize) -> Result<Self, Failure> {
        check(start, len)?;
        Ok(Self { start, len })
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Writes the octets at `offset`.
    ///
    /// # Panics
    ///
    /// If they do not fit.
    pub(crate) fn write(&mut self, offset: usize, octets: &[u8]) {
        assert!(offset <= self.len && octets.len() <= self.len - offset);
        if octets.is_empty() {
            return;
        }
        // SAFETY: in range, and the caller of `new` vouches for the range.
        unsafe { ptr::copy(octets.as_ptr(), self.start.add(offset), octets.len()) }
    }
}

/// The object behind an opaque pointer of the header.
///
/// # Safety
///
/// `object` is NULL or comes from [`make`], and is not freed during `'a`.
pub(crate) unsafe fn object<'a, T>(object: *const T) -> Result<&'a T, Failure> {
    // SAFETY: the caller vouches for it.
    unsafe { object.as_ref() }.ok_or_else(|| argument("an engine, a key or a queue is NULL"))
}

/// Makes an object for C at `out`; writes NULL on failure.
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
/// `object` is NULL or comes from [`make`], and has no users left.
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

#[cfg(test)]
mod tests {
    use std::ffi::CStr;

    use super::*;

    fn last_error() -> String {
        // SAFETY: a string of this thread, which no other error replaces meanwhile.
        let text = unsafe { CStr::from_ptr(bme_last_error()) };
        text.to_str().unwrap().into()
    }

    #[test]
    fn no_panic_leaves() {
        assert_eq!(guard(|| Err(argument("as asked"))), ARGUMENT);
        assert_eq!(last_error(), "as asked");
        assert_eq!(guard(|| panic!("as asked, too")), INTERNAL);
        assert_eq!(last_error(), "internal error");
        let mut object = ptr::dangling_mut::<u8>();
        // SAFETY: a place for a pointer.
        let status = unsafe { make(&mut object, || panic!("as asked, too")) };
        assert!(status == INTERNAL && object.is_null());
    }

    #[test]
    #[should_panic(expected = "offset")]
    fn places_are_not_left() {
        let mut octets = [0; 4];
        // SAFETY: four octets without other users.
        let place = unsafe { Place::new(octets.as_mut_ptr(), octets.len()) };
        place.ok().unwrap().write(2, &[1; 3]);
    }
}
