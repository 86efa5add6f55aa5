//! Powers of fixed bases and products of powers, which never go to a GPU.

use batch_modexp_core::powers::{HasPowerEngine, PowerEngine};

use super::{Auto, Chosen};

/// On the processor, by whatever computes exponentiations there, also with GPUs.
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
