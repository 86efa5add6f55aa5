//! Many threads that use one backend at the same time.

use std::sync::Barrier;
use std::thread;

use batch_modexp::backend::*;

use super::work::{self, Backend, Batch};

const THREADS: usize = 32;

/// Threads start together; each has its own batches, with another width and length than its
/// neighbours'.
fn at_once(backend: &impl Backend) {
    let (barrier, key) = (Barrier::new(THREADS), work::key());
    thread::scope(|scope| {
        for number in 0..THREADS {
            let (barrier, key) = (&barrier, &key);
            scope.spawn(move || {
                let width = [256, 512, 1024, 2048][number % 4];
                let batch = Batch::random(width, 1 + number * 2, number as u64);
                barrier.wait();
                for round in 0..3 {
                    batch.compute(backend).unwrap();
                    work::sign(backend, key, 1 + (number + round) % 9).unwrap();
                }
            });
        }
    });
}

#[test]
fn serial() {
    at_once(&Serial);
}

#[test]
fn cpu() {
    at_once(&Cpu::with_threads(3.try_into().unwrap()).unwrap());
}

#[test]
fn every_backend_of_the_processor() {
    for kind in Kind::ON_CPU {
        // Some backends need instructions that this processor lacks.
        if let Ok(backend) = Auto::with(*kind, 2.try_into().ok()) {
            at_once(&backend);
        }
    }
}

#[test]
fn auto_with_gpus() {
    at_once(&Auto::with_gpus().unwrap());
}

#[cfg(feature = "cuda")]
#[test]
fn cuda() {
    if super::gpu() {
        at_once(&Cuda::new().unwrap());
    }
}
