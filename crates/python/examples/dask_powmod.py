"""Powers of long arrays of numbers on a Dask cluster.

    pip install "dask[array,distributed]"
    python dask_powmod.py --count 100000 --workers 2

Numbers are rows of octets, most significant first. Other workers compute the chunks of one that
died.
"""

import argparse
import secrets
import time

import batch_modexp
import dask.array
import numpy
from distributed import Client, LocalCluster


def powers(bases, exponents, moduli, powmod=batch_modexp.powmod_list):
    """An array of powers, chunk by chunk."""
    return dask.array.map_blocks(
        powmod, bases, exponents, moduli, dtype=numpy.uint8, meta=numpy.empty((0, 0), numpy.uint8)
    )


def random_numbers(count, width):
    """Rows of octets: odd numbers, which may be moduli."""
    octets = (
        numpy.frombuffer(secrets.token_bytes(count * width), dtype=numpy.uint8)
        .reshape(count, width)
        .copy()
    )
    octets[:, -1] |= 1
    return octets


def main():
    parser = argparse.ArgumentParser(description="Powers on a Dask cluster.")
    parser.add_argument("--count", type=int, default=100_000, help="the number of powers")
    parser.add_argument("--workers", type=int, default=2, help="the number of processes")
    options = parser.parse_args()
    width, chunk = 256, 4096

    with LocalCluster(n_workers=options.workers, threads_per_worker=1) as cluster, Client(
        cluster
    ) as client:
        # Workers share the cores.
        client.run(batch_modexp.set_threads, 1)
        numbers = [random_numbers(options.count, width) for _ in range(3)]
        bases, exponents, moduli = (
            dask.array.from_array(octets, chunks=(chunk, width)) for octets in numbers
        )
        started = time.monotonic()
        result = powers(bases, exponents, moduli).compute()
        seconds = time.monotonic() - started
    base, exponent, modulus, power = (
        int.from_bytes(octets[-1].tobytes()) for octets in [*numbers, result]
    )
    verdict = "right" if pow(base, exponent, modulus) == power else "wrong"
    print(f"{len(result):,} powers of {8 * width} bits in {seconds:.1f} s; the last is {verdict}")


if __name__ == "__main__":
    main()
