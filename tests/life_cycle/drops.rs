//! Backends, keys and queues that are dropped while they have work.

use std::sync::{Arc, Weak};
use std::thread;
use std::time::{Duration, Instant};

use batch_modexp::backend::{Auto, Kind};
use batch_modexp::queue::{BatchQueue, Shutdown};
use batch_modexp::rsa::{AnyScheme, Hash};

use super::work::{self, Batch, child, text, value};

const SCHEME: AnyScheme = AnyScheme::Pkcs1v15 { hash: Hash::Sha256 };

/// Work that takes longer hangs.
const LIMIT: Duration = Duration::from_secs(60);

/// The CPU backend with two threads.
fn cpu() -> Auto {
    Auto::with(Kind::Cpu, 2.try_into().ok()).unwrap()
}

/// All GPUs, if there are any.
fn cuda() -> Option<Auto> {
    #[cfg(feature = "cuda")]
    if super::gpu() {
        return Some(Auto::with(Kind::Cuda, None).unwrap());
    }
    None
}

/// The thread with the last handle to a backend drops it, whichever thread that is.
fn the_last_thread_drops(backend: Auto) {
    let backend = Arc::new(backend);
    let alive = Arc::downgrade(&backend);
    let key = work::key();
    let threads: Vec<_> = (0..8)
        .map(|number| {
            let (backend, key) = (backend.clone(), key.clone());
            thread::spawn(move || {
                Batch::random(512, 40, number).compute(&*backend).unwrap();
                work::sign(&*backend, &key, 7).unwrap();
            })
        })
        .collect();
    drop((backend, key));
    threads
        .into_iter()
        .for_each(|thread| thread.join().unwrap());
    assert_eq!(alive.strong_count(), 0);
}

#[test]
fn the_last_thread_drops_the_processor() {
    the_last_thread_drops(cpu());
}

#[test]
fn the_last_thread_drops_the_gpu() {
    cuda().into_iter().for_each(the_last_thread_drops);
}

/// Requests outlive the handles to their key, queue and backend.
fn requests_outlive_everything(backend: Auto) {
    let backend = Arc::new(backend);
    let alive = Arc::downgrade(&backend);
    let queue = BatchQueue::builder(backend, getrandom::SysRng).max_batch(16);
    let queue = queue.no_fallback().build().unwrap();
    let key = work::key();
    let asked: Vec<_> = (0..100u8).map(|i| queue.sign(&key, SCHEME, &[i])).collect();
    drop((queue, key));
    for (i, signing) in (0..).zip(asked) {
        let signature = signing.wait_timeout(LIMIT).unwrap();
        assert_eq!(signature.as_ref(), work::signature(&[i]));
    }
    wait_for_the_end(&alive);
}

/// Waits until workers have dropped the backend; they do so when they end, asynchronously.
fn wait_for_the_end(alive: &Weak<Auto>) {
    let started = Instant::now();
    while alive.strong_count() > 0 {
        assert!(started.elapsed() < LIMIT, "somebody keeps the backend");
        thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn requests_to_the_processor_outlive_everything() {
    requests_outlive_everything(cpu());
}

#[test]
fn requests_to_a_gpu_outlive_everything() {
    cuda().into_iter().for_each(requests_outlive_everything);
}

/// When `shutdown` has returned, nothing of the queue is left, even with work in flight before.
#[test]
fn a_shutdown_waits_for_the_workers() {
    for how in [Shutdown::Drain, Shutdown::Cancel] {
        let backend = Arc::new(cpu());
        let alive = Arc::downgrade(&backend);
        let queue = BatchQueue::builder(backend, getrandom::SysRng).max_batch(4);
        let queue = queue.build().unwrap();
        let key = work::key();
        let asked: Vec<_> = (0..30).map(|_| queue.sign(&key, SCHEME, b"m")).collect();
        queue.shutdown(how);
        drop(queue);
        for signing in asked {
            // The answer is there already.
            let answer = signing.wait_timeout(Duration::ZERO);
            assert!(answer.is_ok() || how == Shutdown::Cancel, "{answer:?}");
        }
        wait_for_the_end(&alive);
    }
}

/// A process whose `main` returns with requests in flight ends normally.
fn a_process_ends_with_work_in_flight(kind: &str) {
    let output = child("drops::ends_with_work_in_flight", kind)
        .output()
        .unwrap();
    let text = text(&output);
    assert!(
        output.status.success() && text.contains("about to end"),
        "{text}"
    );
}

#[test]
fn a_process_ends_with_work_for_the_processor() {
    a_process_ends_with_work_in_flight("cpu");
}

#[test]
fn a_process_ends_with_work_for_a_gpu() {
    if super::gpu() {
        a_process_ends_with_work_in_flight("cuda");
    }
}

#[test]
#[ignore = "run by the tests above"]
fn ends_with_work_in_flight() {
    let backend = match value().as_str() {
        "cuda" => cuda().unwrap(),
        _ => cpu(),
    };
    let queue = BatchQueue::builder(backend, getrandom::SysRng).max_batch(64);
    let queue = queue.build().unwrap();
    let key = work::key();
    let asked: Vec<_> = (0..500).map(|_| queue.sign(&key, SCHEME, b"m")).collect();
    asked.into_iter().next().unwrap().wait().unwrap();
    let stats = queue.stats();
    // Dropped requests were cancelled, except those under way.
    println!("about to end: {stats:?}");
    std::process::exit(0);
}
