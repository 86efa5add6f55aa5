//! One device: its kernels, its two slots, and the batches that go through them.
#![allow(unsafe_code)]

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use core::ops::Range;
use core::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Instant;

use crypto_bigint::Unsigned;
use cudarc::driver::sys::CUresult;
use cudarc::driver::{CudaContext, DriverError};
use rayon::ThreadPool;

use super::entry::Entry;
use super::error::{DeviceFault, name_of};
use super::group::{Group, Layout};
use super::kernel::{Argument, Kernel, Module};
use super::plan::{Plan, Tuning};
use super::slot::{Addresses, Sizes, Slot};
use super::{DeviceInfo, Timing};
#[cfg(feature = "sign")]
use super::{entry::RsaClass, keys::KeyTable};
use crate::Error;

/// Two, so that one chunk is copied while the other is computed.
const SLOTS: usize = 2;

/// Shares of several devices are multiples of this many instances, about a block.
const SHARE_GRANULARITY: usize = 256;

/// [`cost`] per second and unit of [`DeviceInfo::nominal_speed`], about, for devices not measured yet.
const COST_PER_CYCLE: f64 = 2e7;

pub(super) struct Device {
    info: DeviceInfo,
    context: Arc<CudaContext>,
    loaded: Mutex<Loaded>,
    slots: Mutex<[Slot; SLOTS]>,
    #[cfg(feature = "sign")]
    key_tables: Mutex<BTreeMap<u32, Arc<KeyTable>>>,
    /// [`cost`] per second in the last large share that it computed, as the bits of an `f64`; at first a
    /// guess.
    speed: AtomicU64,
    /// The error after which nothing works any more.
    lost: OnceLock<String>,
}

/// Modules by their file's name, kernels by their own.
#[derive(Default)]
struct Loaded {
    modules: BTreeMap<&'static str, Arc<Module>>,
    kernels: BTreeMap<&'static str, Arc<Kernel>>,
}

impl Loaded {
    fn kernel(
        &mut self,
        context: &Arc<CudaContext>,
        multiprocessors: u32,
        entry: &'static Entry,
    ) -> Result<Arc<Kernel>, DriverError> {
        if let Some(kernel) = self.kernels.get(entry.name) {
            return Ok(kernel.clone());
        }
        let module = match self.modules.get(entry.module) {
            Some(module) => module.clone(),
            None => Arc::new(Module::load(context, entry)?),
        };
        self.modules.insert(entry.module, module.clone());
        let kernel = Arc::new(Kernel::new(&module, multiprocessors, entry)?);
        self.kernels.insert(entry.name, kernel.clone());
        Ok(kernel)
    }
}

impl Device {
    pub(super) fn open(info: &DeviceInfo) -> Result<Self, Error> {
        let open = || {
            let context = CudaContext::new(info.ordinal())?;
            let slots = Mutex::new([Slot::new(&context)?, Slot::new(&context)?]);
            Ok((context, slots))
        };
        let (context, slots) = open().map_err(|error: DriverError| Error::Cuda {
            device: info.ordinal(),
            fault: error.into(),
        })?;
        Ok(Self {
            info: info.clone(),
            context,
            loaded: Mutex::default(),
            slots,
            #[cfg(feature = "sign")]
            key_tables: Mutex::default(),
            speed: AtomicU64::new((COST_PER_CYCLE * info.nominal_speed()).to_bits()),
            lost: OnceLock::new(),
        })
    }

    pub(super) fn info(&self) -> &DeviceInfo {
        &self.info
    }

    /// The kernel of an entry point, compiled on first use.
    pub(super) fn kernel(&self, entry: &'static Entry) -> Result<Arc<Kernel>, Error> {
        self.check_lost()?;
        let mut loaded = lock(&self.loaded);
        loaded
            .kernel(&self.context, self.info.multiprocessors(), entry)
            .map_err(|error| self.fault(error))
    }

    /// Computes the members `share` of a group; `out` has their places. Copies on the threads of `pool`.
    fn run<U: Unsigned + Sync + Send>(
        &self,
        pool: &ThreadPool,
        group: &Group<'_, U>,
        share: Range<usize>,
        tuning: Tuning,
        out: &mut [&mut U],
    ) -> Result<Timing, Error> {
        let plan = self.plan(group, share.len(), tuning);
        let kernel = self.kernel(plan.entry)?;
        let most = if plan.single_launch {
            share.len()
        } else {
            kernel.resident_instances()
        };
        let chunks = cut(&share, most, plan.entry.instances_per_block);
        let started = Instant::now();
        let timing = self.pipeline(
            &mut self.slots(),
            &chunks,
            |slot, chunk| submit(slot, pool, &kernel, group, chunk, plan),
            |chunk, words| {
                let places = &mut out[chunk.start - share.start..chunk.end - share.start];
                group.store(pool, plan.entry, chunk, words, places);
            },
        )?;
        // A share that does not fill the device says little about its speed.
        if share.len() >= kernel.resident_instances() {
            let speed = cost(group, share.len()) / started.elapsed().as_secs_f64().max(1e-9);
            self.speed.store(speed.to_bits(), Ordering::Relaxed);
        }
        Ok(timing)
    }

