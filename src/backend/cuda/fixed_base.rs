//! Powers of one base by a table on the devices.

mod table;

use alloc::vec;
use alloc::vec::Vec;
use core::borrow::Borrow;

use batch_modexp_core::batch::check_lengths;
use batch_modexp_core::fixed_base::check_exponents;
use batch_modexp_core::secret::Secret;
use batch_modexp_core::width::{clear, place, width};
use batch_modexp_core::{BatchFixedBaseExp as _, Error, FixedBase};
use crypto_bigint::Unsigned;
use crypto_bigint::modular::MontyParams;

use self::table::{DeviceTable, ENTRIES, Entries, FixedJob, Inputs, TableShape, WINDOW_BITS};
use super::Cuda;
use super::family::{self, Entry, Operation, Tuning};
use super::feed::copy_in;
use super::powers::PowerJob;
use super::runtime::resident::Resident;

/// A table of powers of one base modulo one modulus, for exponents of up to a public length:
/// [`Cuda::fixed_base`].
///
/// Base, modulus and entries are secret. They are kept in host memory and, from the first use on, on
/// the devices, and wiped on drop. Threads share a table by reference.
pub struct CudaFixedBase<U> {
    table: Place<U>,
    /// A zero as wide as the modulus.
    zero: U,
    exponent_bits: u32,
    is_signed: bool,
}

/// The table of the side that computes.
enum Place<U> {
    Devices(DeviceTable),
    Host(FixedBase<U>),
}

impl<U> CudaFixedBase<U> {
    /// The length, in bits, of the longest exponents that the table serves.
    #[must_use]
    pub fn exponent_bits(&self) -> u32 {
        self.exponent_bits
    }

    /// Whether exponents are in two's complement: see [`Cuda::signed_fixed_base`].
    #[must_use]
    pub fn is_signed(&self) -> bool {
        self.is_signed
    }

    /// Bits in a digit of an exponent. Each digit costs one product.
    #[must_use]
    pub fn window_bits(&self) -> u32 {
        match &self.table {
            Place::Devices(_) => WINDOW_BITS,
            Place::Host(table) => table.window_bits(),
        }
    }

    /// The size of the table in octets, on each device and in host memory.
    #[must_use]
    pub fn bytes(&self) -> usize {
        match &self.table {
            Place::Devices(table) => table.words.len() * size_of::<u64>(),
            Place::Host(table) => table.bytes(),
        }
    }

    /// Whether devices compute with the table. Otherwise the processor does.
    #[must_use]
    pub fn is_on_devices(&self) -> bool {
        matches!(self.table, Place::Devices(_))
    }
}

/// # Powers of one base
///
/// The methods are those of [`BatchFixedBaseExp`](crate::BatchFixedBaseExp). Devices of compute
/// capability 9.0 (H100, H200) compute moduli of up to 2048 bits, with exponents that are no longer
/// than their class of 1024, 1536 or 2048 bits. All others are computed on the processor, with a
/// table for it. So is a modulus that is a multiple of one of at most 72 public primes of 29 bits,
/// which becomes public.
impl Cuda {
    /// Makes a table for powers of `base`, with exponents of up to `exponent_bits` bits, in at most
    /// `max_bytes` octets.
    ///
    /// The base, of any value, and the modulus are secret; `exponent_bits`, `max_bytes` and widths
    /// are public. On devices a digit has 5 bits. With 2048-bit exponents modulo 2048 bits a table
    /// then takes 7.6 MB, on each device and in host memory. Making it takes about as long as
    /// 15,000 exponentiations, and more in the first call, which loads the kernels.
    ///
    /// # Errors
    ///
    /// [`Error::ModulusWidth`] above 16,384 bits, [`Error::BaseWidth`], [`Error::TableBytes`] if
    /// `max_bytes` is too small, and the errors of devices.
    pub fn fixed_base<U: Unsigned + Sync + Send>(
        &self,
        base: &U,
        params: &MontyParams<U>,
        exponent_bits: u32,
        max_bytes: usize,
    ) -> Result<CudaFixedBase<U>, Error> {
        self.table(base, None, params, exponent_bits, max_bytes)
    }

    /// Makes a table for signed exponents, in two's complement of `exponent_bits` bits. `inverse`
    /// is the inverse of the base.
    ///
    /// # Errors
    ///
    /// Those of [`fixed_base`](Self::fixed_base), and [`Error::NotInverse`] if the product of base
    /// and inverse is not 1.
    pub fn signed_fixed_base<U: Unsigned + Sync + Send>(
        &self,
        base: &U,
        inverse: &U,
        params: &MontyParams<U>,
        exponent_bits: u32,
        max_bytes: usize,
    ) -> Result<CudaFixedBase<U>, Error> {
        self.table(base, Some(inverse), params, exponent_bits, max_bytes)
    }

