//! Measurements on a GPU: every kernel for exponentiations, by the clocks of the device and of the
//! host, and whole private operations.

use core::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use batch_modexp::backend::Cuda;
use batch_modexp::backend::cuda::{EntryPoint, Tuning, entry_points, widths};
use chacha20::ChaCha20Rng;
use crypto_bigint::Uint;

use crate::exponentiations::Inputs;
use crate::inputs::{EXPONENT_BITS, all};
use crate::private_ops;
use crate::subject::{Case, Subject};

/// Instances in a batch: a warp of most kernels.
const BATCH: usize = 32;

/// All pairs of classes, on every exponentiation kernel that a device of `cuda` runs, and on whole
/// private operations.
pub(crate) fn cases(cuda: &Arc<Cuda>) -> Vec<Case> {
    let mut cases = Vec::new();
    for bits in widths() {
        for entry_point in entry_points(bits) {
            match bits {
                512 => cases.extend(kernel::<8>(cuda, entry_point, false)),
                1024 => cases.extend(kernel::<16>(cuda, entry_point, false)),
                1536 => cases.extend(kernel::<24>(cuda, entry_point, false)),
                2048 => cases.extend(kernel::<32>(cuda, entry_point, false)),
                // The kernels of other widths are instances of the same templates.
                _ => {}
            }
        }
    }
    cases.extend(private_ops::cases_on_gpu(cuda));
    if let Some(entry_point) = entry_points(512).next() {
        cases.extend(kernel::<8>(cuda, entry_point, true));
    }
    cases
}

fn kernel<const LIMBS: usize>(
    cuda: &Arc<Cuda>,
    entry_point: &'static EntryPoint,
    is_control: bool,
) -> impl Iterator<Item = Case> {
    let name = format!(
        "{}{} {}, {BATCH} x {} bits",
        if is_control { "control " } else { "" },
        entry_point.family(),
        entry_point.name(),
        Uint::<LIMBS>::BITS
    );
    let classes = all::<LIMBS>().into_iter().enumerate();
    let classes = classes.filter(move |(_, classes)| classes.leaked.is_some() || !is_control);
    classes.map(move |(which, classes)| {
        let cuda = Arc::clone(cuda);
        Case {
            subject: name.clone(),
            classes: classes.name,
            is_control,
            clocks: &["kernel", "call"],
            make: Box::new(move || {
                let mut tuning = Tuning::default();
                tuning.entry_point = Some(entry_point);
                tuning.single_launch = true;
                Box::new(Kernel {
                    inputs: Inputs::<LIMBS>::new(BATCH, which),
                    cuda: Arc::clone(&cuda),
                    tuning,
                    is_control,
                    out: vec![Uint::ZERO; BATCH],
                })
            }),
        }
    })
}

/// A kernel with a batch.
struct Kernel<const LIMBS: usize> {
    inputs: Inputs<LIMBS>,
    cuda: Arc<Cuda>,
    tuning: Tuning,
    is_control: bool,
    out: Vec<Uint<LIMBS>>,
}

impl<const LIMBS: usize> Subject for Kernel<LIMBS> {
    fn prepare(&mut self, class: usize, rng: &mut ChaCha20Rng) {
        self.inputs.prepare(class, rng);
    }

    fn measure(&mut self) -> Vec<f64> {
        let batch = self.inputs.batch();
        // The control leaks the class by one digit more or less in all exponents.
        let more = if self.is_control {
            self.inputs.leaked().min(32) / 4
        } else {
            0
        };
        self.cuda.take_timing();
        let start = Instant::now();
        self.cuda
            .batch_mod_exp_tuned(&batch, EXPONENT_BITS + more, &mut self.out, self.tuning)
            .expect("a batch that every kernel takes");
        let call = start.elapsed();
        black_box(&self.out);
        let kernel = self.cuda.take_timing().kernel;
        vec![kernel.as_nanos() as f64, call.as_nanos() as f64]
    }
}
