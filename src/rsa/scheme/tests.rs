//! Tests of the digests that a batch computes.

use core::cell::Cell;

use batch_modexp_core::Serial;
use sha2::Sha256;
use sha2::digest::{
    FixedOutput, FixedOutputReset, HashMarker, Output, OutputSizeUser, Reset, Update,
};

use super::*;
use crate::rsa::{BatchSigner, BatchVerifier, Hash, KeyHandle};

std::thread_local! {
    static DIGESTS: Cell<usize> = const { Cell::new(0) };
}

/// SHA-256 that counts its digests, and has no object identifier.
#[derive(Default)]
struct Counted(Sha256);

impl HashMarker for Counted {}

impl OutputSizeUser for Counted {
    type OutputSize = <Sha256 as OutputSizeUser>::OutputSize;
}

impl Update for Counted {
    fn update(&mut self, octets: &[u8]) {
        Update::update(&mut self.0, octets);
    }
}

impl FixedOutput for Counted {
    fn finalize_into(self, out: &mut Output<Self>) {
        DIGESTS.set(DIGESTS.get() + 1);
        FixedOutput::finalize_into(self.0, out);
    }
}

impl Reset for Counted {
    fn reset(&mut self) {
        Reset::reset(&mut self.0);
    }
}

impl FixedOutputReset for Counted {
    fn finalize_into_reset(&mut self, out: &mut Output<Self>) {
        DIGESTS.set(DIGESTS.get() + 1);
        FixedOutputReset::finalize_into_reset(&mut self.0, out);
    }
}

fn digests_of<T>(compute: impl FnOnce() -> T) -> (T, usize) {
    let before = DIGESTS.get();
    let value = compute();
    (value, DIGESTS.get() - before)
}

/// The key permits only this hash function; the scheme is compared with it once for all items.
#[test]
fn restricted_keys_cost_no_digest_for_each_item() {
    let pem = include_str!("../../../tests/keys/pss-sha256.pem");
    let key = KeyHandle::from_pkcs8_pem(pem).unwrap();
    assert!(matches!(key.restriction(), Restriction::PssWith { .. }));
    // One of the digest and the salt, and those of the mask.
    let of_item = 1 + (key.size() - 33).div_ceil(32);
    let scheme = Pss::<Counted>::with_salt_len(40);
    let (signer, verifier) = (
        BatchSigner::new(Serial, scheme),
        BatchVerifier::new(Serial, scheme),
    );
    let digests = [[1; 32], [2; 32], [3; 32]];
    let rng = &mut getrandom::SysRng;
    let (signatures, count) = digests_of(|| signer.sign_prehash(rng, &key, &digests).unwrap());
    assert_eq!(count, 3 * of_item);
    let signed: alloc::vec::Vec<_> = digests
        .iter()
        .zip(&signatures)
        .map(|(digest, signature)| (digest, signature.unwrap()))
        .collect();
    let verify = || verifier.verify_prehash(&key.public_key(), &signed).unwrap();
    let (verdicts, count) = digests_of(verify);
    assert!(verdicts.all_valid().is_ok());
    assert_eq!(count, 3 * of_item);
}

/// A hash function is known by its digests: an object identifier may be missing or shared.
#[test]
fn hash_functions_are_identified() {
    assert_eq!(Hash::of_type::<Counted>(), Some(Hash::Sha256));
    assert_eq!(Hash::of_type::<sha2::Sha512_256>(), Some(Hash::Sha512_256));
    let narrowest = |min_salt_len| Restriction::PssWith {
        hash: Hash::Sha256,
        min_salt_len,
    };
    let scheme = Pss::<Counted>::with_salt_len(20);
    assert!(scheme.is_permitted_by(narrowest(20)) && !scheme.is_permitted_by(narrowest(21)));
    let other_mask = Pss::<Counted, sha2::Sha384>::with_mgf_hash(20);
    assert!(other_mask.is_permitted_by(Restriction::Pss));
    assert!(!other_mask.is_permitted_by(narrowest(0)));
}