    /// Writes `base ^ (exponents[i] mod 2^exponent_bits) mod modulus` to `out[i]`, the canonical
    /// value in `[0, modulus)`.
    ///
    /// Exponents are secret. Their number, their widths and `exponent_bits` are public. The length
    /// `exponent_bits` is at most that of the table; for a [signed](Self::signed_fixed_base) table
    /// it is equal. `BoxedUint` results get the width of the modulus.
    ///
    /// # Errors
    ///
    /// [`Error::TableExponentBits`] if the table does not serve that length,
    /// [`Error::ExponentBits`] if an exponent has fewer bits, [`Error::TableOfOtherBackend`] if no
    /// device of this backend has a kernel for the table, and the errors of devices. All of `out`
    /// is then zero.
    ///
    /// # Panics
    ///
    /// If `exponents` and `out` differ in length.
    pub fn batch_fixed_base_exp<U: Unsigned, E: Borrow<U>>(
        &self,
        table: &CudaFixedBase<U>,
        exponents: &[E],
        exponent_bits: u32,
        out: &mut [U],
    ) -> Result<(), Error> {
        check_lengths(exponents, out);
        let on_devices = match &table.table {
            Place::Devices(on_devices) => on_devices,
            Place::Host(on_host) => {
                let host = &self.host;
                return host.batch_fixed_base_exp(on_host, exponents, exponent_bits, out);
            }
        };
        let compute = |out: &mut [U]| {
            check_exponents(
                exponents,
                exponent_bits,
                (table.exponent_bits, table.is_signed),
            )?;
            let entry = on_devices.shape.entry;
            if !self.devices().any(|device| entry.runs_on(device)) {
                return Err(Error::TableOfOtherBackend);
            }
            let exponents: Vec<_> = exponents.iter().map(|x| x.borrow().as_limbs()).collect();
            let mut places: Vec<_> = out.iter_mut().map(|out| place(out, &table.zero)).collect();
            let job = FixedJob {
                table: on_devices,
                exponents: &exponents,
                exponent_bits,
                is_signed: table.is_signed,
                threads: self.host_pool(),
            };
            self.devices.run(&job, &mut places[..])
        };
        compute(out).inspect_err(|_| clear(out))
    }

    /// Makes a table on the devices if they have a kernel that takes the modulus, otherwise one of
    /// the host.
    fn table<U: Unsigned + Sync + Send>(
        &self,
        base: &U,
        inverse: Option<&U>,
        params: &MontyParams<U>,
        exponent_bits: u32,
        max_bytes: usize,
    ) -> Result<CudaFixedBase<U>, Error> {
        let host = |bits, max_bytes| match inverse {
            None => self.host.fixed_base(base, params, bits, max_bytes),
            Some(inverse) => self
                .host
                .signed_fixed_base(base, inverse, params, bits, max_bytes),
        };
        // The least table of the host also checks the base.
        host(0, usize::MAX)?;
        self.devices.check()?;
        let zero = U::zero_like(params.modulus().as_ref());
        let inputs = Inputs {
            base,
            inverse,
            params,
            exponent_bits,
        };
        let found = match self.fixed_kernels(width(&zero), exponent_bits) {
            Some(kernels) => self.device_table(kernels, &inputs, max_bytes)?,
            None => None,
        };
        Ok(CudaFixedBase {
            table: match found {
                Some(table) => Place::Devices(table),
                None => Place::Host(host(exponent_bits, max_bytes)?),
            },
            zero,
            exponent_bits,
            is_signed: inverse.is_some(),
        })
    }

    /// The kernels for the entries and for the powers, of devices that are not lost.
    fn fixed_kernels(&self, bits: u32, exponent_bits: u32) -> Option<[&'static Entry; 2]> {
        let kernel = |operation| {
            let mut kernels = family::narrowest(operation, bits);
            let devices = || self.devices.in_use();
            kernels.find(|entry| devices().any(|device| entry.runs_on(&device.info)))
        };
        let kernels = [
            kernel(Operation::FixedEntries)?,
            kernel(Operation::FixedExp)?,
        ];
        (exponent_bits <= kernels[1].bits).then_some(kernels)
    }

    /// Computes the entries. `None` if the kernel refuses the modulus.
    fn device_table<U: Unsigned + Sync + Send>(
        &self,
        [kernel, entry]: [&'static Entry; 2],
        inputs: &Inputs<'_, U>,
        max_bytes: usize,
    ) -> Result<Option<DeviceTable>, Error> {
        let shape = TableShape {
            entry,
            exponent_bits: inputs.exponent_bits,
        };
        let bytes = shape.words() * size_of::<u64>();
        if bytes > max_bytes {
            return Err(Error::TableBytes { bytes, max_bytes });
        }
        let size = kernel.result_words();
        let mut operands = Secret::new(vec![0; shape.rows() * ENTRIES * size]);
        let entries = Entries { kernel, inputs };
        let job = PowerJob::new(self, inputs.exponent_bits, Tuning::default(), &entries);
        let job = job.of_entries(kernel);
        let mut places: Vec<_> = operands.chunks_exact_mut(size).collect();
        self.devices.run(&job, &mut places[..])?;
        if kernel.family.is_refused(&operands[..size]) {
            return Ok(None);
        }
        let mut words = Secret::new(vec![0; shape.words()]);
        copy_in(
            inputs.params.modulus().as_ref().as_limbs(),
            &mut words[..entry.words()],
        );
        shape.arrange(&operands, &mut words);
        Ok(Some(DeviceTable {
            shape,
            words: Resident::new(words),
        }))
    }
}

#[cfg(test)]
mod tests;
