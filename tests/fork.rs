//! Backends in a forked child process. The threads stay behind in the parent, and the child must
//! not wait for them.
#![cfg(unix)]
#![allow(unsafe_code)]

#[path = "common/need.rs"]
mod need;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::Command;
use std::time::{Duration, Instant};

use batch_modexp::backend::{Cpu, Parallel, Serial};
use batch_modexp::{BatchModExp, Error, ModExp};
use crypto_bigint::modular::{BoxedMontyParams, FixedMontyParams};
use crypto_bigint::{BoxedUint, Odd, U256};

/// A child that takes longer hangs: its work takes milliseconds.
const LIMIT: Duration = Duration::from_secs(30);

/// Runs `action` in a forked child, and fails if it panics or does not end.
fn in_child(action: impl FnOnce()) {
    // SAFETY: the child runs `action` and then ends by `_exit`. It allocates, which the C libraries
    // permit after a fork. It takes no lock of this program that another thread may hold, except
    // the one for a panic's message. If that hangs, the time limit ends the child.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let passed = catch_unwind(AssertUnwindSafe(action)).is_ok();
        // SAFETY: ends the process at once, without running destructors that belong to the parent.
        unsafe { libc::_exit(if passed { 0 } else { 1 }) }
    }
    assert!(child > 0, "fork failed");
    let status = wait(child);
    assert_eq!(
        status,
        Some(0),
        "None: the child hung; else its wait status"
    );
}

/// Runs an ignored test of this file several times, each in a new process. Other tests would start
/// and end threads during the fork, and the child could then have no threads.
fn alone(test: &str, times: usize) {
    let emulator = std::env::vars()
        .find(|(name, _)| name.starts_with("CARGO_TARGET_") && name.ends_with("_RUNNER"));
    // qemu-user 7.2 fails one of its own assertions when a forked child starts a thread.
    let direct = match emulator {
        Some((name, _)) => Err(format!(
            "{name} is set, and a child may have no threads there"
        )),
        None => Ok(()),
    };
    if need::available("no-emulator", direct).is_none() {
        return;
    }
    for _ in 0..times {
        let output = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", test, "--ignored", "--test-threads=1"])
            .output()
            .unwrap();
        let stdout = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{stdout}");
        assert!(stdout.contains("1 passed"), "{stdout}");
    }
}

/// The wait status of a child, or `None` if it had to be killed.
fn wait(child: libc::pid_t) -> Option<i32> {
    let (start, mut status) = (Instant::now(), 0);
    loop {
        // SAFETY: `child` is a child of this process that no other code waits for, and `status` is
        // a valid place.
        match unsafe { libc::waitpid(child, &mut status, libc::WNOHANG) } {
            0 if start.elapsed() < LIMIT => std::thread::sleep(Duration::from_millis(5)),
            0 => break,
            ended => {
                assert_eq!(ended, child);
                return Some(status);
            }
        }
    }
    // SAFETY: the child has not been waited for, so the number is still its own.
    unsafe {
        libc::kill(child, libc::SIGKILL);
        libc::waitpid(child, &mut status, 0);
    }
    None
}

/// Checks 3^200 modulo 2^256 - 1, often enough for every thread to get some.
fn check_fixed(backend: &impl BatchModExp<U256, Error = Error>) {
    let params = FixedMontyParams::new(Odd::new(U256::MAX).unwrap());
    let (base, exponent) = (U256::from(3u8), U256::from(200u8));
    let batch = [ModExp {
        base: &base,
        exponent: &exponent,
        params: &params,
    }; 40];
    let mut out = [U256::ZERO; 40];
    backend.batch_mod_exp(&batch, 8, &mut out).unwrap();
    let expected = power();
    assert!(
        out.iter()
            .all(|value| value.to_be_bytes().as_ref() == expected)
    );
}

/// Like [`check_fixed`], with `BoxedUint`s.
fn check_boxed(backend: &impl BatchModExp<BoxedUint, Error = Error>) {
    let params = BoxedMontyParams::new(Odd::new(BoxedUint::max(256)).unwrap());
    let number =
        |value: u8| BoxedUint::from_be_slice(&[&[0; 31][..], &[value]].concat(), 256).unwrap();
    let (base, exponent) = (number(3), number(200));
    let batch = vec![
        ModExp {
            base: &base,
            exponent: &exponent,
            params: params.as_ref(),
        };
        40
    ];
    let mut out = vec![BoxedUint::zero(); 40];
    backend.batch_mod_exp(&batch, 8, &mut out).unwrap();
    let expected = power();
    assert!(out.iter().all(|value| *value.to_be_bytes() == expected));
}

