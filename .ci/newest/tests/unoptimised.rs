//! Kernels without optimisation. Then all their values are on the stack, which must fit into a
//! thread's 2 MiB, as in tests.
#![cfg(feature = "all")]

#[path = "../../../tests/common/simd.rs"]
mod simd;

use batch_modexp::backend::*;
use batch_modexp::rsa::{BatchSigner, KeyHandle, Pkcs1v15};
use batch_modexp::{BatchModExp, ModExp};
use crypto_bigint::modular::MontyParams;
use crypto_bigint::{Odd, Uint};
use getrandom::SysRng;
use rsa::sha2::Sha256;

/// Enough for the largest windows.
const EXPONENT_BITS: u32 = 330;

/// Computes enough powers to fill the lanes twice, and a partial group.
fn powers<const LIMBS: usize>() {
    let params = MontyParams::new(Odd::new(Uint::<LIMBS>::MAX).unwrap());
    let (base, exponent) = (Uint::from(3u8), Uint::MAX);
    let batch = [ModExp::new(&base, &exponent, &params); 19];
    let mut expected = [Uint::ZERO; 1];
    Serial.batch_mod_exp(&batch[..1], EXPONENT_BITS, &mut expected).unwrap();
    let check = |out: &[Uint<LIMBS>]| assert!(out.iter().all(|power| *power == expected[0]));

    let mut out = [Uint::ZERO; 19];
    Cpu::new().unwrap().batch_mod_exp(&batch, EXPONENT_BITS, &mut out).unwrap();
    check(&out);
    macro_rules! simd_backend {
        ($name:ident: $Backend:ident) => {
            if let Some(backend) = $Backend::new() {
                let mut out = [Uint::ZERO; 19];
                backend.batch_mod_exp(&batch, EXPONENT_BITS, &mut out).unwrap();
                check(&out);
            }
        };
    }
    simd::each_simd_backend!(simd_backend);
}

#[test]
fn one_block() {
    powers::<8>();
    powers::<12>();
    powers::<16>();
}

#[test]
fn several_blocks() {
    powers::<24>();
    powers::<32>();
    powers::<48>();
    powers::<64>();
}

/// Signs one message, and enough to fill the lanes twice. The threads of `Cpu` have the same stack.
#[test]
fn signatures() {
    let key = include_str!("../../../tests/keys/rsa2048-pkcs8.pem");
    let key = KeyHandle::from_pkcs8_pem(key).unwrap();
    let scheme = Pkcs1v15::<Sha256>::new();
    for messages in [&["message"; 19][..], &["message"]] {
        let cpu = BatchSigner::new(Cpu::new().unwrap(), scheme);
        cpu.sign(&mut SysRng, &key, messages).unwrap().into_vec().unwrap();
        macro_rules! simd_backend {
            ($name:ident: $Backend:ident) => {
                if let Some(backend) = $Backend::new() {
                    let signer = BatchSigner::new(backend, scheme);
                    let signatures = signer.sign(&mut SysRng, &key, messages);
                    signatures.unwrap().into_vec().unwrap();
                }
            };
        }
        simd::each_simd_backend!(simd_backend);
    }
}
