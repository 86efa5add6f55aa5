//! Tests of the parent module.

use super::*;
use crate::backend::cuda::DeviceInfo;
use batch_modexp_core::Unavailable;
use crypto_bigint::{Odd, U512, modular::MontyParams};

#[test]
fn the_processor_is_named_when_it_was_asked_for() {
    let auto = Auto::with(Kind::Cpu, NonZeroUsize::new(2)).unwrap();
    assert!(matches!(&auto.chosen, Chosen::Cpu(cpu) if cpu.threads() == 2));
    assert_ne!(auto.name(), "cuda");
    assert_eq!(
        auto.reason(),
        "the fastest on this processor, 2 threads (as asked)"
    );
}

/// Only a call that names GPUs allows them, even on a machine that has one.
#[test]
fn gpus_are_taken_only_when_allowed() {
    assert_eq!(Kind::default(), Kind::Cpu);
    assert!(matches!(Auto::new().unwrap().chosen, Chosen::Cpu(_)));
    let devices = Cuda::probe().unwrap_or_default();
    let allowed = Auto::with_gpus().unwrap();
    assert_eq!(
        matches!(allowed.chosen, Chosen::Both(_)),
        devices.iter().any(DeviceInfo::is_fast)
    );
    if let Err(Unavailable::NoDriver) = Cuda::probe() {
        let says = "no GPU (no NVIDIA driver); the fastest on this processor, ";
        assert!(allowed.reason().starts_with(says), "{}", allowed.reason());
    }
}

/// The host computes exponents that are longer than their modulus. Needs a GPU.
#[test]
fn batches_that_the_host_computes_have_no_break_even() {
    if crate::need::available("cuda", Cuda::probe()).is_some() {
        let auto = Auto::with_cuda(Cuda::new().unwrap());
        assert_eq!(auto.break_even(1024, 1088), None);
        assert_eq!(auto.break_even(0, 0), None);
    }
}

/// Needs a GPU, and injects its loss.
#[test]
fn the_processor_goes_on_when_all_gpus_are_lost() {
    if crate::need::available("cuda", Cuda::probe()).is_none() {
        return;
    }
    let auto = Auto::with(Kind::Cuda, None).unwrap();
    let cuda = auto.chosen.gpus().expect("a GPU was asked for");
    let params = MontyParams::new(Odd::new(U512::MAX).unwrap());
    let (base, exponent) = (U512::from(2u8), U512::from(511u16));
    let batch = [ModExp {
        base: &base,
        exponent: &exponent,
        params: &params,
    }; 3];
    for name in ["cuda", "cpu"] {
        assert_eq!(auto.name() == "cuda", name == "cuda");
        let mut out = [U512::MAX; 3];
        auto.batch_mod_exp(&batch, 9, &mut out).unwrap();
        assert_eq!(out, [U512::ONE << 511; 3]);
        cuda.inject_losses(usize::MAX, "CUDA_ERROR_TEST");
    }
    assert!(auto.reason().starts_with("all GPUs are lost (device "));
    assert!(auto.reason().contains("CUDA_ERROR_TEST"));
}
