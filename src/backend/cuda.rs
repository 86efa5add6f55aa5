//! NVIDIA GPUs, with nothing but the driver.
//!
//! The kernels are in the crate as PTX (see `kernels/`), which the driver compiles when a width is first
//! used. Building needs no CUDA toolkit, and the driver library is looked for at run time; where there is
//! none, [`Cuda::probe`] says so. Any chip since Volta (compute capability 7.0) and any driver since 450
//! will do; chips whose double-precision units are cut down, as those for games are, are slow at this.
//!
//! ```
//! use batch_modexp::backend::Cuda;
//!
//! match Cuda::probe() {
//!     Ok(devices) => devices.iter().for_each(|device| println!("{device}")),
//!     Err(reason) => println!("no GPU: {reason}"),
//! }
//! ```

mod buffer;
mod device;
mod entry;
mod error;
mod group;
mod kernel;
#[cfg(feature = "sign")]
mod keys;
mod plan;
mod probe;
#[cfg(feature = "sign")]
mod rsa;
mod slot;

use alloc::vec::Vec;
use core::num::NonZeroUsize;
use core::time::Duration;

use crypto_bigint::{BoxedUint, Uint, Unsigned};

use self::device::Device;
use self::group::Group;
use super::{Parallel, Serial, check_batch, clear};
use crate::{BatchModExp, Error, ModExp, width};

pub use self::error::{DeviceFault, Unavailable};
pub use self::plan::{EntryPoint, Tuning, entry_points};
pub use self::probe::DeviceInfo;
#[cfg(feature = "sign")]
pub(crate) use self::{
    keys::KeyPlaces,
    rsa::{Class, RsaGroup, RsaKey, RsaLane},
};

/// Computes batches on one or several GPUs.
///
/// Instances of up to [`MAX_BITS`](Self::MAX_BITS) bits run on the devices; wider ones, which may stand in
/// the same batch, run on the host's threads. The result does not depend on where it was computed.
///
/// Bases, exponents, moduli and results pass through buffers in pinned host memory and in device memory
/// that belong to this value, grow to the largest batch, are wiped after each call, whichever way it
/// ends, and once more on drop. What a call launches and allocates depends on the number of instances,
/// their widths, which of them share a modulus, and `exponent_bits`: all public.
///
/// One call uses a device at a time; calls from several threads take turns.
#[derive(Debug)]
pub struct Cuda {
    devices: Vec<Device>,
    /// For instances that are too wide for the kernels, and for copies.
    host: Parallel<Serial>,
}

/// What a batch cost on the devices.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct Timing {
    /// The time from the start to the end of each kernel, by the device's clock, summed over all launches
    /// of the batch. Launches that overlap count in full each.
    pub kernel: Duration,
    /// The number of launches.
    pub launches: u32,
}

impl Cuda {
    /// The widest modulus that runs on a device, in bits.
    pub const MAX_BITS: u32 = entry::MAX_BITS;

    /// The devices that this backend can use, or the reason why there are none. Never panics, and needs
    /// no driver to be installed.
    ///
    /// # Errors
    ///
    /// [`Unavailable`] says what is missing and what to do about it.
    pub fn probe() -> Result<Vec<DeviceInfo>, Unavailable> {
        probe::devices()
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
        let devices = devices.iter().map(Device::open).collect::<Result<_, _>>()?;
        Ok(Self {
            devices,
            host: Parallel::new(Serial)?,
        })
    }

    /// Uses `threads` threads of the host to copy, and for what does not run on a device; at first it uses as
    /// many as the process may use cores.
    ///
    /// # Errors
    ///
    /// [`Error::ThreadPool`] if the operating system refuses the threads.
    pub fn with_host_threads(self, threads: NonZeroUsize) -> Result<Self, Error> {
        let host = Parallel::with_threads(Serial, threads)?;
        Ok(Self { host, ..self })
    }

    /// The number of threads of the host.
    #[must_use]
    pub fn host_threads(&self) -> usize {
        self.host.threads()
    }

