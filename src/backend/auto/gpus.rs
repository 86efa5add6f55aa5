//! GPUs for [`Auto`]: which ones it takes, and what it says of them.

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::num::NonZeroUsize;

use batch_modexp_core::{Error, Unavailable};

use super::{AS_ASKED, Auto, Both, Chosen, count_of, name_of};
use crate::backend::Cuda;
use crate::backend::cuda::{Calibration, CalibrationFault, DeviceInfo, LostDevice};

impl Auto {
    /// Uses the GPUs with these numbers, as in [`DeviceInfo::ordinal`], and `threads` threads on
    /// the host (`None`: one for each core that the process may use).
    ///
    /// # Errors
    ///
    /// The errors of [`Cuda::with_devices`].
    pub fn on_devices(ordinals: &[usize], threads: Option<NonZeroUsize>) -> Result<Self, Error> {
        let cuda = Cuda::named(ordinals, threads)?;
        Ok(Self::with_both(cuda, true, AS_ASKED))
    }

    /// Uses these GPUs, whatever their double precision, together with the processor, on the GPUs'
    /// host threads.
    ///
    /// Each batch goes to the side that should finish sooner, as with
    /// [`with_gpus`](Self::with_gpus). Use it on chips that have not been measured, if a
    /// [calibration](Self::calibrate) shows that they are faster.
    ///
    /// The caller thereby allows secrets to leave the host.
    #[must_use]
    pub fn with_cuda(cuda: Cuda) -> Self {
        Self::with_both(cuda, false, AS_ASKED)
    }

    /// Measures GPUs and processor for moduli of these widths, in bits, and then chooses by the
    /// results.
    ///
    /// The measurements decide both the kernel and the side. See [`Cuda::calibrate`]. GPUs that
    /// were asked for by name are measured without the processor.
    ///
    /// # Errors
    ///
    /// The errors of [`Cuda::calibrate`], and [`CalibrationFault::NoGpu`] without GPUs.
    pub fn calibrate(&mut self, widths: &[u32]) -> Result<Calibration, Error> {
        match &mut self.chosen {
            Chosen::Both(both) => both.calibrate(widths),
            Chosen::Cpu(_) => Err(CalibrationFault::NoGpu.into()),
        }
    }

    /// Applies earlier measurements. A calibration by [`Cuda::calibrate`] does not cover the
    /// processor; its widths are then measured on first use.
    ///
    /// # Errors
    ///
    /// [`Error::Calibration`] if the calibration is for other GPUs or another backend of the
    /// processor, or if there are no GPUs.
    pub fn with_calibration(mut self, calibration: &Calibration) -> Result<Self, Error> {
        match &mut self.chosen {
            Chosen::Both(both) => both.apply(calibration)?,
            Chosen::Cpu(_) => return Err(CalibrationFault::NoGpu.into()),
        }
        Ok(self)
    }

    pub(super) fn with_both(cuda: Cuda, only_gpus: bool, why: &str) -> Self {
        let names: Vec<_> = cuda.devices().map(DeviceInfo::name).collect();
        let mut reason = alloc::format!("{why}, {}", names.join(", "));
        if !only_gpus {
            reason += "; small batches on the processor, ";
            reason += name_of(cuda.host());
        }
        Self::new_with(Chosen::Both(Both::new(cuda, only_gpus)), reason)
    }
}

/// The GPUs with fast double precision, without those that do not start, or the reason for having
/// none.
///
/// # Errors
///
/// [`Error::ThreadPool`] if the operating system refuses the host's threads.
pub(super) fn fast_ones(threads: Option<NonZeroUsize>) -> Result<Result<Cuda, String>, Error> {
    let devices = match Cuda::probe() {
        Ok(devices) => devices,
        // Without the advice to install one.
        Err(Unavailable::NoDriver) => return Ok(Err("no NVIDIA driver".into())),
        Err(reason) => return Ok(Err(reason.to_string())),
    };
    let fast = devices.iter().filter(|device| device.is_fast());
    let fast: Vec<_> = fast.map(DeviceInfo::ordinal).collect();
    if fast.is_empty() {
        return Ok(Err("all have slow double precision".into()));
    }
    start(fast, |ordinals| Cuda::named(ordinals, threads))
}

