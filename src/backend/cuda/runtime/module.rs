//! Kernels, as compiled by the driver for a device.
#![allow(unsafe_code)]

use alloc::collections::BTreeMap;
use alloc::ffi::CString;
use alloc::sync::{Arc, Weak};
use std::sync::Mutex;

use cudarc::driver::sys::{CUfunction, CUfunction_attribute, CUmodule};
use cudarc::driver::{CudaContext, DriverError, result};

use super::lock;
use crate::backend::cuda::family::Entry;

/// Dynamic shared memory that a block may have without asking, in bytes.
const SHARED_BYTES_WITHOUT_ASKING: u32 = 48 << 10;

/// A module, once it is loaded.
type Loading = Arc<Mutex<Option<Arc<Module>>>>;

/// The kernels that a device has loaded.
#[derive(Default)]
pub(super) struct Cache {
    /// Modules by family and file, which kernels share.
    modules: Mutex<BTreeMap<(&'static str, &'static str), Loading>>,
    /// Kernels by family and function.
    kernels: Mutex<BTreeMap<(&'static str, &'static str), Kernel>>,
}

impl Cache {
    /// The number of kernels.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        lock(&self.kernels).len()
    }

    /// The kernel of `entry`, loaded on first use for a device of `multiprocessors`.
    ///
    /// The driver compiles a module for seconds. Meanwhile those of other modules can be used.
    pub(super) fn kernel(
        &self,
        context: &Arc<CudaContext>,
        multiprocessors: u32,
        entry: &'static Entry,
    ) -> Result<Kernel, DriverError> {
        let [name, file] = [entry.function, entry.module].map(|name| (entry.key.family, name));
        if let Some(kernel) = lock(&self.kernels).get(&name) {
            return Ok(kernel.clone());
        }
        let loading = lock(&self.modules).entry(file).or_default().clone();
        let mut loading = lock(&loading);
        let module = match &mut *loading {
            Some(module) => module,
            empty => empty.insert(Arc::new(Module::load(context, entry)?)),
        };
        let kernel = Kernel::new(module, multiprocessors, entry)?;
        lock(&self.kernels).insert(name, kernel.clone());
        Ok(kernel)
    }
}

/// PTX that the driver has compiled and loaded.
struct Module {
    context: Arc<CudaContext>,
    module: CUmodule,
}

// SAFETY: the handle belongs to the context, which any thread may bind, and the driver's functions
// that take it may be called from any thread.
unsafe impl Send for Module {}
// SAFETY: as above; no method changes what the handle stands for.
unsafe impl Sync for Module {}

impl Module {
    /// Loads the module with the function of `entry`.
    fn load(context: &Arc<CudaContext>, entry: &Entry) -> Result<Self, DriverError> {
        context.bind_to_thread()?;
        let text = entry.ptx.text();
        // SAFETY: the context is bound, and the text ends in a zero byte.
        let module = unsafe { result::module::load_data(text.as_ptr().cast())? };
        Ok(Self {
            context: context.clone(),
            module,
        })
    }
}

impl Drop for Module {
    fn drop(&mut self) {
        if self.context.bind_to_thread().is_ok() {
            // SAFETY: the module was loaded in this context. No launch of it is under way, because
            // every call waits for its own. In a lost context there is nothing to unload.
            let _ = unsafe { result::module::unload(self.module) };
        }
    }
}

/// A kernel on a device.
#[derive(Clone)]
pub(crate) struct Kernel {
    pub(crate) entry: &'static Entry,
    /// Blocks that the device computes at a time.
    resident_blocks: u32,
    /// The driver's handle.
    pub(super) function: CUfunction,
    /// The module of the function. It stays loaded as long as its device is open.
    module: Weak<Module>,
}

// SAFETY: as for `Module`, to which the function belongs.
unsafe impl Send for Kernel {}
// SAFETY: as above.
unsafe impl Sync for Kernel {}

impl Kernel {
    fn new(
        module: &Arc<Module>,
        multiprocessors: u32,
        entry: &'static Entry,
    ) -> Result<Self, DriverError> {
        module.context.bind_to_thread()?;
        let name = CString::new(entry.function).unwrap_or_default();
        // SAFETY: the context is bound and has the module.
        let function = unsafe { result::module::get_function(module.module, name)? };
        if entry.shared_bytes > SHARED_BYTES_WITHOUT_ASKING {
            // SAFETY: the function belongs to the module.
            unsafe {
                result::function::set_function_attribute(
                    function,
                    CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                    entry.shared_bytes as i32,
                )?;
            }
        }
        // SAFETY: as above.
        let per_multiprocessor = unsafe {
            result::occupancy::max_active_block_per_multiprocessor(
                function,
                entry.threads as i32,
                entry.shared_bytes as usize,
            )?
        };
        Ok(Self {
            entry,
            resident_blocks: per_multiprocessor.max(1) as u32 * multiprocessors,
            function,
            module: Arc::downgrade(module),
        })
    }

    /// Whether the kernel can be launched in this context.
    pub(super) fn is_in(&self, context: &Arc<CudaContext>) -> bool {
        let module = self.module.upgrade();
        module.is_some_and(|module| module.context == *context)
    }

    /// Instances that the device computes at a time.
    pub(crate) fn resident_instances(&self) -> usize {
        self.resident_blocks as usize * self.entry.instances_per_block
    }

    /// The number of blocks for `count` instances. Blocks loop over instances beyond those that are
    /// resident, all for the same number of rounds.
    pub(crate) fn blocks(&self, count: usize) -> usize {
        let needed = count.div_ceil(self.entry.instances_per_block);
        let rounds = needed.div_ceil(self.resident_blocks as usize);
        needed.div_ceil(rounds.max(1))
    }

    /// Words of scratch memory for `count` instances, each with a table of `table_len` powers.
    pub(crate) fn scratch_words(&self, count: usize, table_len: usize) -> usize {
        let entry = self.entry;
        let entries = table_len.max(entry.family.fewest_entries());
        self.blocks(count) * entry.threads as usize * entry.scratch_doubles * entries
    }
}

#[cfg(test)]
mod tests;
