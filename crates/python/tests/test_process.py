"""Threads, signals, forks and memory."""

import gc
import itertools
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import batch_modexp
import pytest

KEYS = Path(__file__).parents[3] / "tests" / "keys"
M = (1 << 2048) - 1942289
NUMBERS = [pow(3, 2000 + i, M) for i in range(64)]  # as long as M


def work_of(key):
    """Calls that take far longer than the test if nothing ends them."""
    messages = [b"m"] * 3_000_000
    signatures = [bytes(key.size)] * 3_000_000
    many = NUMBERS * 2000
    small, large = (batch_modexp.PrivateKey.from_pem((KEYS / f"rsa{bits}.pem").read_bytes()) for bits in (1024, 4096))
    keys = [small] * 20_000 + [large] * 1_000_000
    return {
        "conversion": lambda: batch_modexp.powmod_base_list(itertools.repeat(3, 10_000_000), 3, M),
        "powmod_list": lambda: batch_modexp.powmod_list(many, many, [M] * len(many)),
        "sign_list": lambda: key.sign_list(messages),
        "keys that grow": lambda: batch_modexp.sign_list(keys, messages[: len(keys)]),
        "verify_list": lambda: [key.public_key().verify_list(messages, signatures) for _ in range(10)],
        "generate_keys": lambda: batch_modexp.generate_keys(8192, 1000),
    }


@pytest.mark.parametrize(
    "name", ["conversion", "powmod_list", "sign_list", "keys that grow", "verify_list", "generate_keys"]
)
def test_ctrl_c_ends_a_call_within_a_second(key, name):
    call = work_of(key)[name]
    # From the operating system, as Ctrl-C is: a thread of Python would need the interpreter's lock.
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    start = time.monotonic()
    signal.setitimer(signal.ITIMER_REAL, 1)
    try:
        with pytest.raises(KeyboardInterrupt):
            call()
        waited = time.monotonic() - start - 1
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert waited < 1


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="needs Linux")
def test_threads_end_after_ctrl_c_in_generate_keys():
    """One safe prime of such a key takes minutes on many machines, and these are fifty keys."""
    program = """
import batch_modexp, os, signal, time
threads = lambda: len(os.listdir("/proc/self/task"))
batch_modexp.generate_keys(1024, 2)
before = threads()
signal.signal(signal.SIGALRM, signal.default_int_handler)
signal.alarm(1)
try:
    batch_modexp.generate_keys(8192, 50, safe_primes=True)
except KeyboardInterrupt:
    assert threads() > before
    while threads() > before:
        time.sleep(0.1)
else:
    raise AssertionError("there are keys")
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=120)


def test_other_threads_run_meanwhile():
    """A call that kept the interpreter's lock would stop the counter."""
    batch_modexp.powmod_list(NUMBERS, NUMBERS, [M] * 64)
    counted, stop = [0], threading.Event()

    def count():
        while not stop.wait(0.001):
            counted[0] += 1

    counter = threading.Thread(target=count)
    counter.start()
    many = NUMBERS * 100
    start = time.monotonic()
    batch_modexp.powmod_list(many, many, [M] * len(many))
    elapsed = time.monotonic() - start
    stop.set()
    counter.join()
    assert counted[0] > 20 * elapsed


