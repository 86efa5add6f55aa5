//! A device that fails under the backend. What happens here ends the use of the GPU in this process, so
//! that it has a process of its own.
#![cfg(feature = "cuda")]
#![allow(unsafe_code)]

#[path = "common/need.rs"]
mod need;

use batch_modexp::backend::Cuda;
use batch_modexp::backend::cuda::DeviceFault;
use batch_modexp::{BatchModExp, Error, ModExp};
use crypto_bigint::modular::FixedMontyParams;
use crypto_bigint::{Odd, U512};
use cudarc::driver::{CudaContext, result};

/// Writes to an address that does not exist.
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

#[test]
fn a_lost_device_is_an_error_that_stays() {
    if need::available("cuda", Cuda::probe()).is_none() {
        return;
    }
    let cuda = Cuda::new().unwrap();
    let ordinal = cuda.devices().next().unwrap().ordinal();
    let params = FixedMontyParams::new(Odd::new(U512::MAX).unwrap());
    let batch = [ModExp {
        base: &U512::ONE,
        exponent: &U512::ONE,
        params: &params,
    }; 3];
    let mut out = [U512::ZERO; 3];
    cuda.batch_mod_exp(&batch, 9, &mut out).unwrap();
    assert_eq!(out, [U512::ONE; 3]);

    break_context(ordinal);
    for _ in 0..2 {
        let mut out = [U512::MAX; 3];
        let error = cuda.batch_mod_exp(&batch, 9, &mut out).unwrap_err();
        println!("{error}");
        assert!(
            matches!(&error, Error::Cuda { device, fault: DeviceFault::Lost { .. } } if *device == ordinal),
            "{error}"
        );
        assert_eq!(out, [U512::ZERO; 3]);
    }
    // And nothing panics or hangs when all is given back.
    drop(cuda);
}

fn break_context(ordinal: usize) {
    let context = CudaContext::new(ordinal).unwrap();
    let stream = context.default_stream();
    // SAFETY: the text ends in a zero byte, the kernel has no parameters, and what it does wrong the
    // device's memory protection catches.
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
