//! NVIDIA GPUs, with nothing but the driver.
//!
//! The kernels are in the crate as PTX (see `kernels/`), which the driver compiles when a width is first
//! used. Building needs no CUDA toolkit, and the driver library is looked for at run time; where there is
//! none, [`Cuda::probe`] says so. Any chip since Volta (compute capability 7.0) and any driver since 450
//! will do (in a tree that builds cudarc for CUDA 13: since 580); on chips whose double-precision units are cut down, as those for
//! games are, exponentiations go to kernels in 32-bit integers (`docs/int.md`), and RSA is slow.
//!
//! ```
//! use batch_modexp::backend::Cuda;
//!
//! match Cuda::probe() {
//!     Ok(devices) => devices.iter().for_each(|device| println!("{device}")),
//!     Err(reason) => println!("no GPU: {reason}"),
//! }
//! ```

mod calibration;
#[cfg(feature = "rsa")]
pub(crate) mod crt;
mod exponentiations;
pub(crate) mod family;
#[cfg(feature = "rsa")]
pub(crate) mod feed;
mod group;
mod inputs;
mod modexp;
mod mul;
pub(crate) mod plan;
#[cfg(feature = "rsa")]
pub(crate) mod public_powers;
pub(crate) mod registry;
pub(crate) mod runtime;
pub(crate) mod words;

use alloc::string::String;
use alloc::vec::Vec;
use core::num::NonZeroUsize;

use batch_modexp_core::checks::check_lengths;
use batch_modexp_core::{BatchModExp, Error, ModExp, Serial};
use batch_modexp_cpu::Cpu;
use crypto_bigint::Unsigned;

use self::family::entry::Entry;
use self::group::{Group, Instance};
use self::registry::SHIPPED;
use self::runtime::device::Device;
use self::runtime::pipeline::{Devices, Forecast};
use self::words::HostPool;

pub use self::calibration::Calibration;
pub(crate) use self::calibration::ProcessorCosts;
use self::plan::Plan;
pub use self::plan::{EntryPoint, Tuning, entry_points, fastest_entry_point, widths};
pub use self::runtime::pipeline::Timing;
pub use self::runtime::probe::DeviceInfo;
#[cfg(feature = "rsa")]
pub(crate) use self::runtime::records::Residence;
#[doc(inline)]
pub use batch_modexp_core::window::Window;
#[doc(inline)]
pub use batch_modexp_core::{CalibrationFault, DeviceFault, Unavailable};

/// Computes batches on one or several GPUs.
///
/// Instances of up to [`MAX_BITS`](Self::MAX_BITS) bits run on the devices; wider ones, which may stand in
/// the same batch, and those with exponents longer than the width of their modulus, run on the host's threads. The result does not depend on where it was computed.
/// So do products, of up to 512 bits on the devices.
///
/// Bases, exponents, moduli and results pass through buffers in pinned host memory and in device memory
/// that belong to this value, grow to the largest batch, are wiped after each call, whichever way it
/// ends, and once more on drop. What a call launches and allocates depends on the number of instances,
/// their widths, which of them share a modulus, `exponent_bits`, and how many other calls are under way: all public.
///
/// Calls from several threads share a device. Each has buffers for as many chunks as it is computed in, four at most, and there are
/// sixteen such sets: so four large calls are under way at a time, or sixteen small ones, whose host's part then passes while
/// the device computes others. Who finds too few waits, in the order in which calls come. Kernels are chosen as for a batch as large as
/// all calls under way make together, were they all alike. More than some eight calls at a time overlap better in a process that was started with the
/// environment's variable `CUDA_DEVICE_MAX_CONNECTIONS` at 32, which the driver reads; by default streams of different calls may have to wait for each other.
///
/// Of the kernels for a width the one is taken that should be done first. That is foretold from what an H200 takes, until
/// [`calibrate`](Self::calibrate) has measured the devices at hand, or [`with_calibration`](Self::with_calibration) tells what
/// was measured before.
///
/// # Devices that fail
///
/// After some errors, such as one that its memory's error correction reports, nothing works on a device until
/// the process ends. Such a device is set aside: others finish its share of the call, later calls do without
/// it, and [`lost`](Self::lost) tells of it. A call that the last device does not survive is an error, as are
/// all after it; [`Auto`](super::Auto) goes on with the processor then.
///
/// # Forks
///
/// CUDA does not outlive a fork: in a forked child every call returns [`Error::Forked`], and dropping this
/// value leaves the devices to the parent.
#[derive(Debug)]
pub struct Cuda {
    devices: Devices,
    /// For instances that no kernel is for, and for copies.
    host: Cpu,
}