def test_calls_on_many_threads(key):
    expected = [pow(b, e, M) for b, e in zip(NUMBERS, NUMBERS[::-1])]
    failures = []

    def work(number):
        for round in range(5):
            if batch_modexp.powmod_list(NUMBERS, NUMBERS[::-1], [M] * 64) != expected:
                failures.append(number)
            messages = [b"%d %d %d" % (number, round, i) for i in range(20)]
            if not all(key.public_key().verify_list(messages, key.sign_list(messages))):
                failures.append(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


def test_the_number_of_threads_can_be_set():
    cores = batch_modexp.backend()[1]
    try:
        for threads in (1, 3):
            batch_modexp.set_threads(threads)
            assert batch_modexp.backend()[1] == threads
            assert batch_modexp.powmod_base_list(NUMBERS, 3, M) == [pow(n, 3, M) for n in NUMBERS]
        with pytest.raises(batch_modexp.Error, match="at least 1"):
            batch_modexp.set_threads(0)
    finally:
        batch_modexp.set_threads(None)
    assert batch_modexp.backend()[1] == cores


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_forked_children_compute(key):
    """In a process of its own, since pytest and its plugins may have threads."""
    program = f"""
import batch_modexp, os
numbers, modulus = {NUMBERS[:4]}, {M}
expected = [pow(n, n, modulus) for n in numbers]
many = numbers * 100
assert batch_modexp.powmod_list(many, many, [modulus] * 400) == expected * 100
child = os.fork()
if child == 0:
    right = batch_modexp.powmod_list(many, many, [modulus] * 400) == expected * 100
    key = batch_modexp.generate_keys(1024, 1)[0]
    right = right and key.public_key().verify_list([b"a"], key.sign_list([b"a"])) == [True]
    os._exit(0 if right else 1)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs Linux")
def test_without_more_threads():
    """If the system refuses a thread, calls compute on their own, or raise an Error."""
    program = f"""
import batch_modexp, os, resource
batch_modexp.set_threads(2)
numbers, moduli = {NUMBERS}, [{M} - 2 * i for i in range(1000)]
products = batch_modexp.mulmod_list([3] * 1000, [5] * 1000, moduli)
resource.setrlimit(resource.RLIMIT_NPROC, (1, 1))
if os.getuid() == 0:
    # Root has no such limit.
    os.setuid(65534)
assert batch_modexp.mulmod_list([3] * 1000, [5] * 1000, moduli) == products
try:
    batch_modexp.generate_keys(1024, 1)
except batch_modexp.Error as error:
    assert "refuses a thread" in str(error), error
else:
    raise AssertionError("there is a thread")
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


def copies_in_memory(process, octets):
    """How often `octets` are in the writable memory of a process."""
    count = 0
    with open(f"/proc/{process.pid}/maps") as maps, open(f"/proc/{process.pid}/mem", "rb", 0) as memory:
        for where, mode, *_, name in map(str.split, maps):
            if mode.startswith("rw") and not name.startswith("[v"):
                start, end = (int(text, 16) for text in where.split("-"))
                memory.seek(start)
                count += memory.read(end - start).count(octets)
    return count


@pytest.mark.skipif(not Path("/proc/self/mem").exists(), reason="needs Linux")
def test_plaintexts_in_buffers_leave_no_copy():
    """Searches the memory of another process: a search of its own would leave copies."""
    program = """
import batch_modexp

key = batch_modexp.generate_keys(2048, 1)[0].public_key()
messages = [bytearray(150) for _ in range(20)]
for message in messages:
    for i in range(150):
        message[i] = (i * i + 7 * i) % 251
input("written")
key.encrypt_list(messages)
for message in messages:
    for i in range(150):
        message[i] = 0
input("encrypted")
"""
    # Freed memory loses its first octets to the allocator.
    octets = bytes((i * i + 7 * i) % 251 for i in range(64, 150))
    command = [sys.executable, "-u", "-c", program]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.read(7) == "written"
        assert copies_in_memory(process, octets) == 20
        process.stdin.write("\n")
        process.stdin.flush()
        assert process.stdout.read(9) == "encrypted"
        assert copies_in_memory(process, octets) == 0
        process.communicate("\n", timeout=60)
    assert process.returncode == 0


def resident_kib():
    status = Path("/proc/self/status").read_text()
    return int(next(line for line in status.splitlines() if line.startswith("VmRSS")).split()[1])


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs Linux")
def test_memory_does_not_grow(key):
    public = key.public_key()
    messages = [b"m" * 1000] * 500
    octets = b"".join(n.to_bytes(256, "big") for n in NUMBERS)

    def round():
        signatures = key.sign_list(messages[:50])
        public.verify_list(messages[:50], signatures)
        key.decrypt_list(public.encrypt_list([b"a"] * 50))
        key.decrypt_list([b"wrong"] * 50, return_exceptions=True)
        batch_modexp.mulmod_list(NUMBERS * 50, NUMBERS * 50, M)
        batch_modexp.powmod_base_list(octets, 65537, M, count=len(NUMBERS))
        with pytest.raises(ValueError):
            batch_modexp.powmod_list(NUMBERS, NUMBERS, [M] * 63 + [8])
        batch_modexp.PrivateKey.from_pem(key.to_pem())

    for _ in range(20):
        round()
    gc.collect()
    before = resident_kib()
    for _ in range(100):
        round()
    gc.collect()
    # One list of results of a round has 1 MiB: if a round kept it, this would be 100.
    assert resident_kib() - before < 8 * 1024