    /// The devices that it uses.
    pub fn devices(&self) -> impl Iterator<Item = &DeviceInfo> {
        self.devices.iter().map(Device::info)
    }

    /// Compiles the kernels for moduli of `bits` bits now rather than in the first call that needs them.
    /// Widths above [`MAX_BITS`](Self::MAX_BITS) need none.
    ///
    /// # Errors
    ///
    /// [`Error::Cuda`] if the driver cannot compile or load a kernel.
    pub fn prepare(&self, bits: u32) -> Result<(), Error> {
        for device in &self.devices {
            for entry in entry::serving(bits) {
                device.kernel(entry)?;
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
    /// Those of [`batch_mod_exp`](BatchModExp::batch_mod_exp).
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
    ) -> Result<Timing, Error> {
        check_batch(batch, exponent_bits, out, Self::MAX_BITS)
            .and_then(|()| self.run(batch, exponent_bits, out, tuning))
            .inspect_err(|_| clear(out))
    }

    /// The threads that copy, for other work between launches.
    #[cfg(feature = "sign")]
    pub(crate) fn pool(&self) -> &rayon::ThreadPool {
        self.host.pool()
    }

    /// Computes all instances that are not too wide.
    fn run<U: Unsigned + Sync + Send>(
        &self,
        batch: &[ModExp<'_, U>],
        exponent_bits: u32,
        out: &mut [U],
        tuning: Tuning,
    ) -> Result<Timing, Error> {
        let mut timing = Timing::default();
        for group in Group::by_width(batch, exponent_bits, Self::MAX_BITS) {
            timing += device::run_on_all(&self.devices, self.host.pool(), &group, out, tuning)?;
        }
        Ok(timing)
    }

    /// Computes the instances that are too wide for the kernels on the host.
    fn run_wide<U: Unsigned + Sync + Send>(
        &self,
        batch: &[ModExp<'_, U>],
        exponent_bits: u32,
        out: &mut [U],
    ) -> Result<(), Error>
    where
        Serial: BatchModExp<U, Error = Error>,
    {
        let wide = group::wider_than(batch, Self::MAX_BITS);
        if wide.is_empty() {
            return Ok(());
        }
        let instances: Vec<_> = wide.iter().map(|&i| batch[i]).collect();
        let mut results: Vec<U> = instances
            .iter()
            .map(|instance| U::zero_like(instance.params.modulus().as_ref()))
            .collect();
        self.host
            .batch_mod_exp(&instances, exponent_bits, &mut results)?;
        // Results change places with what stood there before, and then all of that is wiped.
        for (&i, result) in wide.iter().zip(&mut results) {
            core::mem::swap(&mut out[i], result);
        }
        clear(&mut results);
        Ok(())
    }
}

impl core::ops::AddAssign for Timing {
    fn add_assign(&mut self, other: Self) {
        self.kernel += other.kernel;
        self.launches += other.launches;
    }
}

impl<const LIMBS: usize> BatchModExp<Uint<LIMBS>> for Cuda {
    type Error = Error;

    fn batch_mod_exp(
        &self,
        batch: &[ModExp<'_, Uint<LIMBS>>],
        exponent_bits: u32,
        out: &mut [Uint<LIMBS>],
    ) -> Result<(), Error> {
        check_batch(batch, exponent_bits, out, u32::MAX)
            .and_then(|()| self.run(batch, exponent_bits, out, Tuning::default()))
            .and_then(|_| self.run_wide(batch, exponent_bits, out))
            .inspect_err(|_| clear(out))
    }
}

impl BatchModExp<BoxedUint> for Cuda {
    type Error = Error;

    fn batch_mod_exp(
        &self,
        batch: &[ModExp<'_, BoxedUint>],
        exponent_bits: u32,
        out: &mut [BoxedUint],
    ) -> Result<(), Error> {
        check_batch(batch, exponent_bits, out, width::MAX_BITS)
            .and_then(|()| self.run(batch, exponent_bits, out, Tuning::default()))
            .and_then(|_| self.run_wide(batch, exponent_bits, out))
            .inspect_err(|_| clear(out))
    }
}
