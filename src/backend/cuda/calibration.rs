//! Running times of the user's machine, which replace those of an H200 when kernels are chosen.

mod measure;
mod text;

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use batch_modexp_core::{CalibrationFault, Error};

use super::Cuda;
use super::family;
use super::runtime::device::Device;
use super::runtime::probe::{Costs, DeviceInfo};

/// Measured times of kernels on the devices of a machine, and of its processor if
/// [`Auto`](crate::backend::Auto) measured it.
///
/// Without a calibration, kernels are chosen by the times of an H200, scaled to other chips; those
/// are predictions. [`Cuda::calibrate`] measures once for a machine. Its value can be
/// [displayed](core::fmt::Display) as text, kept, parsed by a later process, and given to
/// [`Cuda::with_calibration`]:
///
/// ```no_run
/// use batch_modexp::backend::{Cuda, cuda::{Calibration, widths}};
///
/// let mut cuda = Cuda::new()?;
/// let calibration = cuda.calibrate(&widths())?;
/// std::fs::write("calibration.txt", calibration.to_string())?;
///
/// // Another process, later:
/// let calibration: Calibration = std::fs::read_to_string("calibration.txt")?.parse()?;
/// let cuda = Cuda::new()?.with_calibration(&calibration)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// A changed text is refused, as is the text of a version of the crate with other kernels. Backends
/// refuse a calibration that lacks one of their devices, with its driver, or their processor
/// backend ([`CalibrationFault`]). No result depends on a calibration. Nothing secret is measured:
/// the operands are fixed.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Calibration {
    /// By [chip].
    devices: Vec<(String, Arc<Costs>)>,
    pub(crate) processor: Option<ProcessorCosts>,
}

/// Measured times of a backend of the processor.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct ProcessorCosts {
    /// The backend's name, such as `ifma`.
    pub(crate) backend: String,
    /// By width of the moduli in bits: picoseconds that a thread takes for each bit of the
    /// exponents, with as many instances as it computes at a time, while all threads compute.
    pub(crate) per_bit_ps: BTreeMap<u32, u64>,
}

impl Cuda {
    /// Measures every kernel for moduli of these widths, in bits, on each kind of device, and then
    /// chooses by the results.
    ///
    /// Other widths still use predictions. Widths without kernels are skipped.
    /// [`widths`](super::widths) lists all widths with kernels; RSA uses half the width of its
    /// keys.
    ///
    /// Takes some seconds for all widths, and minutes if the driver has to compile the kernels
    /// first. Nothing else should use the devices meanwhile. All operands are fixed: nothing secret
    /// is measured.
    ///
    /// # Errors
    ///
    /// [`Error::Cuda`] if a device fails, [`Error::Forked`] in a forked child. The choices then
    /// stay as they were.
    pub fn calibrate(&mut self, widths: &[u32]) -> Result<Calibration, Error> {
        self.devices.check()?;
        let mut devices = Vec::<(String, Arc<Costs>)>::new();
        for device in self.devices.iter().filter(|device| device.lost().is_none()) {
            let chip = chip(&device.info);
            if devices.iter().all(|(known, _)| *known != chip) {
                devices.push((chip, Arc::new(measure::costs(self, device, widths)?)));
            }
        }
        let calibration = Calibration {
            devices,
            processor: None,
        };
        self.apply(&calibration)?;
        Ok(calibration)
    }

    /// Chooses kernels by earlier measurements.
    ///
    /// # Errors
    ///
    /// [`Error::Calibration`] if the calibration lacks one of the devices.
    pub fn with_calibration(mut self, calibration: &Calibration) -> Result<Self, Error> {
        self.apply(calibration)?;
        Ok(self)
    }

    /// Applies a calibration to all devices, or to none.
    pub(crate) fn apply(&mut self, calibration: &Calibration) -> Result<(), Error> {
        let costs_of = |device: &Device| calibration.costs(&device.info);
        self.devices
            .iter()
            .filter(|device| device.lost().is_none())
            .try_for_each(|device| costs_of(device).map(|_| ()))?;
        for device in self.devices.iter_mut() {
            if let Ok(costs) = costs_of(device) {
                device.info.costs = Some(costs);
            }
        }
        Ok(())
    }

    /// Seconds of a call beyond its kernels, on the slowest device. `None` if that was not
    /// measured.
    pub(crate) fn call_seconds(&self) -> Option<f64> {
        let costs = self.devices().filter_map(|device| device.costs.as_ref());
        let slowest = costs.filter_map(|costs| costs.call_ns).max()?;
        Some(slowest as f64 * 1e-9)
    }
}

impl Calibration {
    /// The measured times for devices like this one.
    fn costs(&self, device: &DeviceInfo) -> Result<Arc<Costs>, CalibrationFault> {
        let chip = chip(device);
        let found = self.devices.iter().find(|(known, _)| *known == chip);
        found
            .map(|(_, costs)| costs.clone())
            .ok_or_else(|| CalibrationFault::OtherDevice {
                name: words(device.name()),
            })
    }
}

/// The properties by which devices with different times are told apart: compute capability, the CUDA
/// version of the driver, which compiles the kernels, the number of multiprocessors, and the name.
fn chip(device: &DeviceInfo) -> String {
    let (major, minor) = device.compute_capability();
    let (cuda, count, name) = (device.cuda_version, device.multiprocessors(), device.name());
    words(&alloc::format!("{major}.{minor} {cuda} {count} {name}"))
}

/// The words of a text, with a space between them, as a parsed text has them.
fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A fingerprint of the kernels that are measured, which differs between versions.
fn kernel_set() -> u64 {
    let modules = family::exponentiating().map(|entry| entry.ptx);
    modules.fold(0, |all: u64, module| {
        all.rotate_left(7).wrapping_add(module.fingerprint)
    })
}

#[cfg(test)]
mod tests;
