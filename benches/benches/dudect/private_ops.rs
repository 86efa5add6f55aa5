//! Whole RSA private operations, from octets to octets, including all work around the
//! exponentiations.

use core::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use batch_modexp::backend::Cuda;
use batch_modexp::backend::Serial;
use batch_modexp::rsa::KeyHandle;
use batch_modexp::rsa::backend::RsaBackend;
use batch_modexp::rsa::hazmat::rsasp1;
use chacha20::ChaCha20Rng;
use chacha20::rand_core::{Rng, SeedableRng};
use crypto_bigint::{Choice, CtSelect};

use crate::exponentiations::{one_thread, spend};
use crate::simd::each_simd_backend;
use crate::subject::{Case, Subject};

/// Keys of 1024 bits, whose numbers have the same lengths. The first two differ in how many random
/// numbers for blinding are not below the modulus. The modulus of the last two is above 2^1024 -
/// 2^1002, so that this concerns less than one in a million.
const PEMS: [&str; 4] = [
    include_str!("../../../tests/keys/rsa1024.pem"),
    include_str!("../../../tests/keys/rsa1024-other.pem"),
    include_str!("../../../tests/keys/rsa1024-high.pem"),
    include_str!("../../../tests/keys/rsa1024-high-other.pem"),
];

/// Copies of each key, at other addresses, so that no address stands for one key.
const COPIES: usize = 16;

/// The difference between the classes.
#[derive(Clone, Copy, PartialEq)]
enum Secret {
    Nothing,
    SmallBlock,
    SameBlock,
    Key,
    KeyOfHighModulus,
}

const CLASSES: [(&str, Secret); 5] = [
    ("nothing: random, random", Secret::Nothing),
    ("block: below 2^16, random", Secret::SmallBlock),
    ("block: the same, random", Secret::SameBlock),
    ("key: one, another", Secret::Key),
    ("key: one, another, high moduli", Secret::KeyOfHighModulus),
];

type Make = Arc<dyn Fn() -> Box<dyn RsaBackend> + Send + Sync>;

/// All pairs of classes on every backend that this machine has, blinded and not, and on the
/// control.
pub(crate) fn cases() -> Vec<Case> {
    let mut backends: Vec<(&str, Make)> = vec![("serial", Arc::new(|| Box::new(Serial)))];
    macro_rules! push {
        ($name:ident: $Backend:ident) => {
            if let Some(backend) = batch_modexp::backend::$Backend::new() {
                backends.push((stringify!($name), Arc::new(move || Box::new(backend))));
            }
        };
    }
    each_simd_backend!(push);
    backends.push(("cpu", Arc::new(|| Box::new(one_thread()))));
    let mut cases = backends
        .iter()
        .flat_map(|(name, make)| with_and_without_blinding(name, make))
        .collect::<Vec<_>>();
    let serial: Make = Arc::new(|| Box::new(Serial));
    let leaking = CLASSES
        .iter()
        .filter(|(_, secret)| *secret != Secret::Nothing);
    cases.extend(leaking.map(|classes| case("control", &serial, *classes, false, true)));
    cases
}

/// All pairs of classes on the devices of `cuda`.
pub(crate) fn cases_on_gpu(cuda: &Arc<Cuda>) -> Vec<Case> {
    let cuda = Arc::clone(cuda);
    let make: Make = Arc::new(move || Box::new(Arc::clone(&cuda)));
    with_and_without_blinding("cuda", &make)
}

fn with_and_without_blinding(name: &str, make: &Make) -> Vec<Case> {
    let cases = [false, true]
        .map(|is_blinded| CLASSES.map(|classes| case(name, make, classes, is_blinded, false)));
    cases.into_iter().flatten().collect()
}

fn case(
    name: &str,
    make: &Make,
    (classes, secret): (&'static str, Secret),
    is_blinded: bool,
    is_control: bool,
) -> Case {
    let make = Arc::clone(make);
    let blinding = if is_blinded { "blinded" } else { "unblinded" };
    Case {
        subject: format!("{name}, RSA-1024 {blinding}"),
        classes,
        is_control,
        clocks: &["call"],
        make: Box::new(move || {
            Box::new(PrivateOp {
                backend: make(),
                keys: keys(),
                secret,
                block: Vec::new(),
                key: 0,
                blinding: is_blinded.then(|| ChaCha20Rng::seed_from_u64(4)),
                is_control,
            })
        }),
    }
}

/// The keys, in turn.
fn keys() -> Vec<KeyHandle> {
    let pems = PEMS.iter().cycle().take(PEMS.len() * COPIES);
    pems.map(|pem| KeyHandle::from_pkcs1_pem(pem).expect("a key of the tests"))
        .collect()
}

/// A backend with a key and an encoded message.
struct PrivateOp {
    backend: Box<dyn RsaBackend>,
    keys: Vec<KeyHandle>,
    secret: Secret,
    block: Vec<u8>,
    key: usize,
    blinding: Option<ChaCha20Rng>,
    is_control: bool,
}

impl PrivateOp {
    /// The number of steps by which the control leaks the secret.
    fn leaked(&self) -> u32 {
        match self.secret {
            Secret::Nothing => 0,
            Secret::SmallBlock => {
                8 * self.block.iter().take_while(|octet| **octet == 0).count() as u32
            }
            Secret::SameBlock => 800 * u32::from(self.block[1..] == [0x5a; 127]),
            Secret::Key | Secret::KeyOfHighModulus => 800 * (self.key % 2) as u32,
        }
    }
}

impl Subject for PrivateOp {
    fn prepare(&mut self, class: usize, rng: &mut ChaCha20Rng) {
        let copy = PEMS.len() * (rng.next_u32() as usize % COPIES);
        let mut random = vec![0; 128];
        // Below the modulus.
        rng.fill_bytes(&mut random[1..]);
        let mut other = random.clone();
        let mut keys = [0; 2];
        match self.secret {
            Secret::Nothing => {}
            Secret::SmallBlock => other[..126].fill(0),
            Secret::SameBlock => other[1..].fill(0x5a),
            Secret::Key => keys = [0, 1],
            Secret::KeyOfHighModulus => keys = [2, 3],
        }
        self.key = copy + keys[black_box(class)];
        // Class 0 is the special input. The copy is at the same address as the last one, and is
        // made from both by masks.
        let is_random = Choice::from_u8_lsb(black_box(class as u8));
        self.block.clear();
        let octets = other.iter().zip(&random);
        self.block
            .extend(octets.map(|(other, random)| other.ct_select(random, is_random)));
    }

    fn measure(&mut self) -> Vec<f64> {
        let blocks = [(&self.keys[self.key], &self.block)];
        let rng = self.blinding.as_mut();
        let start = Instant::now();
        let results = rsasp1(&*self.backend, rng, &blocks).expect("a backend that works");
        if self.is_control {
            spend(self.leaked());
        }
        let time = start.elapsed();
        assert!(
            black_box(&results).get(0).is_ok(),
            "a result that passes its check"
        );
        vec![time.as_nanos() as f64]
    }
}
