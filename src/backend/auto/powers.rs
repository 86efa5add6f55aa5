//! Powers of fixed bases and products of powers, which always run on the processor.

use batch_modexp_core::powers::{HasPowerEngine, PowerEngine};

use super::{Auto, Chosen};

/// The engine of the processor, even with GPUs.
impl HasPowerEngine for Auto {
    fn power_engine(&self) -> &dyn PowerEngine {
        match self.chosen() {
            Chosen::Serial(serial) => serial,
            Chosen::Cpu(cpu) => cpu.power_engine(),
            #[cfg(feature = "cuda")]
            Chosen::Cuda(cuda) => cuda.host().power_engine(),
            #[cfg(feature = "cuda")]
            Chosen::Both(both) => both.cuda().host().power_engine(),
        }
    }
}