/// The expected power by num-bigint, in 32 bytes.
fn power() -> Vec<u8> {
    let modulus = (num_bigint::BigUint::from(1u8) << 256) - 1u8;
    let power = num_bigint::BigUint::from(3u8).modpow(&200u8.into(), &modulus);
    let bytes = power.to_bytes_be();
    [vec![0; 32 - bytes.len()], bytes].concat()
}

fn two() -> core::num::NonZeroUsize {
    2.try_into().unwrap()
}

#[test]
fn parallel_works_on_the_calling_thread() {
    let parallel = Parallel::with_threads(Serial, two()).unwrap();
    check_fixed(&parallel);
    in_child(|| {
        assert_eq!(parallel.threads(), 1);
        check_fixed(&parallel);
        check_boxed(&parallel);
    });
    // The parent still has its threads.
    assert_eq!(parallel.threads(), 2);
    check_fixed(&parallel);
}

#[test]
fn cpu_works_on_the_calling_thread() {
    let cpu = Cpu::with_threads(two()).unwrap();
    check_boxed(&cpu);
    in_child(|| {
        assert_eq!(cpu.threads(), 1);
        check_fixed(&cpu);
        check_boxed(&cpu);
    });
}

#[test]
fn a_child_can_have_threads_of_its_own() {
    // New threads are in another state each time.
    alone("threads_in_a_child", 20);
}

#[test]
#[ignore = "run by a_child_can_have_threads_of_its_own"]
fn threads_in_a_child() {
    let parents = Parallel::with_threads(Serial, two()).unwrap();
    in_child(|| {
        drop(parents);
        let parallel = Parallel::with_threads(Serial, two()).unwrap();
        assert_eq!(parallel.threads(), 2);
        check_fixed(&parallel);
    });
}

#[test]
fn a_grandchild_works_too() {
    let parallel = Parallel::with_threads(Serial, two()).unwrap();
    in_child(|| in_child(|| check_fixed(&parallel)));
}

#[test]
fn signing_works_on_the_calling_thread() {
    use batch_modexp::rsa::{BatchSigner, KeyHandle, Pkcs1v15};
    use rsa::PrivateKey;
    use rsa::pkcs1::DecodeRsaPrivateKey;
    use rsa::pkcs1v15::VerifyingKey;
    use rsa::sha2::Sha256;
    use rsa::signature::Verifier;

    let pem = include_str!("keys/rsa1024.pem");
    let private_key = PrivateKey::from_pkcs1_pem(pem).unwrap();
    let verifying_key = VerifyingKey::<Sha256>::new(private_key.to_public_key());
    let key = KeyHandle::from_pkcs1_pem(pem).unwrap();
    let parallel = Parallel::with_threads(Serial, two()).unwrap();
    let signer = BatchSigner::new(parallel, Pkcs1v15::<Sha256>::new());
    let sign = || {
        let messages = ["a", "b", "c", "d"];
        let signatures = signer
            .sign(&mut getrandom::SysRng, &key, &messages)
            .unwrap();
        for (message, signature) in messages.iter().zip(signatures) {
            let signature = signature.unwrap();
            let signature = rsa::pkcs1v15::Signature::try_from(signature.as_ref()).unwrap();
            let verified = verifying_key.verify(message.as_bytes(), &signature);
            assert_eq!(verified.ok(), Some(()));
        }
    };
    sign();
    in_child(sign);
}

#[cfg(feature = "cuda")]
mod gpu {
    use batch_modexp::backend::Cuda;

    use super::*;

