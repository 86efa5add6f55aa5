//! Exhausted device memory.

use std::sync::{PoisonError, RwLockWriteGuard};

use batch_modexp::backend::cuda::DeviceFault;
use batch_modexp::backend::{Cuda, Parallel, Serial};
use batch_modexp::rsa::{BatchSigner, KeyHandle, Pkcs1v15, sha2::Sha256};
use batch_modexp::{BatchModExp, Error};
use chacha20::ChaCha20Rng;
use chacha20::rand_core::SeedableRng;
use crypto_bigint::BoxedUint;
use cudarc::driver::{CudaContext, CudaSlice};

use super::{Batch, MEMORY, assert_same, gpu};

/// The number of a GPU and the lock for all of its memory; `None` if there is no GPU, with a
/// message.
fn device_alone() -> Option<(usize, RwLockWriteGuard<'static, ()>)> {
    let (memory, cuda) = gpu()?;
    let ordinal = cuda.devices().next().unwrap().ordinal();
    drop((cuda, memory));
    let all_memory = MEMORY.write().unwrap_or_else(PoisonError::into_inner);
    Some((ordinal, all_memory))
}

/// If all device memory is taken, the call fails and leaves zeros. It works when memory is free
/// again.
#[test]
fn out_of_memory_is_an_error_that_passes() {
    let Some((ordinal, _all_memory)) = device_alone() else {
        return;
    };
    let cuda = Cuda::with_devices(&[ordinal]).unwrap();
    cuda.prepare(2048).unwrap();
    let batch = Batch::random(2048, 40_000, 3);

    let hog = take_all_memory(ordinal);
    let mut out = vec![BoxedUint::max(2048); batch.instances.len()];
    let result = cuda.batch_mod_exp(&batch.mod_exps(), 17, &mut out);
    let (device, fault) = (ordinal, DeviceFault::OutOfMemory);
    assert_eq!(result, Err(Error::Cuda { device, fault }));
    assert!(out.iter().all(|value| value.is_zero().to_bool()));
    drop(hog);

    assert_same(
        &batch.run(&cuda, 17),
        &batch.run(&Parallel::new(Serial).unwrap(), 17),
    );
}

/// While memory is freed piece by piece, from 1 MiB on, each call either succeeds or fails and
/// leaves zeros. With all memory free, calls succeed.
#[test]
fn memory_that_is_nearly_full() {
    let Some((device, _all_memory)) = device_alone() else {
        return;
    };
    let batch = Batch::random(2048, 40_000, 3);
    let expected = batch.run(&Parallel::new(Serial).unwrap(), 17);
    let key = KeyHandle::from_pkcs8_pem(include_str!("../keys/rsa2048-pkcs8.pem")).unwrap();
    let scheme = Pkcs1v15::<Sha256>::new();
    let mut rng = ChaCha20Rng::seed_from_u64(2);
    let host = BatchSigner::new(Parallel::new(Serial).unwrap(), scheme);
    let signature = host.sign(&mut rng, &key, &["m"]).unwrap();
    let signature = signature.get(0);

    let cuda = Cuda::with_devices(&[device]).unwrap();
    cuda.prepare(2048).unwrap();
    let signer = BatchSigner::new(&cuda, scheme);
    let mut hog = take_all_memory(device);
    let fault = DeviceFault::OutOfMemory;
    let (full, mut outcomes) = (Error::Cuda { device, fault }, Vec::new());
    loop {
        let mut out = vec![BoxedUint::max(2048); batch.instances.len()];
        let result = cuda.batch_mod_exp(&batch.mod_exps(), 17, &mut out);
        match &result {
            Ok(()) => assert_same(&out, &expected),
            Err(error) => {
                assert_eq!(error, &full);
                assert!(out.iter().all(|value| value.is_zero().to_bool()));
            }
        }
        let signatures = signer.sign(&mut rng, &key, &["m"; 5000]);
        match &signatures {
            Ok(signatures) => assert!(signatures.iter().all(|result| result == signature)),
            Err(error) => assert_eq!(error, &full.clone().into()),
        }
        outcomes.push((result.is_ok(), signatures.is_ok()));
        // From the smallest piece to the largest.
        if hog.pop().is_none() {
            break;
        }
    }
    // A signature needs little memory, and may have succeeded.
    assert!(
        outcomes.first().is_some_and(|first| !first.0),
        "{outcomes:?}"
    );
    assert_eq!(outcomes.last(), Some(&(true, true)), "{outcomes:?}");
}

/// Takes all free memory.
fn take_all_memory(ordinal: usize) -> Vec<CudaSlice<u8>> {
    let context = CudaContext::new(ordinal).unwrap();
    let stream = context.default_stream();
    let mut slices = Vec::new();
    let mut bytes = 1usize << 36;
    while bytes >= 1 << 20 {
        match stream.alloc_zeros::<u8>(bytes) {
            Ok(slice) => slices.push(slice),
            Err(_) => bytes /= 2,
        }
    }
    stream.synchronize().unwrap();
    slices
}
