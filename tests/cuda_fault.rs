//! A device that fails during use. The fault ends the use of the GPU in this process, so the test
//! has a process for itself.
#![allow(unsafe_code)]

#[path = "common/need.rs"]
mod need;

use batch_modexp::backend::cuda::DeviceFault;
use batch_modexp::backend::{Auto, Cuda};
use batch_modexp::{BatchModExp, BatchModMul as _, Error, ModExp, ModMul};
use crypto_bigint::modular::FixedMontyParams;
use crypto_bigint::{Odd, U512};
use cudarc::driver::{CudaContext, result};

/// A kernel that writes to an invalid address.
const BROKEN_KERNEL: &str = "
.version 7.0
.target sm_70
.address_size 64
.visible .entry broken()
{
    .reg .b64 %rd<2>;
    mov.u64 %rd1, 64;
    st.global.u64 [%rd1], %rd1;
    ret;
}
\0";

/// The error is permanent; the processor, and devices that are not lost, continue without the lost
/// one.
#[test]
fn a_lost_device_is_set_aside() {
    if need::available("cuda", Cuda::probe()).is_none() {
        return;
    }
    let all = Cuda::new().unwrap();
    let ordinal = all.devices().next().unwrap().ordinal();
    let alone = Cuda::with_devices(&[ordinal]).unwrap();
    let auto = Auto::on_devices(&[ordinal], None).unwrap();
    let (base, exponent) = (U512::from(2u8), U512::from(511u16));
    let params = FixedMontyParams::new(Odd::new(U512::MAX).unwrap());
    let batch = [ModExp {
        base: &base,
        exponent: &exponent,
        params: &params,
    }; 3];
    let right = [U512::ONE << 511; 3];
    let compute = |backend: &dyn BatchModExp<U512, Error = Error>| {
        let mut out = [U512::MAX; 3];
        let result = backend.batch_mod_exp(&batch, 9, &mut out);
        (result, out)
    };
    for backend in [&all as &dyn BatchModExp<_, Error = _>, &alone, &auto] {
        assert_eq!(compute(backend), (Ok(()), right));
    }
    assert_eq!(auto.name(), "cuda");

    break_context(ordinal);
    for _ in 0..2 {
        let (result, out) = compute(&alone);
        let error = result.unwrap_err();
        println!("{error}");
        assert!(
            matches!(&error, Error::Cuda { device, fault: DeviceFault::Lost { .. } } if *device == ordinal),
            "{error}"
        );
        assert_eq!(out, [U512::ZERO; 3]);
        // The host computes products.
        let mut products = [U512::MAX; 3];
        let product = ModMul::new(&base, &exponent, &params);
        let result = alone.batch_mod_mul(&[product; 3], &mut products);
        assert_eq!((result, products), (Ok(()), [U512::from(1022u16); 3]));
        let lost: Vec<_> = alone.lost().collect();
        assert_eq!(lost.len(), 1);
        assert_eq!(lost[0].ordinal, ordinal);
        assert!(
            lost[0].error.starts_with("CUDA_ERROR_"),
            "{}",
            lost[0].error
        );

        assert_eq!(compute(&auto), (Ok(()), right));
        assert_ne!(auto.name(), "cuda");
        println!("{}: {}", auto.name(), auto.reason());

        // Some faults disable the other devices of the process too: the driver (580, on two H200s)
        // then returns the same error for all of them. Otherwise the other devices do the work.
        let (result, out) = compute(&all);
        match result {
            Ok(()) => assert_eq!((out, all.lost().count()), (right, 1)),
            Err(error) => {
                let is_lost = |fault: &DeviceFault| matches!(fault, DeviceFault::Lost { .. });
                assert!(matches!(&error, Error::Cuda { fault, .. } if is_lost(fault)));
                assert_eq!(out, [U512::ZERO; 3]);
                assert_eq!(all.lost().count(), all.devices().count());
            }
        }
    }
    // Dropping everything neither panics nor hangs.
    drop((all, alone, auto));
}

fn break_context(ordinal: usize) {
    let context = CudaContext::new(ordinal).unwrap();
    let stream = context.default_stream();
    // SAFETY: the text ends in a zero byte and the kernel has no parameters. The device's memory
    // protection catches its invalid write.
    unsafe {
        let module = result::module::load_data(BROKEN_KERNEL.as_ptr().cast()).unwrap();
        let function = result::module::get_function(module, c"broken".to_owned()).unwrap();
        let one = (1, 1, 1);
        result::launch_kernel(function, one, one, 0, stream.cu_stream(), &mut []).unwrap();
    }
    assert!(
        stream.synchronize().is_err(),
        "the kernel should have failed"
    );
}
