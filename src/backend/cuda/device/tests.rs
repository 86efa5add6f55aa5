//! Tests of the parent module; what needs a GPU says so where there is none.

use super::*;
use crate::ModExp;
use crate::backend::{Cuda, Parallel, Serial};
use crypto_bigint::modular::FixedMontyParams;
use crypto_bigint::{NonZero, Odd, U1024};

/// The first device, or a word about why there is none.
fn device() -> Option<Device> {
    let found = crate::need::available("cuda", Cuda::probe());
    found.map(|found| Device::open(&found[0]).unwrap())
}

/// A batch of several chunks of random-looking secrets, run by `run`; then all buffers must be zero.
fn buffers_are_wiped_after(
    run: impl Fn(&Device, &ThreadPool, &Group<'_, U1024>, &mut [&mut U1024]),
) {
    let Some(device) = device() else { return };
    let params = FixedMontyParams::new(Odd::new(U1024::MAX).unwrap());
    let secret = U1024::MAX.wrapping_div(&NonZero::new(U1024::from(7u8)).unwrap());
    let instance = ModExp {
        base: &secret,
        exponent: &secret,
        params: &params,
    };
    let batch = alloc::vec![instance; 40_000];
    let mut out = alloc::vec![U1024::ZERO; batch.len()];
    let group = &Group::by_width(&batch, 32, Cuda::MAX_BITS)[0];
    let host = Parallel::new(Serial).unwrap();
    let places = &mut places(&mut out, &group.members);
    run(&device, host.pool().unwrap(), group, places);
    assert!(lock(&device.slots).iter().all(Slot::is_wiped));
}

#[test]
fn buffers_are_wiped_after_a_call() {
    buffers_are_wiped_after(|device, pool, group, out| {
        let timing = device
            .run(pool, group, 0..group.len(), Tuning::default(), out)
            .unwrap();
        assert!(timing.launches > 1);
        assert!(out.iter().all(|result| **result != U1024::ZERO));
    });
}

/// A panic while one chunk is on the device and the next is being filled.
#[test]
fn buffers_are_wiped_after_a_panic() {
    buffers_are_wiped_after(|device, pool, group, _| {
        let plan = device.plan(group, group.len(), Tuning::default());
        let kernel = device.kernel(plan.entry).unwrap();
        let panicking = || {
            let mut slots = InUse(lock(&device.slots));
            submit(&mut slots.0[0], pool, &kernel, group, &(0..5000), plan).unwrap();
            let sizes = Sizes {
                input: 5000,
                ..Sizes::default()
            };
            let panicking = |words: &mut [u64]| {
                words.fill(7);
                std::panic::resume_unwind(alloc::boxed::Box::new("a panic on the way"));
            };
            let _ = slots.0[1].submit(sizes, panicking, |_, _| Ok(()));
        };
        let unwound = std::panic::catch_unwind(core::panic::AssertUnwindSafe(panicking));
        assert!(unwound.is_err());
    });
}

#[test]
fn shares_are_in_proportion_and_leave_nothing_out() {
    assert_eq!(shares(100, &[1.0], 64), [(0, 0..100)]);
    assert_eq!(shares(1000, &[3.0, 1.0], 8), [(0, 0..752), (1, 752..1000)]);
    assert_eq!(shares(10, &[1.0, 1.0, 1.0], 64), [(0, 0..10)]);
    for len in 1..300 {
        let shares = shares(len, &[1.0, 2.5, 0.3], 16);
        assert_eq!(shares[0].1.start, 0);
        assert_eq!(shares[shares.len() - 1].1.end, len);
        assert!(
            shares
                .windows(2)
                .all(|pair| pair[0].1.end == pair[1].1.start)
        );
    }
}

#[test]
fn places_of_members() {
    let mut out = [10, 11, 12, 13];
    for place in places(&mut out, &[0, 2]) {
        *place += 100;
    }
    assert_eq!(out, [110, 11, 112, 13]);
}