    /// The slots, for one call at a time.
    pub(super) fn slots(&self) -> InUse<'_> {
        InUse(lock(&self.slots))
    }

    /// The keys of a class that stay on this device.
    #[cfg(feature = "sign")]
    pub(super) fn key_table(&self, class: &RsaClass) -> Arc<KeyTable> {
        let mut tables = lock(&self.key_tables);
        let new = || Arc::new(KeyTable::new(&self.context, class.record_words()));
        tables.entry(class.bits).or_insert_with(new).clone()
    }

    /// Sends chunks through the slots in turn, so that one is copied while the other is computed, and
    /// hands the results to `take`, in order.
    pub(super) fn pipeline(
        &self,
        slots: &mut InUse<'_>,
        chunks: &[Range<usize>],
        mut submit: impl FnMut(&mut Slot, &Range<usize>) -> Result<(), DriverError>,
        mut take: impl FnMut(&Range<usize>, &[u64]),
    ) -> Result<Timing, Error> {
        self.check_lost()?;
        let mut work = || {
            let mut timing = Timing::default();
            // As many more rounds than chunks, in which what is under way is finished.
            for round in 0..chunks.len() + SLOTS {
                let slot = &mut slots.0[round % SLOTS];
                let before = round
                    .checked_sub(SLOTS)
                    .and_then(|before| chunks.get(before));
                if let Some(chunk) = before {
                    timing += Timing {
                        kernel: slot.finish(|words| take(chunk, words))?,
                        launches: 1,
                    };
                }
                if let Some(chunk) = chunks.get(round) {
                    submit(slot, chunk)?;
                }
            }
            Ok(timing)
        };
        let result = work();
        if let Err(DriverError(CUresult::CUDA_ERROR_OUT_OF_MEMORY)) = result {
            slots.0.iter_mut().for_each(|slot| {
                slot.abandon();
                slot.release();
            });
        }
        slots.0.iter_mut().for_each(Slot::abandon);
        result.map_err(|error| self.fault(error))
    }

    fn plan<U: Unsigned + Sync + Send>(
        &self,
        group: &Group<'_, U>,
        count: usize,
        tuning: Tuning,
    ) -> Plan {
        match Plan::new(group.bits, group.exponent_bits, count, &self.info, tuning) {
            Some(plan) => plan,
            None => unreachable!("groups are made of instances that are not too wide"),
        }
    }

    fn speed(&self) -> f64 {
        f64::from_bits(self.speed.load(Ordering::Relaxed))
    }

    fn check_lost(&self) -> Result<(), Error> {
        match self.lost.get() {
            None => Ok(()),
            Some(name) => Err(self.error(DeviceFault::Lost { name: name.clone() })),
        }
    }

    /// What an error means for this device: whether it still answers shows when it is asked.
    pub(super) fn fault(&self, error: DriverError) -> Error {
        let fault = match self.context.synchronize() {
            Ok(()) => error.into(),
            Err(_) => DeviceFault::Lost {
                name: self.lost.get_or_init(|| name_of(error)).clone(),
            },
        };
        self.error(fault)
    }

    fn error(&self, fault: DeviceFault) -> Error {
        Error::Cuda {
            device: self.info.ordinal(),
            fault,
        }
    }
}

/// Keys may outlive the backend; what it keeps of them does not.
#[cfg(feature = "sign")]
impl Drop for Device {
    fn drop(&mut self) {
        lock(&self.key_tables)
            .values()
            .for_each(|table| table.close());
    }
}

impl fmt::Debug for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.info.fmt(f)
    }
}

/// Computes a group on all devices, each with a share by its speed.
pub(super) fn run_on_all<U: Unsigned + Sync + Send>(
    devices: &[Device],
    pool: &ThreadPool,
    group: &Group<'_, U>,
    out: &mut [U],
    tuning: Tuning,
) -> Result<Timing, Error> {
    let mut places = places(out, &group.members);
    let shares = shares_of(devices, group.len());
    let results = on_each(shares, &mut places, |device, share, places| {
        devices[device].run(pool, group, share, tuning, places)
    });
    let mut timing = Timing::default();
    for result in results {
        timing += result?;
    }
    Ok(timing)
}

