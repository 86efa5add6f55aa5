//! NVIDIA GPUs, with no dependency but the driver.
//!
//! The crate contains the kernels as PTX (see `kernels/`), which the driver compiles when a width
//! is first used. Building needs no CUDA toolkit. The driver library is looked for at run time;
//! [`Cuda::probe`] reports if there is none.
//!
//! Any chip since Volta (compute capability 7.0) and any driver since 450 will do (in a tree that
//! builds cudarc for CUDA 13: since 580). Chips for games have few double-precision units. There,
//! exponentiations use kernels in 32-bit integers (`docs/int.md`), and RSA is slow.
//!
//! ```
//! use batch_modexp::backend::Cuda;
//!
//! match Cuda::probe() {
//!     Ok(devices) => devices.iter().for_each(|device| println!("{device}")),
//!     Err(reason) => println!("no GPU: {reason}"),
//! }
//! ```

// Only RSA has chunks of several launches, blinding and errors of a batch.
#![cfg_attr(not(feature = "rsa"), allow(dead_code))]

mod calibration;
#[cfg(feature = "rsa")]
pub(crate) mod crt;
pub(crate) mod family;
pub(crate) mod feed;
mod fixed_base;
mod modexp;
pub(crate) mod powers;
pub(crate) mod runtime;

use alloc::string::String;
use alloc::vec::Vec;
use core::num::NonZeroUsize;

use batch_modexp_core::width;
use batch_modexp_core::{BatchModExp, BatchModMul, Error, ModExp, ModMul};
use batch_modexp_cpu::Cpu;
use crypto_bigint::Unsigned;

use self::family::{Entry, Plan};
use self::feed::HostPool;
use self::runtime::device::{Device, Devices};

pub use self::calibration::Calibration;
pub(crate) use self::calibration::ProcessorCosts;
pub use self::family::{
    Entry as EntryPoint, Tuning, fastest_entry_point, serving as entry_points, widths,
};
pub use self::fixed_base::CudaFixedBase;
pub use self::runtime::device::Timing;
pub use self::runtime::probe::DeviceInfo;
#[doc(inline)]
pub use batch_modexp_core::window::Window;
#[doc(inline)]
pub use batch_modexp_core::{CalibrationFault, DeviceFault, Unavailable};

/// Computes batches on one or several GPUs.
///
/// Instances of up to [`MAX_BITS`](Self::MAX_BITS) bits run on the devices. Wider ones, and those
/// with exponents longer than their modulus, run on the host's threads; a batch may mix both. The
/// result does not depend on where it was computed. Products run on the host's threads.
///
/// Bases, exponents, moduli and results pass through buffers in pinned host memory and in device
/// memory. The buffers belong to this value and grow to the largest batch. They are wiped after
/// each call, also after an error or a panic, and on drop. Launches and allocations depend only on
/// public facts: the number of instances, their widths, which of them share a modulus or key,
/// `exponent_bits`, and the number of calls under way.
///
/// Calls from several threads share a device. Each call has one slot for each chunk, at most four;
/// a device has sixteen slots. Four large calls, or sixteen small ones, therefore run at a time,
/// and the host's part of one overlaps with the device's part of others. If no slots are free,
/// calls wait in FIFO order. Kernels are chosen for the sum of all calls under way, assuming that
/// they are alike.
///
/// By default, streams of different calls may have to wait for each other. More than about eight
/// concurrent calls overlap better with the environment variable `CUDA_DEVICE_MAX_CONNECTIONS` set
/// to 32 at the start of the process.
///
/// A batch uses the kernel that should finish first. The estimates come from times on an H200.
/// [`calibrate`](Self::calibrate) measures the devices at hand instead, and
/// [`with_calibration`](Self::with_calibration) applies earlier measurements.
///
/// # Devices that fail
///
/// Some errors, such as an uncorrectable memory error, make a device unusable until the process
/// ends. Such a device is set aside: others finish its share of the call, later calls do without
/// it, and [`lost`](Self::lost) lists it. When the last device is lost, this call and all later
/// ones return an error; [`Auto`](super::Auto) then uses the processor.
///
/// # Forks
///
/// CUDA does not survive a fork. In a forked child every call for the devices returns
/// [`Error::Forked`], and dropping this value leaves the devices to the parent.
#[derive(Debug)]
pub struct Cuda {
    devices: Devices,
    /// Computes products and instances without a kernel, and copies numbers.
    host: Cpu,
}

