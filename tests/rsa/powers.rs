//! Powers of flat numbers, with which backends compute private operations, against num-bigint.

use batch_modexp::backend::{Auto, Cpu, Parallel, Serial};
use batch_modexp::rsa::backend::{ModulusRef, RsaBackend, SecretPowers};
use chacha20::ChaCha20Rng;
use chacha20::rand_core::{Rng, SeedableRng};
#[cfg(feature = "cuda")]
use crypto_bigint::Resize;
use crypto_bigint::modular::BoxedMontyParams;
use crypto_bigint::{BoxedUint, Limb, Odd, Word};
use num_bigint::BigUint;

#[cfg(any(feature = "cuda", target_arch = "x86_64", target_arch = "aarch64"))]
use super::need;
use super::simd::each_simd_backend;

/// The shape of a request; lengths in limbs.
struct Shape {
    modulus: usize,
    exponent: usize,
    exponent_bits: u32,
    count: usize,
}

fn shape(modulus: usize, exponent: usize, exponent_bits: u32, count: usize) -> Shape {
    Shape {
        modulus,
        exponent,
        exponent_bits,
        count,
    }
}

fn shapes() -> Vec<Shape> {
    vec![
        shape(4, 1, 0, 3),
        shape(4, 4, 251, 9),
        // Exponents that are longer than the moduli.
        shape(2, 5, 300, 5),
        // Bits above those that count.
        shape(8, 8, 130, 4),
        shape(16, 16, 1024, 19),
        // Few and many, for pairs of lanes, threads and chunks of a device.
        shape(16, 17, 1024, 1),
        shape(16, 16, 40, 300),
        shape(17, 17, 70, 7),
        shape(33, 1, 17, 2),
    ]
}

fn random(rng: &mut ChaCha20Rng, limbs: usize) -> Vec<Limb> {
    (0..limbs).map(|_| Limb(rng.next_u64() as Word)).collect()
}

fn value(limbs: &[Limb]) -> BigUint {
    let limbs = limbs.iter().rev();
    limbs.fold(BigUint::ZERO, |sum, limb| (sum << Limb::BITS) + limb.0)
}

/// A random odd modulus, or a short one.
fn modulus(rng: &mut ChaCha20Rng, limbs: usize, is_short: bool) -> BoxedMontyParams {
    let mut number = BoxedUint::from_words(random(rng, limbs).iter().map(|limb| limb.0));
    if is_short {
        number = number.shr(Limb::BITS + 5);
    }
    number.as_mut_limbs()[0] |= Limb::ONE;
    BoxedMontyParams::new(Odd::new(number).unwrap())
}

fn check(name: &str, backend: &dyn RsaBackend) {
    let mut rng = ChaCha20Rng::seed_from_u64(20);
    for shape in shapes() {
        let kinds = [false, false, true].map(|is_short| modulus(&mut rng, shape.modulus, is_short));
        // Runs of one modulus, and moduli that alternate.
        let kind = |i: usize| {
            if i < shape.count / 2 {
                i / 5 % 3
            } else {
                i % 3
            }
        };
        let moduli: Vec<_> = (0..shape.count)
            .map(|i| ModulusRef::of(kinds[kind(i)].as_ref()))
            .collect();
        let mut bases = random(&mut rng, shape.count * shape.modulus);
        // Above every modulus.
        bases[..shape.modulus].fill(Limb::MAX);
        let exponents: Vec<_> = (0..shape.count)
            .map(|_| random(&mut rng, shape.exponent))
            .collect();
        let mut out = vec![Limb(7); bases.len()];
        let powers = SecretPowers {
            moduli: &moduli,
            exponents: &exponents.iter().map(Vec::as_slice).collect::<Vec<_>>(),
            exponent_bits: shape.exponent_bits,
            bases: &bases,
            out: &mut out,
        };
        backend.exponentiate(powers).unwrap();
        let numbers = bases.chunks_exact(shape.modulus).zip(&exponents);
        let results = out.chunks_exact(shape.modulus).zip(&moduli);
        for (i, ((base, exponent), (power, modulus))) in numbers.zip(results).enumerate() {
            let exponent = value(exponent) % (BigUint::from(1u8) << shape.exponent_bits);
            let expected = value(base).modpow(&exponent, &value(modulus.limbs));
            let Shape { modulus, count, .. } = shape;
            assert_eq!(
                value(power),
                expected,
                "{name}, {i} of {count}, {modulus} limbs"
            );
        }
    }
    let nothing = SecretPowers {
        moduli: &[],
        exponents: &[],
        exponent_bits: 64,
        bases: &[],
        out: &mut [],
    };
    backend.exponentiate(nothing).unwrap();
}

