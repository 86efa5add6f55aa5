//! A queue of single requests; callbacks receive the answers.

use std::ffi::c_void;
use std::time::Duration;

use batch_modexp::queue::{BatchQueue, QueueError, Shutdown};
use batch_modexp::rsa::KeyHandle;
use getrandom::SysRng;

use crate::boundary::{
    CLOSED, FORKED, FULL, Failure, argument, elements, failed, guard, make, object, parameters,
};
use crate::callbacks::{Callback, Callbacks, Target, failure_of};
use crate::engine::Engine;
use crate::schemes::SignatureScheme;

const DEFAULT_CAPACITY: usize = 8192;

/// `bme_queue_options` of the header; 0 stands for the default.
#[repr(C)]
struct QueueOptions {
    size: usize,
    capacity: usize,
    max_batch: usize,
    min_batch: usize,
    max_wait_us: u32,
}

/// `bme_queue` of the header.
struct Queue {
    queue: BatchQueue,
    callbacks: Callbacks,
    capacity: usize,
    /// The process that owns the threads.
    process: u32,
}

impl Queue {
    fn new(engine: &Engine, options: Option<&QueueOptions>) -> Result<Self, Failure> {
        let given = |of: fn(&QueueOptions) -> usize| options.map(of).filter(|&value| value != 0);
        let capacity = given(|options| options.capacity).unwrap_or(DEFAULT_CAPACITY);
        let mut builder = BatchQueue::builder(engine.0.clone(), SysRng).capacity(capacity);
        if let Some(requests) = given(|options| options.max_batch) {
            builder = builder.max_batch(requests);
        }
        if let Some(requests) = given(|options| options.min_batch) {
            builder = builder.min_batch(requests);
        }
        if let Some(time) = given(|options| options.max_wait_us as usize) {
            builder = builder.max_wait(Duration::from_micros(time as u64));
        }
        Ok(Self {
            queue: builder.build().map_err(failed)?,
            callbacks: Callbacks::start().map_err(failed)?,
            capacity,
            process: std::process::id(),
        })
    }

    /// Fails in a forked child: another process has the threads and may hold the locks.
    fn check_process(&self) -> Result<(), Failure> {
        match self.process == std::process::id() {
            true => Ok(()),
            false => Err(Failure::new(FORKED, QueueError::Forked)),
        }
    }

    fn close(&self, how: Shutdown) -> Result<(), Failure> {
        self.check_process()?;
        if self.callbacks.is_current() {
            return Err(failed("a callback must not wait for callbacks"));
        }
        self.queue.shutdown(how);
        self.callbacks.finish();
        Ok(())
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn bme_queue_new(
    engine: *const Engine,
    options: *const QueueOptions,
    out: *mut *mut Queue,
) -> i32 {
    let start = || {
        // SAFETY: NULL, or an engine that the caller has not freed.
        let engine = unsafe { object(engine) }?;
        let options = match options.is_null() {
            true => None,
            // SAFETY: the caller vouches for the options.
            false => Some(unsafe { parameters(options) }?),
        };
        Queue::new(engine, options)
    };
    // SAFETY: the caller vouches for the place.
    unsafe { make(out, start) }
}

#[unsafe(no_mangle)]
#[allow(clippy::too_many_arguments)]
unsafe extern "C" fn bme_queue_sign(
    queue: *mut Queue,
    key: *const KeyHandle,
    scheme: i32,
    message: *const u8,
    message_len: usize,
    callback: Option<Callback>,
    user: *mut c_void,
    id: *mut u64,
) -> i32 {
    guard(|| {
        // SAFETY: the caller vouches for queue, key and message.
        let (queue, key, message) = unsafe {
            (
                object(queue)?,
                object(key)?,
                elements(message, message_len)?,
            )
        };
        let scheme = SignatureScheme::new(scheme)?;
        let callback = callback.ok_or_else(|| argument("the callback is NULL"))?;
        if !scheme.takes(message) {
            return Err(argument("the message is no digest of the hash function"));
        }
        queue.check_process()?;
        let place = queue.callbacks.reserve(queue.capacity);
        let place = place.ok_or_else(|| Failure::new(FULL, QueueError::Full))?;
        let request = match scheme.is_prehashed {
            true => queue.queue.try_sign_prehash(key, scheme.scheme, message),
            false => queue.queue.try_sign(key, scheme.scheme, message),
        };
        let request = request.map_err(|error| match error {
            QueueError::ShutDown => Failure::new(CLOSED, error),
            error => failure_of(error),
        })?;
        queue
            .callbacks
            .add(place, request, Target::new(callback, user), |number| {
                if !id.is_null() {
                    // SAFETY: not NULL, and the caller vouches for the place.
                    unsafe { id.write(number) };
                }
            })
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn bme_queue_cancel(queue: *mut Queue, id: u64) -> i32 {
    guard(|| {
        // SAFETY: NULL, or a queue that the caller has not freed.
        let queue = unsafe { object(queue) }?;
        queue.check_process()?;
        queue.callbacks.cancel(id)
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn bme_queue_close(queue: *mut Queue, cancel: i32) -> i32 {
    guard(|| {
        let how = match cancel {
            0 => Shutdown::Drain,
            1 => Shutdown::Cancel,
            _ => return Err(argument("cancel is neither 0 nor 1")),
        };
        // SAFETY: NULL, or a queue that the caller has not freed.
        unsafe { object(queue) }?.close(how)
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn bme_queue_free(queue: *mut Queue) {
    guard(|| {
        if queue.is_null() {
            return Ok(());
        }
        // SAFETY: made by `make`, and the caller frees it once.
        let queue = unsafe { Box::from_raw(queue) };
        match queue.check_process() {
            // Inside a callback there is no waiting; the threads end when all work is done.
            Ok(()) if queue.callbacks.is_current() => {}
            Ok(()) => queue.close(Shutdown::Drain)?,
            // Other threads may have held its locks during the fork.
            Err(_) => std::mem::forget(queue),
        }
        Ok(())
    });
}
