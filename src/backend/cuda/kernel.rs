//! An entry point, compiled by the driver for one device.
#![allow(unsafe_code)]

use alloc::ffi::CString;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ffi::c_void;

use cudarc::driver::sys::{CUdeviceptr, CUfunction, CUfunction_attribute, CUmodule};
use cudarc::driver::{CudaContext, CudaStream, DriverError, result};

use super::entry::Entry;
use crate::window::Window;

/// Dynamic shared memory that a block may have without asking, in bytes.
const SHARED_BYTES_WITHOUT_ASKING: u32 = 48 << 10;

/// PTX that the driver has compiled and loaded.
pub(super) struct Module {
    context: Arc<CudaContext>,
    module: CUmodule,
}

// SAFETY: the handle belongs to the context, which any thread may bind, and the driver's functions that
// take it may be called from any thread.
unsafe impl Send for Module {}
// SAFETY: as above; no method changes what the handle stands for.
unsafe impl Sync for Module {}

impl Module {
    /// Loads the module that has `entry`.
    pub(super) fn load(context: &Arc<CudaContext>, entry: &Entry) -> Result<Self, DriverError> {
        context.bind_to_thread()?;
        // SAFETY: the context is bound, and the text ends in a zero byte.
        let module = unsafe { result::module::load_data(entry.ptx.as_ptr().cast())? };
        Ok(Self {
            context: context.clone(),
            module,
        })
    }
}

impl Drop for Module {
    fn drop(&mut self) {
        if self.context.bind_to_thread().is_ok() {
            // SAFETY: the module was loaded in this context, and no launch of it is under way, since every
            // call waits for its own. A lost context has nothing to unload.
            let _ = unsafe { result::module::unload(self.module) };
        }
    }
}

/// An entry point of a loaded module.
pub(super) struct Kernel {
    module: Arc<Module>,
    function: CUfunction,
    entry: &'static Entry,
    /// Blocks that the device works on at a time.
    resident_blocks: usize,
}

// SAFETY: as for `Module`, to which the function belongs.
unsafe impl Send for Kernel {}
// SAFETY: as above.
unsafe impl Sync for Kernel {}

/// A parameter of an entry point.
#[derive(Clone, Copy)]
pub(super) enum Argument {
    Address(CUdeviceptr),
    U32(u32),
    #[cfg(feature = "sign")]
    U64(u64),
}

impl Argument {
    /// Where the driver finds the value.
    fn place(&self) -> *mut c_void {
        match self {
            Self::Address(address) => (&raw const *address).cast_mut().cast(),
            Self::U32(number) => (&raw const *number).cast_mut().cast(),
            #[cfg(feature = "sign")]
            Self::U64(number) => (&raw const *number).cast_mut().cast(),
        }
    }
}

impl Kernel {
    pub(super) fn new(
        module: &Arc<Module>,
        multiprocessors: u32,
        entry: &'static Entry,
    ) -> Result<Self, DriverError> {
        module.context.bind_to_thread()?;
        let name = CString::new(entry.name).unwrap_or_default();
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
            module: module.clone(),
            function,
            entry,
            resident_blocks: per_multiprocessor.max(1) as usize * multiprocessors as usize,
        })
    }

    /// Instances that the device works on at a time.
    pub(super) fn resident_instances(&self) -> usize {
        self.resident_blocks * self.entry.instances_per_block
    }

    /// Words of scratch memory for a launch of `blocks` blocks.
    pub(super) fn table_words(&self, blocks: usize, window: Window) -> usize {
        self.entry.family.scratch_words(self.entry, blocks, window)
    }

    /// The number of blocks for `count` instances. Blocks stride over what is more than the device can work
    /// on at a time, all for the same number of rounds.
    pub(super) fn blocks(&self, count: usize) -> usize {
        let needed = count.div_ceil(self.entry.instances_per_block);
        needed.div_ceil(needed.div_ceil(self.resident_blocks).max(1))
    }

    /// Queues a launch.
    ///
    /// # Safety
    ///
    /// `arguments` must be those of the entry point in `kernels/README.md`, in order. Addresses must be
    /// those of buffers on this context's device with the sizes given there, aligned to 16 bytes; they
    /// must stay allocated, and nothing else may use them, until the stream has got past the launch.
    pub(super) unsafe fn launch(
        &self,
        blocks: usize,
        arguments: &[Argument],
        stream: &CudaStream,
    ) -> Result<(), DriverError> {
        self.module.context.bind_to_thread()?;
        let mut places: Vec<_> = arguments.iter().map(Argument::place).collect();
        // SAFETY: the driver copies the arguments before it returns, and does not write to them; the
        // caller vouches for the rest.
        unsafe {
            result::launch_kernel(
                self.function,
                (blocks as u32, 1, 1),
                (self.entry.threads, 1, 1),
                self.entry.shared_bytes,
                stream.cu_stream(),
                &mut places,
            )
        }
    }
}