    #[test]
    fn a_gpu_is_an_error() {
        if need::available("cuda", Cuda::probe()).is_none() {
            return;
        }
        let cuda = Cuda::new().unwrap();
        check_fixed(&cuda);
        in_child(|| {
            let params = FixedMontyParams::new(Odd::new(U256::MAX).unwrap());
            let batch = [ModExp {
                base: &U256::ONE,
                exponent: &U256::ONE,
                params: &params,
            }];
            let mut out = [U256::MAX];
            let result = cuda.batch_mod_exp(&batch, 8, &mut out);
            assert_eq!((result, out), (Err(Error::Forked), [U256::ZERO]));
        });
        check_fixed(&cuda);
    }

    /// Backends that can do without a GPU do so. The child drops keys on a GPU without calls to the
    /// driver.
    #[test]
    fn the_processor_takes_over() {
        use batch_modexp::backend::{Auto, Kind};
        use batch_modexp::rsa::{BatchSigner, KeyHandle, Pkcs1v15, sha2::Sha256};

        if need::available("cuda", Cuda::probe()).is_none() {
            return;
        }
        let key = KeyHandle::from_pkcs1_pem(include_str!("keys/rsa1024.pem")).unwrap();
        let scheme = Pkcs1v15::<Sha256>::new();
        let sign = |backend: &Auto, key: &KeyHandle| {
            let signer = BatchSigner::new(backend, scheme);
            signer
                .sign(&mut getrandom::SysRng, key, &["m"; 50])
                .unwrap()
        };
        let expected = sign(&Auto::new().unwrap(), &key);
        let auto = Auto::with(Kind::Cuda, None).unwrap();
        check_fixed(&auto);
        assert_eq!(sign(&auto, &key), expected);
        assert_eq!(auto.name(), "cuda");
        in_child(|| {
            check_fixed(&auto);
            check_boxed(&auto);
            assert_eq!(sign(&auto, &key), expected);
            assert_ne!(auto.name(), "cuda");
        });
        assert_eq!(sign(&auto, &key), expected);
        let (of_child, used_by_child) = (key, auto);
        in_child(move || drop((of_child, used_by_child)));
        check_fixed(&Cuda::new().unwrap());
    }
}

/// A child has no workers that could answer.
#[test]
fn a_queue_says_that_its_workers_are_elsewhere() {
    use batch_modexp::queue::{BatchQueue, QueueError, Shutdown};
    use batch_modexp::rsa::{AnyScheme, Hash, KeyHandle};

    let key = KeyHandle::from_pkcs8_pem(include_str!("keys/rsa2048-pkcs8.pem")).unwrap();
    let scheme = AnyScheme::Pkcs1v15 { hash: Hash::Sha256 };
    let queue = BatchQueue::new(Serial, getrandom::SysRng).unwrap();
    let before = queue.sign(&key, scheme, b"m");
    in_child(|| {
        let error = queue.sign_blocking(&key, scheme, b"m").unwrap_err();
        assert_eq!(error, QueueError::Forked);
        let error = queue.try_sign(&key, scheme, b"m").unwrap_err();
        assert_eq!(error, QueueError::Forked);
        let _ = (format!("{queue:?}"), queue.stats());
        queue.shutdown(Shutdown::Drain);
        drop(queue.clone());
    });
    before.wait().unwrap();
    queue.sign_blocking(&key, scheme, b"m").unwrap();
}

#[test]
fn a_child_can_have_a_queue_of_its_own() {
    alone("queue_in_a_child", 1);
}

#[test]
#[ignore = "run by a_child_can_have_a_queue_of_its_own"]
fn queue_in_a_child() {
    use batch_modexp::queue::BatchQueue;
    use batch_modexp::rsa::{AnyScheme, Hash, KeyHandle};

    let key = KeyHandle::from_pkcs8_pem(include_str!("keys/rsa2048-pkcs8.pem")).unwrap();
    let scheme = AnyScheme::Pkcs1v15 { hash: Hash::Sha256 };
    let sign = |queue: &BatchQueue| queue.sign_blocking(&key, scheme, b"m").unwrap();
    let of_parent = BatchQueue::new(Serial, getrandom::SysRng).unwrap();
    let expected = sign(&of_parent);
    // A worker without work may not have started yet.
    std::thread::sleep(Duration::from_millis(100));
    in_child(|| {
        let made_here = BatchQueue::new(Serial, getrandom::SysRng).unwrap();
        assert_eq!(sign(&made_here), expected);
    });
    assert_eq!(sign(&of_parent), expected);
}