/// Starts as many of the GPUs as can be started: the others compute without one that fails. The
/// reason for having none is the error of the last one.
fn start<T>(
    mut ordinals: Vec<usize>,
    open: impl Fn(&[usize]) -> Result<T, Error>,
) -> Result<Result<T, String>, Error> {
    loop {
        let error = match open(&ordinals) {
            Ok(opened) => return Ok(Ok(opened)),
            // The processor lacks the threads too.
            Err(error @ Error::ThreadPool { .. }) => return Err(error),
            Err(error) => error,
        };
        let failed = match error {
            Error::Cuda { device, .. } => ordinals.iter().position(|&at| at == device),
            _ => None,
        };
        match failed {
            Some(failed) if ordinals.len() > 1 => ordinals.remove(failed),
            _ => return Ok(Err(error.to_string())),
        };
    }
}

/// The reason for using the processor in place of GPUs: all are lost, or this is a forked child.
pub(super) fn why_without_gpu(lost: impl Iterator<Item = LostDevice>, threads: usize) -> String {
    let lost: Vec<_> = lost
        .map(|LostDevice { ordinal, error }| alloc::format!("device {ordinal}: {error}"))
        .collect();
    let what = match lost.as_slice() {
        [] => String::from("GPUs cannot be used in a forked child"),
        lost => alloc::format!("all GPUs are lost ({})", lost.join(", ")),
    };
    alloc::format!("{what}, {}", count_of(threads))
}

#[cfg(test)]
mod tests {
    use batch_modexp_core::DeviceFault;

    use super::*;

    #[test]
    fn what_is_said_of_gpus_that_are_gone() {
        let lost = [3, 5].map(|ordinal| LostDevice {
            ordinal,
            error: String::from("CUDA_ERROR_ECC_UNCORRECTABLE"),
        });
        assert_eq!(
            why_without_gpu(lost.into_iter(), 8),
            "all GPUs are lost (device 3: CUDA_ERROR_ECC_UNCORRECTABLE, device 5: \
             CUDA_ERROR_ECC_UNCORRECTABLE), 8 threads"
        );
        assert_eq!(
            why_without_gpu([].into_iter(), 1),
            "GPUs cannot be used in a forked child, one thread"
        );
    }

    #[test]
    fn a_gpu_that_does_not_start_does_not_disable_the_others() {
        let start_without = |broken: &'static [usize]| {
            start(alloc::vec![0, 1, 2, 5], move |ordinals| {
                let failed = ordinals.iter().find(|ordinal| broken.contains(ordinal));
                match failed {
                    Some(&device) => Err(Error::Cuda {
                        device,
                        fault: DeviceFault::OutOfMemory,
                    }),
                    None => Ok(ordinals.to_vec()),
                }
            })
        };
        assert_eq!(start_without(&[]), Ok(Ok(alloc::vec![0, 1, 2, 5])));
        assert_eq!(start_without(&[1]), Ok(Ok(alloc::vec![0, 2, 5])));
        assert_eq!(start_without(&[0, 5]), Ok(Ok(alloc::vec![1, 2])));
        let last = Error::Cuda {
            device: 5,
            fault: DeviceFault::OutOfMemory,
        };
        assert_eq!(start_without(&[0, 1, 2, 5]), Ok(Err(last.to_string())));
        // An error of no device would only repeat.
        let refused = |_: &[usize]| Err::<(), _>(Error::ThreadPool { threads: 3 });
        let error = Error::ThreadPool { threads: 3 };
        assert_eq!(start(alloc::vec![0, 1], refused), Err(error));
    }
}
