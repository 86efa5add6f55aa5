//! Kernels, as shipped in the crate and as compiled by the driver for a device.
#![allow(unsafe_code)]

use alloc::collections::BTreeMap;
use alloc::ffi::CString;
use alloc::sync::Arc;
use core::fmt;
use std::sync::Mutex;

use cudarc::driver::sys::{CUfunction, CUfunction_attribute, CUmodule};
use cudarc::driver::{CudaContext, DriverError, result};

use super::lock;
use miniz_oxide::inflate::decompress_to_vec_with_limit;

/// Kernels with the same arithmetic, for different operations.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) struct KernelKey {
    pub(crate) family: &'static str,
    /// The width of the class in bits.
    pub(crate) bits: u32,
    pub(crate) variant: &'static str,
}

/// A kernel as the crate ships it.
#[derive(Debug)]
pub(crate) struct Image {
    pub(crate) key: KernelKey,
    /// The name of the function in its module.
    pub(crate) function: &'static str,
    /// The file of its module.
    pub(crate) module: &'static str,
    /// The text of its module.
    pub(crate) ptx: &'static CompressedPtx,
    /// Threads in a block.
    pub(crate) threads: u32,
    /// Instances that a block computes at a time.
    pub(crate) instances_per_block: usize,
    /// Dynamic shared memory of a block in bytes.
    pub(crate) shared_bytes: u32,
}

/// The text of a module of `kernels/ptx`, deflated by the build script.
pub(crate) struct CompressedPtx {
    /// The length of the text.
    pub(crate) text_bytes: usize,
    /// A hash of the text, which differs between versions of the crate.
    pub(crate) fingerprint: u64,
    /// The text in the DEFLATE format (RFC 1951).
    pub(crate) deflated: &'static [u8],
}

impl CompressedPtx {
    /// The text.
    pub(crate) fn text(&self) -> CString {
        let text = decompress_to_vec_with_limit(self.deflated, self.text_bytes).ok();
        text.and_then(|text| CString::new(text).ok())
            .unwrap_or_else(|| unreachable!("the build script deflated a text"))
    }
}

impl fmt::Debug for CompressedPtx {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CompressedPtx")
            .field("text_bytes", &self.text_bytes)
            .finish_non_exhaustive()
    }
}

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
    kernels: Mutex<BTreeMap<(&'static str, &'static str), Arc<Kernel>>>,
}

impl Cache {
    /// The number of kernels.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        lock(&self.kernels).len()
    }

    /// The kernel of `image`, loaded on first use for a device of `multiprocessors`.
    ///
    /// The driver compiles a module for seconds. Meanwhile those of other modules can be used.
    pub(super) fn kernel(
        &self,
        context: &Arc<CudaContext>,
        multiprocessors: u32,
        image: &'static Image,
    ) -> Result<Arc<Kernel>, DriverError> {
        let [name, file] = [image.function, image.module].map(|name| (image.key.family, name));
        if let Some(kernel) = lock(&self.kernels).get(&name) {
            return Ok(kernel.clone());
        }
        let loading = lock(&self.modules).entry(file).or_default().clone();
        let mut loading = lock(&loading);
        let module = match &mut *loading {
            Some(module) => module,
            empty => empty.insert(Arc::new(Module::load(context, image)?)),
        };
        let kernel = Arc::new(Kernel::new(module, multiprocessors, image)?);
        lock(&self.kernels).insert(name, kernel.clone());
        Ok(kernel)
    }
}

/// PTX that the driver has compiled and loaded.
pub(super) struct Module {
    pub(super) context: Arc<CudaContext>,
    module: CUmodule,
}

// SAFETY: the handle belongs to the context, which any thread may bind, and the driver's functions
// that take it may be called from any thread.
unsafe impl Send for Module {}
// SAFETY: as above; no method changes what the handle stands for.
unsafe impl Sync for Module {}

impl Module {
    /// Loads the module with the function of `image`.
    fn load(context: &Arc<CudaContext>, image: &Image) -> Result<Self, DriverError> {
        context.bind_to_thread()?;
        let text = image.ptx.text();
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

/// A function of a loaded module.
pub(crate) struct Kernel {
    pub(super) module: Arc<Module>,
    /// The driver's handle.
    pub(super) function: CUfunction,
    pub(super) image: &'static Image,
    /// Blocks that the device computes at a time.
    pub(crate) resident_blocks: u32,
}

// SAFETY: as for `Module`, to which the function belongs.
unsafe impl Send for Kernel {}
// SAFETY: as above.
unsafe impl Sync for Kernel {}

impl Kernel {
    fn new(
        module: &Arc<Module>,
        multiprocessors: u32,
        image: &'static Image,
    ) -> Result<Self, DriverError> {
        module.context.bind_to_thread()?;
        let name = CString::new(image.function).unwrap_or_default();
        // SAFETY: the context is bound and has the module.
        let function = unsafe { result::module::get_function(module.module, name)? };
        if image.shared_bytes > SHARED_BYTES_WITHOUT_ASKING {
            // SAFETY: the function belongs to the module.
            unsafe {
                result::function::set_function_attribute(
                    function,
                    CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                    image.shared_bytes as i32,
                )?;
            }
        }
        // SAFETY: as above.
        let per_multiprocessor = unsafe {
            result::occupancy::max_active_block_per_multiprocessor(
                function,
                image.threads as i32,
                image.shared_bytes as usize,
            )?
        };
        Ok(Self {
            module: module.clone(),
            function,
            image,
            resident_blocks: per_multiprocessor.max(1) as u32 * multiprocessors,
        })
    }
}