/// A device computes this many by RNS, which refuses moduli with some factors.
#[cfg(feature = "cuda")]
fn check_many(backend: &dyn RsaBackend) {
    const COUNT: usize = 40_000;
    let mut rng = ChaCha20Rng::seed_from_u64(21);
    let refused = BoxedUint::from(15 * ((1u64 << 29) - 3)).resize(1024);
    let kinds = [
        modulus(&mut rng, 16, false),
        BoxedMontyParams::new(Odd::new(refused).unwrap()),
    ];
    let moduli: Vec<_> = (0..COUNT)
        .map(|i| ModulusRef::of(kinds[usize::from(i % 1000 == 3)].as_ref()))
        .collect();
    let bases = random(&mut rng, COUNT * 16);
    let exponents: Vec<_> = bases.chunks_exact(16).map(|base| &base[..1]).collect();
    let run = |backend: &dyn RsaBackend| {
        let mut out = vec![Limb::ZERO; bases.len()];
        let powers = SecretPowers {
            moduli: &moduli,
            exponents: &exponents,
            exponent_bits: 33,
            bases: &bases,
            out: &mut out,
        };
        backend.exponentiate(powers).unwrap();
        out
    };
    assert!(run(backend) == run(&Serial));
}

#[test]
fn portable_backends() {
    let three = 3.try_into().unwrap();
    check("serial", &Serial);
    check("auto", &Auto::new().unwrap());
    check("cpu", &Cpu::with_threads(three).unwrap());
    check("parallel", &Parallel::with_threads(Serial, three).unwrap());
}

#[allow(unused_macros)] // On targets without lanes.
macro_rules! simd_backend {
    ($name:ident: $Backend:ident) => {
        #[test]
        fn $name() {
            let backend = batch_modexp::backend::$Backend::new();
            let backend = backend.ok_or("the processor lacks the instructions");
            if let Some(backend) = need::available(stringify!($name), backend) {
                check(stringify!($name), &backend);
                let parallel = Parallel::with_threads(backend, 3.try_into().unwrap());
                check(
                    concat!(stringify!($name), " on threads"),
                    &parallel.unwrap(),
                );
            }
        }
    };
}
each_simd_backend!(simd_backend);

#[cfg(feature = "cuda")]
#[test]
fn cuda() {
    if let Some(cuda) = need::available("cuda", batch_modexp::backend::Cuda::new()) {
        check("cuda", &cuda);
        check_many(&cuda);
        check("auto with GPUs", &Auto::with_cuda(cuda));
    }
}

/// Lengths that do not fit together are refused. Engines and devices make the same check.
#[test]
fn lengths_are_checked() {
    let params = BoxedMontyParams::new(Odd::new(BoxedUint::max(128)).unwrap());
    let modulus = ModulusRef::of(params.as_ref());
    static NUMBERS: [Limb; 4] = [Limb::ONE; 4];
    let panics = |change: &dyn Fn(&mut SecretPowers<'_>)| {
        let mut out = [Limb::ZERO; 4];
        let mut powers = SecretPowers {
            moduli: &[modulus; 2],
            exponents: &[&NUMBERS[..1]; 2],
            exponent_bits: Limb::BITS,
            bases: &NUMBERS,
            out: &mut out,
        };
        change(&mut powers);
        let call = std::panic::AssertUnwindSafe(|| Serial.exponentiate(powers));
        std::panic::catch_unwind(call).is_err()
    };
    let wide = BoxedMontyParams::new(Odd::new(BoxedUint::max(16_384 + Limb::BITS)).unwrap());
    let wide_modulus = [ModulusRef::of(wide.as_ref())];
    let many = vec![Limb::ONE; wide_modulus[0].limbs.len()];
    let no_constant = ModulusRef { r2: &[], ..modulus };
    assert!(!panics(&|_| ()));
    assert!(panics(&|powers| powers.bases = &NUMBERS[..2]));
    assert!(panics(&|powers| powers.exponents = &powers.exponents[..1]));
    assert!(panics(&|powers| powers.exponent_bits += 1));
    assert!(panics(&|powers| powers.moduli = &powers.moduli[..1]));
    let with = |modulus: ModulusRef<'_>, limbs: &[Limb]| {
        let mut out = vec![Limb::ZERO; limbs.len()];
        let powers = SecretPowers {
            moduli: &[modulus],
            exponents: &[&NUMBERS],
            exponent_bits: 1,
            bases: limbs,
            out: &mut out,
        };
        let call = std::panic::AssertUnwindSafe(|| Serial.exponentiate(powers));
        std::panic::catch_unwind(call).is_err()
    };
    assert!(!with(modulus, &NUMBERS[..2]));
    assert!(with(no_constant, &NUMBERS[..2]));
    assert!(with(wide_modulus[0], &many));
}