/// A device on which nothing works any more in this process.
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
    pub const MAX_BITS: u32 = SHIPPED.max_bits();

    /// The devices that this backend can use, or the reason why there are none. Never panics, and needs
    /// no driver to be installed.
    ///
    /// # Errors
    ///
    /// [`Unavailable`] says what is missing and what to do about it.
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
        let devices = Self::probe()?;
        Self::open(&devices)
    }

    /// Uses the devices with the given numbers, as in [`DeviceInfo::ordinal`]. A device may be named more
    /// than once; it then works on several shares of a batch at a time.
    ///
    /// # Errors
    ///
    /// Those of [`new`](Self::new), and [`Unavailable::NoSuchDevice`] for a number that does not exist.
    pub fn with_devices(ordinals: &[usize]) -> Result<Self, Error> {
        let found = Self::probe()?;
        let wanted = ordinals.iter().map(|&ordinal| {
            let device = found.iter().find(|device| device.ordinal() == ordinal);
            device.cloned().ok_or(Unavailable::NoSuchDevice { ordinal })
        });
        let wanted: Vec<_> = wanted.collect::<Result<_, _>>()?;
        if wanted.is_empty() {
            return Err(Unavailable::NoDevice.into());
        }
        Self::open(&wanted)
    }

    fn open(devices: &[DeviceInfo]) -> Result<Self, Error> {
        Ok(Self {
            devices: Devices::open(devices)?,
            host: Cpu::new()?,
        })
    }

    /// Uses `threads` threads of the host, besides those that call and those that drive devices, to copy, to check, and for what does not run on
    /// a device; at first it uses as many as the process may use cores.
    ///
    /// # Errors
    ///
    /// [`Error::ThreadPool`] if the operating system refuses the threads.
    pub fn with_host_threads(self, threads: NonZeroUsize) -> Result<Self, Error> {
        let host = Cpu::with_threads(threads)?;
        Ok(Self { host, ..self })
    }

    /// The number of threads of the host.
    #[must_use]
    pub fn host_threads(&self) -> usize {
        self.host.threads()
    }

    /// The devices that it was made with, those that are [`lost`](Self::lost) too.
    pub fn devices(&self) -> impl Iterator<Item = &DeviceInfo> {
        self.devices.iter().map(Device::info)
    }

    /// The devices that were set aside after an error, and do not compute any more.
    ///
    /// What is wrong with one device alone leaves the others at work. With some faults of a program, such as an address
    /// that does not exist, the driver gives up all devices of the process at once.
    pub fn lost(&self) -> impl Iterator<Item = LostDevice> {
        self.devices.iter().filter_map(|device| {
            Some(LostDevice {
                ordinal: device.info().ordinal(),
                error: device.lost()?.into(),
            })
        })
    }

    /// Compiles the kernels for moduli of `bits` bits now rather than in the first call that needs them: for exponentiations, and for
    /// products if there are any. Widths above [`MAX_BITS`](Self::MAX_BITS) need none. RSA has kernels of its own, which
    /// `prepare_private_op` compiles (feature `rsa`).
    ///
    /// # Errors
    ///
    /// [`Error::Cuda`] if the driver cannot compile or load a kernel, [`Error::Forked`] in a forked child.
    pub fn prepare(&self, bits: u32) -> Result<(), Error> {
        self.compile(|| SHIPPED.serving(bits).chain(SHIPPED.multiplying(bits)))
    }

    /// Compiles those of some kernels that run on a device, for all devices.
    pub(crate) fn compile<E>(&self, entries: impl Fn() -> E) -> Result<(), Error>
    where
        E: Iterator<Item = &'static Entry>,
    {
        self.devices.check()?;
        let usable = self.devices.iter().filter(|device| device.lost().is_none());
        for device in usable {
            for entry in entries().filter(|entry| entry.runs_on(device.info())) {
                device.kernel(&entry.image)?;
            }
        }
        Ok(())
    }

    /// Like [`batch_mod_exp`](BatchModExp::batch_mod_exp), with choices that are otherwise made from the
    /// width, the number of instances and `exponent_bits`, and with the time that the kernels took. For
    /// measurements.
    ///
    /// # Errors
    ///
    /// Those of [`batch_mod_exp`](BatchModExp::batch_mod_exp), and [`Error::ModulusWidth`] for a modulus of
    /// more than [`MAX_BITS`](Self::MAX_BITS) bits.
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
    ) -> Result<Timing, Error>
    where
        Serial: BatchModExp<U, Error = Error>,
    {
        self.check_and_run(batch, exponent_bits, out, Self::MAX_BITS, tuning)
    }

    /// The processor, for what does not run on a device.
    pub(crate) fn host(&self) -> &Cpu {
        &self.host
    }

    /// The time in milliseconds that the devices should take for `count` exponentiations modulo numbers of `bits` bits;
    /// `None` if one of them has no kernel for it.
    pub(crate) fn foreseen_ms(&self, bits: u32, exponent_bits: u32, count: usize) -> Option<f64> {
        self.slowest_ms(count, |device, share| {
            let tuning = Tuning::default();
            let plan = Plan::new(SHIPPED, bits, exponent_bits, share, device, tuning)?;
            Some(plan.forecast)
        })
    }

    /// The time in milliseconds until the last device has done its share of `count` instances; `None` if one of them cannot.
    ///
    /// As foretold, whatever calls have taken: the first of them allocates, and who compares times with this has measurements of its own.
    fn slowest_ms(
        &self,
        count: usize,
        forecast: impl Fn(&DeviceInfo, usize) -> Option<Forecast>,
    ) -> Option<f64> {
        let usable = || self.devices.iter().filter(|device| device.lost().is_none());
        let share = count.div_ceil(usable().count().max(1));
        let times = usable().map(|device| Some(forecast(device.info(), share)?.milliseconds));
        times.reduce(|a, b| Some(a?.max(b?))).flatten()
    }

    /// Whether this process is not the one that the devices belong to, or all of them are lost.
    pub(crate) fn is_over(&self) -> bool {
        self.devices.check().is_err()
    }

    /// How many kernels were compiled for all devices.
    #[cfg(all(test, feature = "rsa"))]
    pub(crate) fn compiled(&self) -> usize {
        self.devices.iter().map(Device::compiled).sum()
    }

    /// Whether all buffers hold zeros only.
    #[cfg(all(test, feature = "rsa"))]
    pub(crate) fn is_wiped(&self) -> bool {
        self.devices.iter().all(Device::is_wiped)
    }

    /// Takes all devices for lost, which they are not.
    #[cfg(test)]
    pub(crate) fn inject_loss_of_all(&self, error: &str) {
        self.devices
            .iter()
            .for_each(|device| device.inject_loss(error));
    }

    /// Whether a device has a kernel for moduli of `bits` bits.
    pub(crate) fn has_kernel(&self, bits: u32) -> bool {
        let mut entries = SHIPPED.serving(bits);
        entries.any(|entry| self.devices().any(|device| entry.runs_on(device)))
    }

    /// Has parts of a batch checked, on all threads: one would take as long for many instances as the devices for a tenth of them.
    /// One group for each width, or the first error, in the order of the batch.
    ///
    /// # Panics
    ///
    /// If `batch` and `out` differ in length.
    fn checked<'a, I: Instance, U>(
        &self,
        batch: &'a [I],
        out: &[U],
        check: impl Fn(&[I]) -> Result<(), Error> + Sync,
    ) -> Result<Vec<Group<'a, I>>, Error> {
        check_lengths(batch, out);
        Group::by_width_unless(batch, self.host_pool(), |first, instances| {
            Some(check(instances).err()?.with_index(|index| first + index))
        })
    }

    /// The host's threads, for copies and other work beside the devices.
    pub(crate) fn host_pool(&self) -> HostPool<'_> {
        HostPool(self.host.inner().pool_here())
    }
}

impl<U: Unsigned + Sync + Send> BatchModExp<U> for Cuda
where
    Serial: BatchModExp<U, Error = Error>,
{
    type Error = Error;

    fn batch_mod_exp(
        &self,
        batch: &[ModExp<'_, U>],
        exponent_bits: u32,
        out: &mut [U],
    ) -> Result<(), Error> {
        self.check_and_run(batch, exponent_bits, out, u32::MAX, Tuning::default())
            .map(|_| ())
    }
}

#[cfg(test)]
mod tests;
