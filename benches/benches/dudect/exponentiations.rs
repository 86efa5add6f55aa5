//! Exponentiations of every single-threaded backend.

use core::hint::black_box;
use core::num::NonZeroUsize;
use std::time::Instant;

use batch_modexp::backend::{Cpu, Serial};
use batch_modexp::{BatchModExp, Error, ModExp};
use chacha20::ChaCha20Rng;
use chacha20::rand_core::SeedableRng;
use crypto_bigint::{Choice, CtSelect, Uint};

use crate::inputs::{Chosen, Classes, EXPONENT_BITS, Input, all};
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
use crate::need;
use crate::simd::each_simd_backend;
use crate::subject::{Case, Subject};

/// Makes a backend on the thread that measures it.
type Make<const LIMBS: usize> = fn() -> Box<dyn BatchModExp<Uint<LIMBS>, Error = Error>>;

/// All pairs of classes on every backend that this machine has, and on the control.
pub(crate) fn cases() -> Vec<Case> {
    let mut cases = of_width::<8>("serial", 1, || Box::new(Serial));
    macro_rules! extend {
        ($name:ident: $Backend:ident) => {
            use batch_modexp::backend::$Backend;
            let (name, backend) = (stringify!($name), $Backend::new());
            let backend = backend.ok_or("the processor lacks the instructions");
            if need::available(name, backend).is_some() {
                let make: Make<8> = || Box::new($Backend::new().expect("it was there before"));
                cases.extend(of_width(name, $Backend::LANES, make));
                // At this width, a few instances are computed in words, or have their limbs across
                // four lanes each.
                for few in 1..=$Backend::LANES / 4 {
                    let make: Make<16> = || Box::new($Backend::new().expect("it was there before"));
                    cases.extend(of_width(name, few, make));
                }
            }
        };
    }
    each_simd_backend!(extend);
    // A vector of the widest backend, and one instance more, which uses other code.
    cases.extend(of_width::<8>("cpu", 9, || Box::new(one_thread())));
    let control: Make<8> = || Box::new(Serial);
    let leaking = (0..all::<8>().len()).filter(|which| all::<8>()[*which].leaked.is_some());
    cases.extend(leaking.map(|which| case("control", 1, control, which, true)));
    cases
}

/// All pairs of classes on a backend, in batches of `batch`.
fn of_width<const LIMBS: usize>(name: &str, batch: usize, make: Make<LIMBS>) -> Vec<Case> {
    let pairs = 0..all::<LIMBS>().len();
    pairs
        .map(|which| case(name, batch, make, which, false))
        .collect()
}

/// The best instructions of the processor, on the measuring thread.
pub(crate) fn one_thread() -> Cpu {
    Cpu::with_threads(NonZeroUsize::MIN).expect("no thread to start")
}

fn case<const LIMBS: usize>(
    name: &str,
    batch: usize,
    make: Make<LIMBS>,
    which: usize,
    is_control: bool,
) -> Case {
    Case {
        subject: format!("{name}, {batch} x {} bits", Uint::<LIMBS>::BITS),
        classes: all::<LIMBS>()[which].name,
        is_control,
        clocks: &["call"],
        make: Box::new(move || {
            Box::new(Exponentiations {
                inputs: Inputs::new(batch, which),
                backend: make(),
                is_control,
                out: vec![Uint::ZERO; batch],
            })
        }),
    }
}

/// A backend with a batch.
struct Exponentiations<const LIMBS: usize> {
    inputs: Inputs<LIMBS>,
    backend: Box<dyn BatchModExp<Uint<LIMBS>, Error = Error>>,
    is_control: bool,
    out: Vec<Uint<LIMBS>>,
}

impl<const LIMBS: usize> Subject for Exponentiations<LIMBS> {
    fn prepare(&mut self, class: usize, rng: &mut ChaCha20Rng) {
        self.inputs.prepare(class, rng);
    }

    fn measure(&mut self) -> Vec<f64> {
        let batch = self.inputs.batch();
        let start = Instant::now();
        self.backend
            .batch_mod_exp(&batch, EXPONENT_BITS, &mut self.out)
            .expect("a batch that every backend takes");
        if self.is_control {
            spend(self.inputs.leaked());
        }
        let time = start.elapsed();
        black_box(&self.out);
        vec![time.as_nanos() as f64]
    }
}

/// Steps that only the control takes; each takes some nanoseconds.
pub(crate) fn spend(steps: u32) {
    let mut value = 1u64;
    for _ in 0..steps {
        for _ in 0..4 {
            value = black_box(value.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1));
        }
    }
    black_box(value);
}

/// A batch whose inputs are at the same address for both classes.
pub(crate) struct Inputs<const LIMBS: usize> {
    chosen: Chosen<LIMBS>,
    classes: Classes<LIMBS>,
    /// Inputs of both classes; one is selected.
    both: [Vec<Input<LIMBS>>; 2],
    taken: Vec<Input<LIMBS>>,
}

impl<const LIMBS: usize> Inputs<LIMBS> {
    pub(crate) fn new(batch: usize, which: usize) -> Self {
        let chosen = Chosen::new();
        let mut rng = ChaCha20Rng::seed_from_u64(3);
        let taken: Vec<_> = (0..batch).map(|_| chosen.random(&mut rng)).collect();
        Self {
            chosen,
            classes: all().swap_remove(which),
            both: [taken.clone(), taken.clone()],
            taken,
        }
    }

    pub(crate) fn prepare(&mut self, class: usize, rng: &mut ChaCha20Rng) {
        for place in 0..self.taken.len() {
            let random = self.chosen.random(rng);
            for (inputs, change) in self.both.iter_mut().zip(self.classes.change) {
                inputs[place].clone_from(&random);
                change(&mut inputs[place], &self.chosen);
            }
        }
        // Selected by masks. When the same numbers were copied from one of two places, they took 1
        // ns of 6,800 longer on a Zen 4, which is a |t| of up to 36.
        let [zeroth, first] = &self.both;
        let is_first = Choice::from_u8_lsb(black_box(class as u8));
        for ((taken, zeroth), first) in self.taken.iter_mut().zip(zeroth).zip(first) {
            taken.base = zeroth.base.ct_select(&first.base, is_first);
            taken.exponent = zeroth.exponent.ct_select(&first.exponent, is_first);
            taken.params = zeroth.params.ct_select(&first.params, is_first);
        }
    }

    pub(crate) fn batch(&self) -> Vec<ModExp<'_, Uint<LIMBS>>> {
        let inputs = self.taken.iter();
        inputs
            .map(|input| ModExp::new(&input.base, &input.exponent, &input.params))
            .collect()
    }

    /// The number of steps by which the control leaks the class of its first input.
    pub(crate) fn leaked(&self) -> u32 {
        let leaked = self.classes.leaked.expect("classes of a control");
        leaked(&self.taken[0], &self.chosen)
    }
}
