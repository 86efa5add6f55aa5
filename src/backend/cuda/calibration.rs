//! Running times of this machine, by which kernels are chosen in place of those of the H200 that the crate knows.

mod measure;
mod text;

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use batch_modexp_core::{CalibrationFault, Error};

use super::Cuda;
use super::registry::SHIPPED;
use super::runtime::costs::Costs;
use super::runtime::device::Device;
use super::runtime::probe::DeviceInfo;

/// What kernels take on the devices of this machine, and, if [`Auto`](crate::backend::Auto) has measured it, what
/// exponentiations take on its processor.
///
/// Without one, kernels are chosen by the times of an H200, scaled by what is known of other chips: predictions where
/// nobody has measured. [`Cuda::calibrate`] measures, once for a machine; the text that this value is
/// [displayed](core::fmt::Display) as may be kept, parsed by a later process, and given to [`Cuda::with_calibration`]:
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
/// A text is refused if it was changed, if it is of a version of the crate with other kernels, and by backends with a
/// device, a driver or a processor backend that it does not know ([`CalibrationFault`]). No result depends on a
/// calibration, and nothing secret is measured: the operands are fixed.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Calibration {
    devices: Vec<(Chip, Arc<Costs>)>,
    pub(crate) processor: Option<ProcessorCosts>,
}

/// What tells devices apart whose times differ.
#[derive(Clone, Debug, Eq, PartialEq)]
struct Chip {
    name: String,
    compute_capability: (i32, i32),
    multiprocessors: u32,
    /// The driver compiles the kernels.
    cuda_version: i32,
}

/// What a backend of the processor takes.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct ProcessorCosts {
    /// The backend's name, such as `ifma`.
    pub(crate) backend: String,
    /// For each width of moduli, in bits, what a thread takes for each bit of the exponents with as many instances as it
    /// computes at a time, while all threads do, in picoseconds.
    pub(crate) per_bit_ps: BTreeMap<u32, u64>,
}

impl Cuda {
    /// Measures every kernel for moduli of these widths, in bits, on each kind of device that it has, and from then on
    /// chooses by what came out. Other widths go by predictions, as before; those that there are no kernels for are passed
    /// over. [`widths`](super::widths) are all that there are kernels for; the widths of RSA are half of its keys'.
    ///
    /// Takes some seconds for all widths, and where the driver has not compiled the kernels before, minutes for that.
    /// Nothing else should use the devices meanwhile. All operands are fixed: nothing secret is measured.
    ///
    /// # Errors
    ///
    /// [`Error::Cuda`] if a device fails, [`Error::Forked`] in a forked child. The backend chooses as before then.
    pub fn calibrate(&mut self, widths: &[u32]) -> Result<Calibration, Error> {
        let calibration = self.measured(widths)?;
        self.apply(&calibration)?;
        Ok(calibration)
    }

    /// Chooses kernels by what was measured before.
    ///
    /// # Errors
    ///
    /// [`Error::Calibration`] if it knows nothing of one of the devices.
    pub fn with_calibration(mut self, calibration: &Calibration) -> Result<Self, Error> {
        self.apply(calibration)?;
        Ok(self)
    }

    /// Measures, and changes nothing.
    fn measured(&self, widths: &[u32]) -> Result<Calibration, Error> {
        self.devices.check()?;
        let mut devices = Vec::<(Chip, Arc<Costs>)>::new();
        for device in self.devices.iter().filter(|device| device.lost().is_none()) {
            let chip = Chip::of(device.info());
            if devices.iter().all(|(known, _)| *known != chip) {
                devices.push((chip, Arc::new(measure::costs(self, device, widths)?)));
            }
        }
        Ok(Calibration {
            devices,
            processor: None,
        })
    }

    /// All devices, or none.
    pub(crate) fn apply(&mut self, calibration: &Calibration) -> Result<(), Error> {
        let costs_of = |device: &Device| calibration.costs(device.info());
        self.devices
            .iter()
            .filter(|device| device.lost().is_none())
            .try_for_each(|device| costs_of(device).map(|_| ()))?;
        for device in self.devices.iter_mut() {
            if let Ok(costs) = costs_of(device) {
                device.set_costs(costs);
            }
        }
        Ok(())
    }

    /// What a call takes besides its kernels, in seconds, on the slowest device; `None` if that was not measured.
    pub(crate) fn call_seconds(&self) -> Option<f64> {
        let costs = self.devices().filter_map(DeviceInfo::costs);
        let slowest = costs.filter_map(|costs| costs.call_ns).max()?;
        Some(slowest as f64 * 1e-9)
    }
}

impl Calibration {
    /// What was measured of devices like this one.
    fn costs(&self, device: &DeviceInfo) -> Result<Arc<Costs>, CalibrationFault> {
        let chip = Chip::of(device);
        let mut known = self.devices.iter();
        let (_, costs) = known.find(|(known, _)| *known == chip).ok_or_else(|| {
            let name = chip.name.clone();
            CalibrationFault::OtherDevice { name }
        })?;
        Ok(costs.clone())
    }
}

impl Chip {
    fn of(device: &DeviceInfo) -> Self {
        Self {
            // As it comes back from a line of text.
            name: device
                .name()
                .split_whitespace()
                .collect::<Vec<_>>()
                .join(" "),
            compute_capability: device.compute_capability(),
            multiprocessors: device.multiprocessors(),
            cuda_version: device.cuda_version(),
        }
    }
}

/// Tells the kernels that are measured from those of other versions.
fn kernel_set() -> u64 {
    let modules = SHIPPED.exponentiating().map(|entry| entry.image.ptx);
    modules.fold(0, |all: u64, module| {
        all.rotate_left(7).wrapping_add(module.fingerprint)
    })
}

#[cfg(test)]
mod tests;