/// Runs `work` for each share with its part of `places`, each on a thread of its own.
///
/// A single share has the calling thread, unless that belongs to a pool, which gives it other work while
/// it waits for the copies: that work may come back here and wait for the device that this thread holds.
pub(super) fn on_each<T: Send, R: Send>(
    shares: Vec<(usize, Range<usize>)>,
    places: &mut [T],
    work: impl Fn(usize, Range<usize>, &mut [T]) -> R + Sync,
) -> Vec<R> {
    if let ([(device, share)], None) = (shares.as_slice(), rayon::current_thread_index()) {
        return Vec::from([work(*device, share.clone(), places)]);
    }
    let (mut rest, work) = (places, &work);
    std::thread::scope(|scope| {
        let mut threads = Vec::new();
        for (device, share) in shares {
            let (places, others) = rest.split_at_mut(share.len());
            rest = others;
            threads.push(scope.spawn(move || work(device, share, places)));
        }
        let join = |thread: std::thread::ScopedJoinHandle<'_, R>| {
            thread
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        threads.into_iter().map(join).collect()
    })
}

/// The slots while a call uses them. Whichever way the call ends, they are clean afterwards.
pub(super) struct InUse<'a>(MutexGuard<'a, [Slot; SLOTS]>);

impl Drop for InUse<'_> {
    fn drop(&mut self) {
        self.0.iter_mut().for_each(Slot::abandon);
    }
}

/// A lock whose holder has panicked is as good as any: slots are clean, and kernels are whole.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn submit<U: Unsigned + Sync + Send>(
    slot: &mut Slot,
    pool: &ThreadPool,
    kernel: &Kernel,
    group: &Group<'_, U>,
    range: &Range<usize>,
    plan: Plan,
) -> Result<(), DriverError> {
    let entry = plan.entry;
    let moduli = group.moduli(range);
    let layout = Layout::new(entry, range.len(), moduli.len());
    let blocks = kernel.blocks(range.len());
    let sizes = Sizes {
        input: layout.words(),
        output: range.len() * entry.words(),
        tables: kernel.table_words(blocks, plan.window),
        between: 0,
    };
    let fill = |words: &mut [u64]| group.fill(pool, entry, range, &moduli, &layout, words);
    slot.submit(sizes, fill, |at, stream| {
        let input = |part: &Range<usize>| Argument::Address(Addresses::word(at.input, part.start));
        let arguments = [
            Argument::Address(at.output),
            input(&layout.base),
            input(&layout.exponent),
            input(&layout.params),
            input(&layout.param_index),
            Argument::Address(at.tables),
            Argument::U32(range.len() as u32),
            Argument::U32(group.exponent_bits),
            Argument::U32(group.r2_bits(entry)),
            Argument::U32(plan.window.bits()),
        ];
        // SAFETY: these are the parameters of `modexp_BITS_tT`; `sizes` and `layout` give every buffer the
        // length that it must have, and every part of the input but the last is a multiple of 64 bytes.
        unsafe { kernel.launch(blocks, &arguments, stream) }
    })
}

/// Cuts a share into chunks of at most `most` instances, or somewhat more to make them whole blocks, all
/// about equally long.
pub(super) fn cut(share: &Range<usize>, most: usize, per_block: usize) -> Vec<Range<usize>> {
    let count = share.len().div_ceil(most.max(1)).max(1);
    let len = share.len().div_ceil(count).next_multiple_of(per_block);
    let starts = share.clone().step_by(len.max(1));
    starts
        .map(|start| start..(start + len).min(share.end))
        .collect()
}

/// A share of `len` instances for each device, in proportion to the speed that it has shown.
pub(super) fn shares_of(devices: &[Device], len: usize) -> Vec<(usize, Range<usize>)> {
    let speeds: Vec<_> = devices.iter().map(Device::speed).collect();
    shares(len, &speeds, SHARE_GRANULARITY)
}

/// A share of `len` instances for each device, in proportion to its speed, in whole blocks. Devices whose
/// share is empty are left out.
fn shares(len: usize, speeds: &[f64], granularity: usize) -> Vec<(usize, Range<usize>)> {
    let total: f64 = speeds.iter().sum();
    let mut shares = Vec::new();
    let (mut start, mut sum) = (0, 0.0);
    for (device, speed) in speeds.iter().enumerate() {
        sum += speed;
        let end = (len as f64 * sum / total) as usize;
        let end = end.next_multiple_of(granularity).min(len);
        let end = if device + 1 == speeds.len() { len } else { end };
        if start < end {
            shares.push((device, start..end));
            start = end;
        }
    }
    shares
}

/// The work in `len` instances of a group: squarings by the width squared.
fn cost<U: Unsigned + Sync + Send>(group: &Group<'_, U>, len: usize) -> f64 {
    f64::from(group.bits).powi(2) * f64::from(group.exponent_bits + 8) * len as f64
}

/// The elements of `out` at `members`, which ascend.
fn places<'a, U>(out: &'a mut [U], members: &[usize]) -> Vec<&'a mut U> {
    let mut members = members.iter().peekable();
    let wanted = out.iter_mut().enumerate();
    wanted
        .filter(|(i, _)| members.next_if(|&&member| member == *i).is_some())
        .map(|(_, place)| place)
        .collect()
}

#[cfg(test)]
mod tests;
