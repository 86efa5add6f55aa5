"""Compares batch_modexp with gmpy2 and cryptography, in turns: medians of several rounds. Prints the table of docs/python.md.

    python bench.py [--rounds 5] [--threads 1]
"""

import argparse
import platform
import secrets
import statistics
import time
from concurrent.futures import ThreadPoolExecutor

import batch_modexp
import cryptography
import gmpy2
from cryptography.hazmat.backends.openssl.backend import backend as openssl
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding


def median_times(rounds, *functions):
    """The median time of each function in seconds. They take turns, so that other work on the machine hits all alike."""
    times = [[] for _ in functions]
    for _ in range(rounds):
        for function, own in zip(functions, times):
            start = time.perf_counter()
            function()
            own.append(time.perf_counter() - start)
    return [statistics.median(own) for own in times]


def row(name, rounds, count, ours, theirs):
    """Prints the rates of both, with three digits, and how many times ours is theirs.

    `theirs` computes the items of a slice. Each thread of the pool gets a slice.
    """
    slices = [slice(start, None, POOL["threads"]) for start in range(POOL["threads"])]
    in_pool = lambda: [*POOL["pool"].map(theirs, slices)]
    rates = [count / seconds for seconds in median_times(rounds, ours, in_pool)]
    cells = [f"{float(f'{rate:.3g}'):,.0f}" for rate in rates]
    ratio = rates[0] / rates[1]
    print(f"| {name} | {cells[0]} | {cells[1]} | {ratio:.{1 if ratio >= 1 else 2}f} |", flush=True)


def release_lock():
    """Lets gmpy2 release the interpreter's lock in this thread, as cryptography does."""
    gmpy2.get_context().allow_release_gil = True


# The threads of gmpy2 and cryptography.
POOL = {}


def numbers(bits, count):
    return [secrets.randbits(bits) | 1 << (bits - 1) | 1 for _ in range(count)]


def powers(rounds, bits, count):
    bases, exponents, moduli = (numbers(bits, count) for _ in range(3))
    mpz_bases, mpz_exponents, mpz_moduli = ([*map(gmpy2.mpz, list)] for list in (bases, exponents, moduli))
    assert batch_modexp.powmod_list(bases, exponents, moduli) == [*map(pow, bases, exponents, moduli)]
    row(
        f"`powmod_list`, {bits} bits",
        rounds,
        count,
        lambda: batch_modexp.powmod_list(bases, exponents, moduli),
        lambda s: [*map(gmpy2.powmod, mpz_bases[s], mpz_exponents[s], mpz_moduli[s])],
    )


def powers_of_bases(rounds, bits, count):
    bases, [exponent, modulus] = numbers(bits, count), numbers(bits, 2)
    mpz_bases = [*map(gmpy2.mpz, bases)]
    for e, name in [(exponent, ""), (65537, ", exponent 65537")]:
        mpz_exponent, mpz_modulus = gmpy2.mpz(e), gmpy2.mpz(modulus)
        row(
            f"`powmod_base_list`, {bits} bits{name}",
            rounds,
            count,
            lambda: batch_modexp.powmod_base_list(bases, e, modulus),
            lambda s: gmpy2.powmod_base_list(mpz_bases[s], mpz_exponent, mpz_modulus),
        )


def products(rounds, bits, count):
    a, b, [modulus] = numbers(bits, count), numbers(bits, count), numbers(bits, 1)
    mpz_a, mpz_b, mpz_modulus = [*map(gmpy2.mpz, a)], [*map(gmpy2.mpz, b)], gmpy2.mpz(modulus)
    octets = [b"".join(x.to_bytes(bits // 8, "big") for x in factors) for factors in (a, b)]
    for name, ours in [
        ("", lambda: batch_modexp.mulmod_list(a, b, modulus)),
        (", buffers", lambda: batch_modexp.mulmod_list(*octets, modulus, count=count)),
    ]:
        theirs = lambda s: [x * y % mpz_modulus for x, y in zip(mpz_a[s], mpz_b[s])]
        row(f"`mulmod_list`, {bits} bits{name}", rounds, count, ours, theirs)


def rsa(rounds, bits, count):
    [key] = batch_modexp.generate_keys(bits, 1)
    public = key.public_key()
    other = serialization.load_pem_private_key(key.to_pem().encode(), None)
    other_public = other.public_key()
    sha256, pkcs1v15 = hashes.SHA256(), padding.PKCS1v15()
    oaep = padding.OAEP(padding.MGF1(sha256), sha256, None)
    messages = [secrets.token_bytes(32) for _ in range(count)]
    signatures = key.sign_list(messages, "pkcs1v15")
    ciphertexts = public.encrypt_list(messages)
    for name, scheme, ours, theirs in [
        (
            "sign_list",
            "PKCS#1 v1.5",
            lambda: key.sign_list(messages, "pkcs1v15"),
            lambda s: [other.sign(m, pkcs1v15, sha256) for m in messages[s]],
        ),
        (
            "verify_list",
            "PKCS#1 v1.5",
            lambda: public.verify_list(messages, signatures, "pkcs1v15"),
            lambda s: [other_public.verify(x, m, pkcs1v15, sha256) for m, x in zip(messages[s], signatures[s])],
        ),
        (
            "decrypt_list",
            "OAEP",
            lambda: key.decrypt_list(ciphertexts),
            lambda s: [other.decrypt(c, oaep) for c in ciphertexts[s]],
        ),
        (
            "encrypt_list",
            "OAEP",
            lambda: public.encrypt_list(messages),
            lambda s: [other_public.encrypt(m, oaep) for m in messages[s]],
        ),
    ]:
        row(f"`{name}`, RSA-{bits}, {scheme}", rounds, count, ours, theirs)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=1, help="of batch_modexp, and of a pool for the others")
    arguments = parser.parse_args()
    batch_modexp.set_threads(arguments.threads)
    POOL["threads"] = arguments.threads
    POOL["pool"] = ThreadPoolExecutor(arguments.threads, initializer=release_lock)
    name, threads, _ = batch_modexp.backend()
    print(f"batch_modexp: {name}, {threads} thread(s); Python {platform.python_version()}")
    print(f"gmpy2 {gmpy2.version()}, {gmpy2.mp_version()}")
    print(f"cryptography {cryptography.__version__}, {openssl.openssl_version_text()}\n")
    print("| | `batch_modexp` | gmpy2 or cryptography | ratio |\n|---|---:|---:|---:|")
    for bits, count in [(1024, 1024), (2048, 512), (4096, 128)]:
        powers(arguments.rounds, bits, count)
    powers_of_bases(arguments.rounds, 2048, 512)
    for bits in [2048, 256]:
        products(arguments.rounds, bits, 20_000)
    for bits, count in [(2048, 512), (4096, 128)]:
        rsa(arguments.rounds, bits, count)


if __name__ == "__main__":
    main()