/// A device that is unusable until the process ends.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct LostDevice {
    /// The device's number, as in [`DeviceInfo::ordinal`].
    pub ordinal: usize,
    /// The driver's name for the error, such as `CUDA_ERROR_LAUNCH_FAILED`.
    pub error: String,
}

impl Cuda {
    /// The widest modulus that runs on a device, in bits.
    pub const MAX_BITS: u32 = 8192;

    /// The devices that this backend can use, or the reason why there are none. Never panics, and
    /// does not need an installed driver.
    ///
    /// # Errors
    ///
    /// [`Unavailable`] says what is missing and how to fix it.
    pub fn probe() -> Result<Vec<DeviceInfo>, Unavailable> {
        runtime::probe::devices()
    }

    /// Uses every device that [`probe`](Self::probe) finds.
    ///
    /// # Errors
    ///
    /// [`Error::CudaUnavailable`] if there is none, [`Error::Cuda`] if one of them fails, and
    /// [`Error::ThreadPool`] if the operating system refuses the host's threads.
    pub fn new() -> Result<Self, Error> {
        Self::open(&Self::probe()?, None)
    }

    /// Uses the devices with the given numbers, as in [`DeviceInfo::ordinal`]. A device that is
    /// named more than once works on several shares of a batch at a time.
    ///
    /// # Errors
    ///
    /// The errors of [`new`](Self::new), and [`Unavailable::NoSuchDevice`] for a number that does
    /// not exist.
    pub fn with_devices(ordinals: &[usize]) -> Result<Self, Error> {
        Self::named(ordinals, None)
    }

    /// Uses these devices, and as many host threads.
    pub(crate) fn named(ordinals: &[usize], threads: Option<NonZeroUsize>) -> Result<Self, Error> {
        let found = Self::probe()?;
        let wanted = ordinals.iter().map(|&ordinal| {
            let device = found.iter().find(|device| device.ordinal() == ordinal);
            device.cloned().ok_or(Unavailable::NoSuchDevice { ordinal })
        });
        let wanted: Vec<_> = wanted.collect::<Result<_, _>>()?;
        if wanted.is_empty() {
            return Err(Unavailable::NoDevice.into());
        }
        Self::open(&wanted, threads)
    }

    pub(crate) fn open(
        devices: &[DeviceInfo],
        threads: Option<NonZeroUsize>,
    ) -> Result<Self, Error> {
        Ok(Self {
            devices: Devices::open(devices)?,
            host: threads.map_or_else(Cpu::new, Cpu::with_threads)?,
        })
    }

    /// Sets the number of host threads that copy, check, and compute instances without a kernel.
    ///
    /// Calling threads and the threads that drive devices come in addition. The default is one
    /// thread for each core that the process may use.
    ///
    /// # Errors
    ///
    /// [`Error::ThreadPool`] if the operating system refuses the threads.
    pub fn with_host_threads(self, threads: NonZeroUsize) -> Result<Self, Error> {
        let host = Cpu::with_threads(threads)?;
        Ok(Self { host, ..self })
    }

    /// The number of host threads.
    #[must_use]
    pub fn host_threads(&self) -> usize {
        self.host.threads()
    }

    /// The devices of this backend, including those that are [`lost`](Self::lost).
    pub fn devices(&self) -> impl Iterator<Item = &DeviceInfo> {
        self.devices.iter().map(|device| &device.info)
    }

    /// The devices that were set aside after an error.
    ///
    /// A defect of one device does not affect the others. After some program faults, such as an
    /// invalid address, the driver gives up all devices of the process at once.
    pub fn lost(&self) -> impl Iterator<Item = LostDevice> {
        self.devices.iter().filter_map(|device| {
            Some(LostDevice {
                ordinal: device.info.ordinal(),
                error: device.lost()?.into(),
            })
        })
    }

    /// Compiles the kernels for moduli of `bits` bits, so that the first call need not.
    ///
    /// Widths above [`MAX_BITS`](Self::MAX_BITS) need no kernels. RSA has further kernels, which
    /// `prepare_private_op` compiles (feature `rsa`).
    ///
    /// # Errors
    ///
    /// [`Error::Cuda`] if the driver cannot compile or load a kernel, [`Error::Forked`] in a forked
    /// child.
    pub fn prepare(&self, bits: u32) -> Result<(), Error> {
        self.compile(family::serving(bits).collect())
    }

