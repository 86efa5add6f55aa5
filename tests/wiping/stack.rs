//! The stack of a thread that has signed and ended holds no secret.
//!
//! The thread runs on memory that the test owns, which remains after the thread has ended.

use core::ffi::c_void;
use core::ptr;

use batch_modexp::backend::Serial;
use batch_modexp::rsa::backend::RsaBackend;
use batch_modexp::secret::scrubbed;
use batch_modexp::{
    BatchFixedBaseExp, BatchFixedBaseExpVartime, BatchModExp, BatchModMul, BatchMultiExp, Error,
    MultiExpVartime,
};
use crypto_bigint::U1024;

use super::freed::{Watch, contains};
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
use super::need;
use super::needles::{Needle, case, cases, fixed_case, product_case};
use super::simd::each_simd_backend;

const STACK_SIZE: usize = 4 << 20;

/// Runs `action` on a new thread, and returns a copy of its stack afterwards.
pub fn stack_after(action: Box<dyn FnOnce() + Send>) -> Vec<u8> {
    extern "C" fn run(action: *mut c_void) -> *mut c_void {
        // SAFETY: the pointer comes from `Box::into_raw` below and is taken once.
        let action = unsafe { Box::from_raw(action.cast::<Box<dyn FnOnce() + Send>>()) };
        action();
        ptr::null_mut()
    }

    let argument = Box::into_raw(Box::new(action));
    // SAFETY: the mapping is new and private. It is unmapped after the thread has been joined and
    // the copy has been made. The attributes live across `pthread_create`. No panic crosses `run`:
    // it would abort, and fail the test.
    unsafe {
        let (prot, flags) = (
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
        );
        let stack = libc::mmap(ptr::null_mut(), STACK_SIZE, prot, flags, -1, 0);
        assert_ne!(stack, libc::MAP_FAILED);
        let mut attributes = core::mem::zeroed();
        assert_eq!(libc::pthread_attr_init(&mut attributes), 0);
        assert_eq!(
            libc::pthread_attr_setstack(&mut attributes, stack, STACK_SIZE),
            0
        );
        let mut thread = core::mem::zeroed();
        assert_eq!(
            libc::pthread_create(&mut thread, &attributes, run, argument.cast()),
            0
        );
        assert_eq!(libc::pthread_join(thread, ptr::null_mut()), 0);
        libc::pthread_attr_destroy(&mut attributes);
        let copy = core::slice::from_raw_parts(stack.cast::<u8>(), STACK_SIZE).to_vec();
        libc::munmap(stack, STACK_SIZE);
        copy
    }
}

/// A control: values that crypto-bigint leaves on the stack are found.
#[test]
fn the_probe_finds_what_is_not_wiped() {
    let _watch = Watch::begin();
    let case = case(true, false);
    let needles = case.needles.clone();
    let stack = stack_after(Box::new(move || {
        use crypto_bigint::modular::{FixedMontyForm, FixedMontyParams};
        use crypto_bigint::{Odd, U1024};
        use rsa::traits::PrivateKeyParts;
        let fixed = |x: &crypto_bigint::BoxedUint| U1024::from_be_slice(&x.to_be_bytes());
        let p = fixed(case.key.primes()[0].as_ref());
        let params = FixedMontyParams::new(Odd::new(p).unwrap());
        let dp = fixed(case.key.dp().unwrap());
        core::hint::black_box(FixedMontyForm::new(&U1024::from(3u8), &params).pow(&dp));
    }));
    let found: Vec<_> = needles
        .iter()
        .filter(|needle| contains(&stack, &needle.bytes))
        .collect();
    assert!(found.iter().any(|needle| needle.name == "p"));
}

/// A panic leaves nothing of a scrubbed computation, and something of any other.
#[test]
fn panic() {
    const NEEDLE: [u8; 16] = *b"16 secret octets";
    let stack_of = |is_scrubbed: bool| {
        let computation = || {
            let copies = core::hint::black_box([NEEDLE; 256]);
            core::hint::black_box(&copies);
            std::panic::resume_unwind(Box::new("while secrets are on the stack"));
        };
        stack_after(Box::new(move || {
            let unwound = std::panic::catch_unwind(|| match is_scrubbed {
                true => scrubbed(computation),
                false => computation(),
            });
            assert!(unwound.is_err());
        }))
    };
    assert!(contains(&stack_of(false), &NEEDLE));
    assert!(!contains(&stack_of(true), &NEEDLE));
}

/// Signs with `backend` on a new thread, with and without CRT and blinding. Computes powers and
/// products of `Uint`s. Then searches for what is left.
fn leaves_nothing<B>(backend: B)
where
    B: RsaBackend
        + BatchModExp<U1024, Error = Error>
        + BatchModMul<U1024, Error = Error>
        + BatchFixedBaseExp
        + BatchFixedBaseExpVartime
        + BatchMultiExp
        + MultiExpVartime
        + Copy
        + Send
        + 'static,
{
    let _watch = Watch::begin();
    let case: &_ = Box::leak(Box::new(fixed_case()));
    let stack = stack_after(Box::new(move || case.compute(&backend)));
    assert!(case.is_right());
    let left = left_on(&stack, &case.needles);
    assert!(left.is_empty(), "left on the stack: {left:?}");
    let case: &_ = Box::leak(Box::new(fixed_case()));
    let stack = stack_after(Box::new(move || case.compute_by_table(&backend)));
    assert!(case.is_right());
    let left = left_on(&stack, &case.needles);
    assert!(left.is_empty(), "left on the stack: {left:?}");
    let case: &_ = Box::leak(Box::new(fixed_case()));
    let stack = stack_after(Box::new(move || case.compute_products(&backend)));
    assert!(case.is_right());
    let left = left_on(&stack, &case.needles_of_products());
    assert!(left.is_empty(), "left on the stack: {left:?}");
    let case: &_ = Box::leak(Box::new(product_case()));
    let stack = stack_after(Box::new(move || case.compute(&backend)));
    assert!(case.is_right());
    let left = left_on(&stack, &case.needles);
    assert!(left.is_empty(), "left on the stack: {left:?}");

    for case in cases() {
        let needles = case.needles.clone();
        // Dropping the key of the rsa crate would wipe its values; it stays alive until the thread
        // has ended.
        let case: &_ = Box::leak(Box::new(case));
        let stack = stack_after(Box::new(move || case.sign(case.handle(), backend)));
        let left = left_on(&stack, &needles);
        assert!(
            left.is_empty(),
            "left on the stack: {left:?}, blinded: {}",
            case.blinded
        );
    }
}

pub fn left_on(stack: &[u8], needles: &[Needle]) -> Vec<&'static str> {
    let left = needles
        .iter()
        .filter(|needle| contains(stack, &needle.bytes));
    left.map(|needle| needle.name).collect()
}

#[test]
fn signing_serially() {
    leaves_nothing(Serial);
}

#[test]
fn signing_in_lanes() {
    macro_rules! simd_backend {
        ($name:ident: $Backend:ident) => {
            let backend = batch_modexp::backend::$Backend::new();
            let backend = backend.ok_or("the processor lacks the instructions");
            if let Some(backend) = need::available(stringify!($name), backend) {
                leaves_nothing(backend);
            }
        };
    }
    each_simd_backend!(simd_backend);
}
