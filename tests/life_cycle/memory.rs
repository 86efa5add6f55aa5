//! Too little memory. Rust ends the process when an allocation fails; threads and devices return
//! errors. There is no wrong result, and failed work succeeds when there is memory again.

use std::os::unix::process::ExitStatusExt;

use batch_modexp::Error;
use batch_modexp::backend::Cpu;

use super::work::{self, Batch, child, text, value};

/// A number of threads that needs more address space than the smaller limits leave.
const THREADS: usize = 48;

/// The messages with which the standard library ends a process for lack of memory.
const LAST_WORDS: [&str; 2] = [
    "memory allocation of",
    // From a thread that has just started.
    "failed to allocate an alternative stack",
];

/// The limits: MiB of address space beyond the current use, from almost nothing to more than
/// enough.
const LIMITS: [u64; 8] = [0, 1, 2, 4, 16, 64, 256, 4096];

/// Runs a test with each limit. It must pass, or be ended by the standard library. Returns the
/// output of the runs that passed, and the number of those that were ended.
fn with_limits(test: &str) -> (Vec<String>, usize) {
    let (mut said, mut ended) = (Vec::new(), 0);
    for limit in LIMITS {
        let output = child(test, &limit.to_string())
            // Glibc would reserve address space for other arenas beforehand, which no limit takes
            // back.
            .env("MALLOC_ARENA_MAX", "1")
            .output()
            .unwrap();
        let text = text(&output);
        println!("{limit} MiB: {text}");
        if output.status.success() {
            said.push(text);
            continue;
        }
        // A panic in a test has exit code 101: a wrong result.
        assert_eq!(
            output.status.signal(),
            Some(libc::SIGABRT),
            "{limit} MiB: {text}"
        );
        assert!(
            LAST_WORDS.iter().any(|words| text.contains(words)),
            "{text}"
        );
        ended += 1;
    }
    (said, ended)
}

#[test]
fn a_processor_without_memory() {
    let (said, ended) = with_limits("memory::processor");
    let count = |word: &str| said.iter().filter(|text| text.contains(word)).count();
    // Each outcome occurred, so the limits have an effect.
    assert!(ended > 0, "{said:?}");
    assert!(
        count("no threads") > 0 && count("some threads") > 0,
        "{said:?}"
    );
}

#[test]
#[ignore = "run by the test above"]
fn processor() {
    let backend = Cpu::with_threads(2.try_into().unwrap()).unwrap();
    // Some MiB to compute with, and the expected results, made before the limit.
    let batch = Batch::random(512, 20_000, 1);
    Batch::random(512, 100, 2).compute(&backend).unwrap();
    let key = work::key();
    work::sign(&backend, &key, 10).unwrap();

    limit_memory(value().parse::<u64>().unwrap() << 20);
    let threads = THREADS.try_into().unwrap();
    match Cpu::with_threads(threads).map(drop) {
        Ok(()) => println!("some threads"),
        Err(error) => {
            assert_eq!(error, Error::ThreadPool { threads: THREADS });
            println!("no threads");
        }
    }
    batch.compute(&backend).unwrap();
    work::sign(&backend, &key, 300).unwrap();
    unlimit_memory();
    Cpu::with_threads(threads).unwrap();
    batch.compute(&backend).unwrap();
}

#[cfg(feature = "cuda")]
#[test]
fn a_gpu_without_memory_of_the_host() {
    if super::gpu() {
        let (said, _) = with_limits("memory::pinned");
        assert!(!said.is_empty());
    }
}

#[cfg(feature = "cuda")]
#[test]
#[ignore = "run by the test above"]
fn pinned() {
    use batch_modexp::backend::{Auto, Kind};

    let backend = Auto::with(Kind::Cuda, None).unwrap();
    Batch::random(512, 100, 2).compute(&backend).unwrap();
    // Needs larger pinned buffers than exist so far.
    let batch = Batch::random(512, 60_000, 1);
    limit_memory(value().parse::<u64>().unwrap() << 20);
    let result = batch.compute(&backend);
    unlimit_memory();
    println!("{result:?}");
    assert!(
        matches!(
            result,
            Ok(()) | Err(Error::Cuda { .. } | Error::ThreadPool { .. })
        ),
        "{result:?}"
    );
    batch.compute(&backend).unwrap();
}

/// Limits address space to `more` bytes beyond the current use.
fn limit_memory(more: u64) {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages: u64 = statm.split(' ').next().unwrap().parse().unwrap();
    // SAFETY: only asks for a number.
    let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) } as u64;
    set_limit(pages * page + more);
}

fn unlimit_memory() {
    set_limit(libc::RLIM_INFINITY);
}

/// Sets the limit, which the process may raise later.
fn set_limit(bytes: u64) {
    let limit = libc::rlimit {
        rlim_cur: bytes,
        rlim_max: libc::RLIM_INFINITY,
    };
    // SAFETY: `limit` is a valid value, which the call reads.
    let status = unsafe { libc::setrlimit(libc::RLIMIT_AS, &limit) };
    assert_eq!(status, 0, "the limit was not set");
}
