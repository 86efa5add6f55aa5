//! Tests of outputs and of the errors of items.

use batch_modexp_core::engine::SecretPowers;

use super::*;
use crate::rsa::backend::RsaBackend;
use crate::rsa::hazmat::rsasp1;
use crate::rsa::key::KeyHandle;

/// A source of the key of all items; only the key is asked for.
struct Keys(KeyHandle);

impl Source for Keys {
    fn key(&self, _: usize) -> &KeyParts {
        self.0.parts()
    }

    fn encode(&self, _: usize, _: &mut Randomness, _: &mut [u8]) -> Result<(), Error> {
        unreachable!("nothing is computed")
    }
}

fn key() -> KeyHandle {
    KeyHandle::from_pkcs1_pem(include_str!("../../../tests/keys/rsa1024.pem")).unwrap()
}

/// Three items with outputs of up to five octets, after `change`.
fn outputs(change: impl FnOnce(&mut Items<'_>)) -> Secret<Outputs> {
    let source = Keys(key());
    let mut outputs = Outputs::new(3, 5);
    let batch = Batch {
        class: KeyClass::of(source.0.parts()),
        keys: &[source.0.parts(); 3],
        positions: Positions::From([0; 2]),
        source: &source,
        streams: &Streams::none(),
        is_blinded: false,
    };
    change(&mut outputs.items(batch, 0..3));
    outputs
}

fn write(items: &mut Items<'_>, item: usize, octets: &[u8]) {
    items.write(item, octets.len(), |place| {
        place.copy_from_slice(octets);
        Ok(octets.len())
    });
}

fn filled(positions: [[usize; 3]; 2]) -> Outputs {
    let mut outputs = outputs(|items| {
        write(items, 0, b"abc");
        write(items, 1, b"de");
        write(items, 2, b"fghij");
    });
    outputs.put_in_order(positions.map(Vec::from));
    outputs.into_inner()
}

#[test]
fn outputs_return_to_their_positions() {
    let outputs = filled([[2, 0, 1]; 2]);
    assert_eq!(outputs.get(0), Ok(&b"de"[..]));
    assert_eq!(outputs.get(1), Ok(&b"fghij"[..]));
    assert_eq!(outputs.get(2), Ok(&b"abc"[..]));
    assert_eq!(outputs.into_vec(), Ok(b"defghijabc".into()));
}

/// No output is returned at a position that only one of the two lists has.
#[test]
fn a_position_that_is_not_certain_is_a_fault() {
    let outputs = filled([[2, 0, 1], [2, 1, 1]]);
    let fault = Error::Fault { index: 0 };
    assert_eq!(outputs.get(0), Err(fault.clone()));
    assert!(outputs.get(1).is_ok() && outputs.get(2).is_ok());
    assert_eq!(outputs.into_vec(), Err(fault));
}

/// Each bit of each length is flipped: no octet of another item is returned, and nothing panics.
#[test]
fn a_wrong_length_gives_no_octets_of_another_item() {
    for (index, place) in [b"abc\0\0", b"de\0\0\0", b"fghij"].iter().enumerate() {
        for bit in 0..u16::BITS {
            let mut outputs = filled([[0, 1, 2]; 2]);
            outputs.lens_plus_1[index] ^= 1 << bit;
            match outputs.get(index) {
                Ok(octets) => assert!(place.starts_with(octets)),
                Err(error) => assert_eq!(error, Error::Fault { index }),
            }
            // In the caller's order all lengths are looked at together.
            outputs.order.clear();
            outputs.positions.clear();
            let have_outputs = (0..3).all(|index| outputs.get(index).is_ok());
            assert_eq!(outputs.all_succeeded().is_ok(), have_outputs);
        }
    }
}

/// Each bit of an index and of a position is flipped: no output of another item is returned.
#[test]
fn a_wrong_index_gives_no_output_of_another_item() {
    for bit in 0..usize::BITS {
        let fault = |index| Err(Error::Fault { index });
        let mut outputs = filled([[2, 0, 1]; 2]);
        outputs.order[0] ^= 1 << bit;
        assert_eq!(outputs.get(0), fault(0));
        assert!(outputs.get(1).is_ok() && outputs.get(2).is_ok());
        let mut outputs = filled([[2, 0, 1]; 2]);
        outputs.positions[0] ^= 1 << bit;
        assert_eq!(outputs.get(2), fault(2));
        assert!(outputs.get(0).is_ok() && outputs.get(1).is_ok());
    }
    for len in 0..3 {
        let mut outputs = filled([[2, 0, 1]; 2]);
        outputs.order.truncate(len);
        assert_eq!(outputs.get(2), Err(Error::Fault { index: 2 }));
    }
}

/// Items whose positions differ are not encoded, also where no list has them.
#[test]
fn a_first_position_that_is_not_certain_is_a_fault() {
    let source = Keys(key());
    for (firsts, expected) in [
        ([0, 0], Ok(1)),
        ([0, 1], Err(Error::Fault { index: 0 })),
        ([usize::MAX - 9, 0], Err(Error::Fault { index: 0 })),
    ] {
        let batch = Batch {
            class: KeyClass::of(source.0.parts()),
            keys: &[source.0.parts(); 3],
            positions: Positions::From(firsts),
            source: &source,
            streams: &Streams::none(),
            is_blinded: false,
        };
        assert_eq!(batch.position(1), expected);
        assert_eq!(batch.range(1..3).position(0), expected);
    }
}

/// The last attempt counts, and an item without one is a fault.
#[test]
fn items_may_be_computed_again() {
    let wrong = Error::Verification { index: 1 };
    let mut outputs = outputs(|items| {
        items.fail(0, wrong.clone());
        write(items, 0, b"a");
        write(items, 1, b"b");
        items.fail(1, wrong.clone());
    });
    outputs.put_in_order([[0, 1, 2]; 2].map(Vec::from));
    assert_eq!(outputs.get(0), Ok(&b"a"[..]));
    assert_eq!(outputs.get(1), Err(wrong.clone()));
    assert_eq!(outputs.get(2), Err(Error::Fault { index: 2 }));
    assert_eq!(outputs.all_succeeded(), Err(wrong));
}

#[test]
fn an_output_that_failed_is_wiped() {
    let outputs = outputs(|items| {
        items.write(1, 3, |place| {
            place.fill(7);
            Err(Error::Decryption { index: 0 })
        });
    });
    assert!(outputs.octets.iter().all(|octet| *octet == 0));
}

/// Spare capacity would be written when secrets are wiped.
#[test]
fn large_buffers_have_no_spare_capacity() {
    let outputs = Outputs::new(1 << 12, 256);
    assert_eq!(outputs.octets.len(), 1 << 20);
    assert_eq!(outputs.octets.capacity(), 1 << 20);
}

fn too_wide(index: usize) -> batch_modexp_core::Error {
    batch_modexp_core::Error::ModulusWidth {
        index,
        bits: 512,
        max_bits: 256,
    }
}

/// A backend that refuses the width of all numbers.
struct Refuses;

impl RsaBackend for Refuses {
    fn exponentiate(&self, _: SecretPowers<'_>) -> Result<(), batch_modexp_core::Error> {
        Err(too_wide(0))
    }
}

/// An item that could not be encoded keeps its own error if the backend refuses its class.
#[test]
fn an_error_of_the_class_does_not_hide_that_of_an_item() {
    let key = key();
    let blocks = [(&key, &[1; 128][..]), (&key, &[1; 127]), (&key, &[1; 128])];
    let results = rsasp1(&Refuses, None::<&mut getrandom::SysRng>, &blocks).unwrap();
    let refused = |index| Error::Backend(too_wide(index));
    let out_of_range = Error::BlockOutOfRange {
        index: 1,
        len: 127,
        expected: 128,
    };
    assert_eq!(results.get(0), Err(refused(0)));
    assert_eq!(results.get(1), Err(out_of_range));
    assert_eq!(results.get(2), Err(refused(2)));
}
