//! Kernels, as shipped in the crate and as compiled by the driver for a device.
#![allow(unsafe_code)]

use alloc::collections::BTreeMap;
use alloc::ffi::CString;
use alloc::sync::Arc;

use cudarc::driver::sys::{CUfunction, CUfunction_attribute, CUmodule};
use cudarc::driver::{CudaContext, DriverError, result};

use super::ptx::CompressedPtx;

/// The identity of a kernel. Names of functions and files need only be unique within a family.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) struct KernelKey {
    pub(crate) family: &'static str,
    pub(crate) operation: &'static str,
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

/// Dynamic shared memory that a block may have without asking, in bytes.
const SHARED_BYTES_WITHOUT_ASKING: u32 = 48 << 10;

/// The kernels of one device, by identity. `M` is a module and `K` a kernel.
pub(super) struct Cache<M, K> {
    /// Modules by family and file.
    modules: BTreeMap<(&'static str, &'static str), M>,
    kernels: BTreeMap<KernelKey, K>,
}

impl<M, K> Default for Cache<M, K> {
    fn default() -> Self {
        Self {
            modules: BTreeMap::new(),
            kernels: BTreeMap::new(),
        }
    }
}

impl<M: Clone, K: Clone> Cache<M, K> {
    /// The number of kernels.
    #[cfg(all(test, feature = "rsa"))]
    pub(super) fn len(&self) -> usize {
        self.kernels.len()
    }

    /// The kernel of `image`. On first use, `load` loads its module, unless another kernel has
    /// loaded it, and `find` looks the kernel up there.
    pub(super) fn kernel<E>(
        &mut self,
        image: &'static Image,
        load: impl FnOnce(&'static Image) -> Result<M, E>,
        find: impl FnOnce(&M, &'static Image) -> Result<K, E>,
    ) -> Result<K, E> {
        if let Some(kernel) = self.kernels.get(&image.key) {
            return Ok(kernel.clone());
        }
        let file = (image.key.family, image.module);
        let module = match self.modules.get(&file) {
            Some(module) => module.clone(),
            None => load(image)?,
        };
        self.modules.insert(file, module.clone());
        let kernel = find(&module, image)?;
        self.kernels.insert(image.key, kernel.clone());
        Ok(kernel)
    }
}

/// PTX that the driver has compiled and loaded.
pub(super) struct Module {
    context: Arc<CudaContext>,
    module: CUmodule,
}

// SAFETY: the handle belongs to the context, which any thread may bind, and the driver's functions
// that take it may be called from any thread.
unsafe impl Send for Module {}
// SAFETY: as above; no method changes what the handle stands for.
unsafe impl Sync for Module {}

impl Module {
    /// Loads the module with the function of `image`.
    pub(super) fn load(context: &Arc<CudaContext>, image: &Image) -> Result<Self, DriverError> {
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
    module: Arc<Module>,
    function: CUfunction,
    grid: Grid,
}

/// The number of instances of a kernel that a device computes at a time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Grid {
    image: &'static Image,
    resident_blocks: usize,
}

// SAFETY: as for `Module`, to which the function belongs.
unsafe impl Send for Kernel {}
// SAFETY: as above.
unsafe impl Sync for Kernel {}

impl Kernel {
    pub(super) fn new(
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
            grid: Grid::new(image, per_multiprocessor.max(1) as u32 * multiprocessors),
        })
    }

    pub(crate) fn grid(&self) -> Grid {
        self.grid
    }

    pub(super) fn context(&self) -> &Arc<CudaContext> {
        &self.module.context
    }

    /// The driver's handle.
    pub(super) fn function(&self) -> CUfunction {
        self.function
    }
}

impl Grid {
    /// The grid for a device that computes `resident_blocks` blocks at a time.
    pub(crate) fn new(image: &'static Image, resident_blocks: u32) -> Self {
        let resident_blocks = resident_blocks as usize;
        Self {
            image,
            resident_blocks,
        }
    }

    pub(crate) fn image(self) -> &'static Image {
        self.image
    }

    /// Instances that the device computes at a time.
    pub(crate) fn resident_instances(self) -> usize {
        self.resident_blocks * self.image.instances_per_block
    }

    /// The number of blocks for `count` instances.
    pub(crate) fn blocks(self, count: usize) -> usize {
        blocks(count, self.image.instances_per_block, self.resident_blocks)
    }
}

/// The number of blocks for `count` instances. Blocks loop over instances beyond those that are
/// resident, all for the same number of rounds.
fn blocks(count: usize, per_block: usize, resident: usize) -> usize {
    let needed = count.div_ceil(per_block);
    needed.div_ceil(needed.div_ceil(resident).max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn image(family: &'static str) -> Image {
        Image {
            key: KernelKey {
                family,
                operation: "mod_exp",
                bits: 512,
                variant: "t1",
            },
            function: "modexp_512_t1",
            module: "modexp_512.ptx",
            ptx: &CompressedPtx {
                text_bytes: 0,
                fingerprint: 0,
                deflated: &[],
            },
            threads: 128,
            instances_per_block: 128,
            shared_bytes: 0,
        }
    }

    /// Two families may use the same function and file names.
    #[test]
    fn kernels_of_two_families_are_told_apart() {
        static IMAGES: [Image; 2] = [image("dpf"), image("other")];
        let mut cache = Cache::<&str, &str>::default();
        for _ in 0..2 {
            for image in &IMAGES {
                let family = image.key.family;
                let load = |image: &'static Image| Ok::<_, ()>(image.key.family);
                let found = cache.kernel(image, load, |module, _| Ok(*module));
                assert_eq!(found, Ok(family));
            }
        }
        assert_eq!((cache.modules.len(), cache.kernels.len()), (2, 2));
    }

    #[test]
    fn a_module_is_loaded_once_and_a_failure_is_not_kept() {
        static IMAGE: Image = image("dpf");
        let mut cache = Cache::<u32, u32>::default();
        assert_eq!(
            cache.kernel(&IMAGE, |_| Err("load"), |_, _| Ok(0)),
            Err("load")
        );
        assert_eq!(
            cache.kernel(&IMAGE, |_| Ok(1), |_, _| Err("find")),
            Err("find")
        );
        let found = cache.kernel(
            &IMAGE,
            |_| panic!("it is there"),
            |&module, _| Ok::<_, ()>(module),
        );
        assert_eq!(found, Ok(1));
    }

    #[test]
    fn blocks_share_the_work_evenly() {
        assert_eq!(blocks(1, 64, 132), 1);
        assert_eq!(blocks(64 * 132, 64, 132), 132);
        // Two rounds of 67 blocks, rather than one round of 132 and another of a single block.
        assert_eq!(blocks(64 * 133, 64, 132), 67);
        assert_eq!(blocks(0, 64, 132), 0);
    }
}
