"""Compares batch_modexp with gmpy2 and cryptography, in turns: medians of several rounds.

    python bench.py [--rounds 5] [--threads 1]
"""

import argparse
import secrets
import statistics
import time

import batch_modexp
import gmpy2
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


def report(name, count, times, labels):
    rates = " ".join(f"{label} {count / t:>10,.0f}/s" for label, t in zip(labels, times))
    print(f"{name:<34} {rates}   ratio {times[1] / times[0]:.2f}")


def powers(rounds, bits, count):
    modulus = secrets.randbits(bits) | 1 << (bits - 1) | 1
    moduli = [secrets.randbits(bits) | 1 << (bits - 1) | 1 for _ in range(count)]
    bases = [secrets.randbelow(modulus) for _ in range(count)]
    exponents = [secrets.randbits(bits) for _ in range(count)]
    mpz_bases, mpz_exponents = [*map(gmpy2.mpz, bases)], [*map(gmpy2.mpz, exponents)]
    mpz_moduli, mpz_modulus = [*map(gmpy2.mpz, moduli)], gmpy2.mpz(modulus)
    assert batch_modexp.powmod_list(bases, exponents, moduli) == [*map(pow, bases, exponents, moduli)]
    labels = ["batch_modexp", "gmpy2"]
    times = median_times(
        rounds,
        lambda: batch_modexp.powmod_base_list(bases, exponents[0], modulus),
        lambda: gmpy2.powmod_base_list(mpz_bases, mpz_exponents[0], mpz_modulus),
    )
    report(f"powmod_base_list, {bits} bits", count, times, labels)
    times = median_times(
        rounds,
        lambda: batch_modexp.powmod_list(bases, exponents, moduli),
        lambda: [*map(gmpy2.powmod, mpz_bases, mpz_exponents, mpz_moduli)],
    )
    report(f"powmod_list, {bits} bits", count, times, labels)
    times = median_times(
        rounds,
        lambda: batch_modexp.powmod_base_list(bases, 65537, modulus),
        lambda: gmpy2.powmod_base_list(mpz_bases, 65537, mpz_modulus),
    )
    report(f"powmod_base_list, {bits} bits, 65537", count, times, labels)


def products(rounds, bits, count):
    modulus = secrets.randbits(bits) | 1 << (bits - 1) | 1
    a = [secrets.randbelow(modulus) for _ in range(count)]
    b = [secrets.randbelow(modulus) for _ in range(count)]
    mpz_a, mpz_b, mpz_modulus = [*map(gmpy2.mpz, a)], [*map(gmpy2.mpz, b)], gmpy2.mpz(modulus)
    times = median_times(
        rounds,
        lambda: batch_modexp.mulmod_list(a, b, modulus),
        lambda: [x * y % mpz_modulus for x, y in zip(mpz_a, mpz_b)],
    )
    report(f"mulmod_list, {bits} bits", count, times, ["batch_modexp", "gmpy2"])
    octets = [b"".join(x.to_bytes(bits // 8, "big") for x in numbers) for numbers in (a, b)]
    times = median_times(
        rounds,
        lambda: batch_modexp.mulmod_list(*octets, modulus, count=count),
        lambda: [x * y % mpz_modulus for x, y in zip(mpz_a, mpz_b)],
    )
    report(f"mulmod_list, {bits} bits, buffers", count, times, ["batch_modexp", "gmpy2"])


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
    for name, ours, theirs in [
        (
            "sign_list",
            lambda: key.sign_list(messages, "pkcs1v15"),
            lambda: [other.sign(m, pkcs1v15, sha256) for m in messages],
        ),
        (
            "verify_list",
            lambda: public.verify_list(messages, signatures, "pkcs1v15"),
            lambda: [other_public.verify(s, m, pkcs1v15, sha256) for m, s in zip(messages, signatures)],
        ),
        (
            "decrypt_list",
            lambda: key.decrypt_list(ciphertexts),
            lambda: [other.decrypt(c, oaep) for c in ciphertexts],
        ),
        (
            "encrypt_list",
            lambda: public.encrypt_list(messages),
            lambda: [other_public.encrypt(m, oaep) for m in messages],
        ),
    ]:
        times = median_times(rounds, ours, theirs)
        report(f"{name}, RSA-{bits}", count, times, ["batch_modexp", "cryptography"])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=1, help="of batch_modexp; the others have one")
    arguments = parser.parse_args()
    batch_modexp.set_threads(arguments.threads)
    print(*batch_modexp.backend()[:2], "thread(s)")
    for bits, count in [(1024, 1024), (2048, 512), (4096, 128)]:
        powers(arguments.rounds, bits, count)
    for bits in [256, 2048]:
        products(arguments.rounds, bits, 20_000)
    for bits, count in [(2048, 512), (4096, 128)]:
        rsa(arguments.rounds, bits, count)


if __name__ == "__main__":
    main()
