//! Digests, encodings and checks of ranges need no allocations.

use batch_modexp::backend::Serial;
use batch_modexp::rsa::hazmat::{rsadp, rsasp1};
use batch_modexp::rsa::sha2::Sha256;
use batch_modexp::rsa::{AnyScheme, BatchSigner, BatchVerifier, Hash, KeyHandle, Pss, Scheme};
use getrandom::SysRng;

use super::freed::allocations_of;

/// The allocations for seven more items.
fn more(compute: impl Fn(usize)) -> usize {
    allocations_of(|| compute(9)) - allocations_of(|| compute(2))
}

/// Those for more signatures, and for more verifications.
fn for_items(key: &KeyHandle, scheme: impl Scheme + Copy) -> [usize; 2] {
    let signer = BatchSigner::new(Serial, scheme);
    let verifier = BatchVerifier::new(Serial, scheme);
    let (messages, public) = (["m"; 9], key.public_key());
    let signatures = signer.sign(&mut SysRng, key, &messages).unwrap();
    let signed = messages.iter().zip(&signatures);
    let signed: Vec<_> = signed
        .map(|(message, signature)| (message, signature.unwrap()))
        .collect();
    let sign = |count: usize| drop(signer.sign(&mut SysRng, key, &messages[..count]).unwrap());
    let verify = |count: usize| {
        let verdicts = verifier.verify(&public, &signed[..count]).unwrap();
        assert!(verdicts.all_valid().is_ok());
    };
    [more(sign), more(verify)]
}

/// Only the engine allocates for items.
#[test]
fn all_schemes_and_ranges_need_as_many() {
    let key = KeyHandle::from_pkcs1_pem(include_str!("../keys/rsa1024.pem")).unwrap();
    let [sign, verify] = for_items(&key, Pss::<Sha256>::new());
    let hash = Hash::Sha256;
    for scheme in [
        AnyScheme::Pkcs1v15 { hash },
        AnyScheme::Pss { hash, salt_len: 32 },
    ] {
        assert_eq!(for_items(&key, scheme), [sign, verify], "{scheme:?}");
    }
    let blocks = [(&key, [7; 128]); 9];
    let below_modulus = more(|count| {
        let results = rsasp1(&Serial, Some(&mut SysRng), &blocks[..count]).unwrap();
        assert!(results.iter().all(|result| result.is_ok()));
    });
    let nist = more(|count| {
        let results = rsadp(&Serial, Some(&mut SysRng), &blocks[..count]).unwrap();
        assert!(results.iter().all(|result| result.is_ok()));
    });
    assert_eq!([below_modulus, nist], [sign; 2]);
}