    /// Compiles kernels for every device that can run them.
    pub(crate) fn compile(&self, entries: Vec<&'static Entry>) -> Result<(), Error> {
        self.devices.check()?;
        for device in self.devices.in_use() {
            for entry in entries.iter().filter(|entry| entry.runs_on(&device.info)) {
                device.kernel(entry)?;
            }
        }
        Ok(())
    }

    /// Like [`batch_mod_exp`](BatchModExp::batch_mod_exp), with choices of the caller. For
    /// measurements.
    ///
    /// # Errors
    ///
    /// The errors of [`batch_mod_exp`](BatchModExp::batch_mod_exp), and [`Error::ModulusWidth`] for
    /// a modulus of more than [`MAX_BITS`](Self::MAX_BITS) bits.
    ///
    /// # Panics
    ///
    /// If `batch` and `out` differ in length.
    pub fn batch_mod_exp_tuned<U: Unsigned + Sync + Send>(
        &self,
        batch: &[ModExp<'_, U>],
        exponent_bits: u32,
        out: &mut [U],
        tuning: Tuning,
    ) -> Result<(), Error> {
        self.check_and_run(batch, exponent_bits, out, Self::MAX_BITS, tuning)
    }

    /// The cost on the devices of all batches since the last call of this function. For
    /// measurements, by one caller at a time. A calibration calls it too.
    pub fn take_timing(&self) -> Timing {
        let mut sum = Timing::default();
        for timing in self.devices.iter().map(Device::take_timing) {
            sum.kernel = sum.kernel.saturating_add(timing.kernel);
            sum.chunks = sum.chunks.saturating_add(timing.chunks);
        }
        sum
    }

    /// The backend of the processor, for instances without a kernel.
    pub(crate) fn host(&self) -> &Cpu {
        &self.host
    }

    /// The estimated time in milliseconds for `count` exponentiations modulo numbers of `bits` bits
    /// on the devices. `None` if none has a kernel.
    pub(crate) fn predicted_ms(&self, bits: u32, exponent_bits: u32, count: usize) -> Option<f64> {
        self.devices.forecast(count, |device, share| {
            let plan = Plan::new(bits, exponent_bits, share, device, Tuning::default());
            plan.map(|plan| plan.milliseconds)
        })
    }

    /// Fails in a forked child, and if all devices are lost.
    pub(crate) fn check(&self) -> Result<(), Error> {
        self.devices.check()
    }

    /// Whether no device is usable: all are lost, or this is a forked child.
    pub(crate) fn is_over(&self) -> bool {
        self.check().is_err()
    }

    /// Whether a device has a kernel for moduli of `bits` bits.
    pub(crate) fn has_kernel(&self, bits: u32) -> bool {
        let mut devices = self.devices.in_use();
        devices.any(|device| family::serving(bits).any(|entry| entry.runs_on(&device.info)))
    }

    /// The host threads, for copies and other work beside the devices.
    pub(crate) fn host_pool(&self) -> HostPool<'_> {
        HostPool(Some(self.host.parallel().workers()))
    }
}

impl<U: Unsigned + Sync + Send> BatchModExp<U> for Cuda {
    type Error = Error;

    fn batch_mod_exp(
        &self,
        batch: &[ModExp<'_, U>],
        exponent_bits: u32,
        out: &mut [U],
    ) -> Result<(), Error> {
        self.check_and_run(
            batch,
            exponent_bits,
            out,
            width::MAX_BITS,
            Tuning::default(),
        )
    }
}

/// Products run on the host's threads, also in a forked child and without a usable device.
///
/// Copying numbers between host and device takes longer than multiplying them on the host.
impl<U: Unsigned + Sync + Send> BatchModMul<U> for Cuda {
    type Error = Error;

    fn batch_mod_mul(&self, batch: &[ModMul<'_, U>], out: &mut [U]) -> Result<(), Error> {
        self.host.batch_mod_mul(batch, out)
    }

    fn batch_monty_mul(&self, batch: &[ModMul<'_, U>], out: &mut [U]) -> Result<(), Error> {
        self.host.batch_monty_mul(batch, out)
    }
}

#[cfg(test)]
mod tests;
