"""GPUs. Without one the tests of results are skipped, unless BATCH_MODEXP_REQUIRE has "cuda".

It needs no other package than the module: python test_gpus.py
"""

import asyncio
import hashlib
import os
import secrets
import signal
import subprocess
import sys
import time
import unittest

import batch_modexp
from batch_modexp import Error, SigningQueue

NO_SUCH_GPU = 1_000_000
# The DigestInfo of SHA-256 (RFC 8017, section 9.2).
SHA256_PREFIX = bytes.fromhex("3031300d060960864801650304020105000420")


def encoded(message, size):
    """The encoded message of PKCS #1 v1.5 with SHA-256, as an integer."""
    info = SHA256_PREFIX + hashlib.sha256(message).digest()
    return int.from_bytes(b"\0\1" + b"\xff" * (size - len(info) - 3) + b"\0" + info, "big")


def numbers(bits, count):
    """Bases, exponents and odd moduli of full length."""
    top = 1 << (bits - 1)
    return (
        [secrets.randbits(bits) for _ in range(count)],
        [secrets.randbits(bits) | top for _ in range(count)],
        [secrets.randbits(bits) | top | 1 for _ in range(count)],
    )


class Requests(unittest.TestCase):
    """What holds on all machines."""

    def test_a_gpu_that_does_not_exist_is_an_error(self):
        before = batch_modexp.backend()
        for ask in (batch_modexp.set_gpus, lambda gpus: SigningQueue(gpus=gpus)):
            with self.assertRaisesRegex(Error, "no GPU can be used: ") as raised:
                ask([NO_SUCH_GPU])
            self.assertIsNone(raised.exception.index)
        self.assertEqual(batch_modexp.backend(), before)
        bases, exponents, moduli = numbers(256, 100)
        powers = [pow(*instance) for instance in zip(bases, exponents, moduli)]
        self.assertEqual(batch_modexp.powmod_list(bases, exponents, moduli), powers)

    def test_wrong_arguments(self):
        with self.assertRaisesRegex(Error, "empty"):
            batch_modexp.set_gpus([])
        for wrong in ("0", 0, None, [-1], ["0"], 1.5):
            with self.assertRaisesRegex(TypeError, "a list of the numbers"):
                batch_modexp.set_gpus(wrong)

    def test_no_gpus_are_used_unless_asked_for(self):
        batch_modexp.set_gpus(False)
        self.assertNotEqual(batch_modexp.backend()[0], "cuda")


class Results(unittest.TestCase):
    """Results of GPUs, in lists that are long enough for them."""

    @classmethod
    def setUpClass(cls):
        try:
            batch_modexp.set_gpus(True)
        except Error as error:
            if "cuda" in os.environ.get("BATCH_MODEXP_REQUIRE", "").split(","):
                raise
            raise unittest.SkipTest(f"needs cuda: {error}") from None
        cls.key = batch_modexp.generate_keys(2048, 1)[0]
        cls.public = cls.key.public_key()

    @classmethod
    def tearDownClass(cls):
        batch_modexp.set_gpus(False)

    def setUp(self):
        if batch_modexp.backend()[0] != "cuda":
            batch_modexp.set_gpus(True)
        self.assertEqual(batch_modexp.backend()[0], "cuda")

    def check_powers(self, powers, bases, exponents, moduli, samples):
        self.assertEqual(len(powers), len(bases))
        for i in {0, len(powers) - 1, *(secrets.randbelow(len(powers)) for _ in range(samples))}:
            self.assertEqual(powers[i], pow(bases[i], exponents[i], moduli[i]), i)

    def test_powmod_list(self):
        for bits, count, samples in ((256, 50_000, 500), (1024, 20_000, 200), (2048, 20_000, 100), (4096, 2_000, 20)):
            bases, exponents, moduli = numbers(bits, count)
            powers = batch_modexp.powmod_list(bases, exponents, moduli)
            self.check_powers(powers, bases, exponents, moduli, samples)

    def test_the_widest_powers(self):
        bases, exponents, moduli = numbers(8192, 1_500)
        powers = batch_modexp.powmod_list(bases, exponents, moduli)
        self.check_powers(powers, bases, exponents, moduli, 3)

    def test_lists_of_several_widths_and_signs(self):
        bases, exponents, moduli = (sum(lists, []) for lists in zip(numbers(1000, 3_000), numbers(2048, 3_000)))
        exponents[::7] = [-exponent for exponent in exponents[::7]]
        moduli[::7] = [(1 << 521) - 1] * len(moduli[::7])
        powers = batch_modexp.powmod_list(bases, exponents, moduli)
        self.check_powers(powers, bases, exponents, moduli, 200)

    def test_one_base_or_one_exponent(self):
        bases, exponents, [modulus, *_] = numbers(2048, 10_000)
        powers = batch_modexp.powmod_exp_list(bases[0], exponents, modulus)
        self.check_powers(powers, bases[:1] * 10_000, exponents, [modulus] * 10_000, 100)
        powers = batch_modexp.powmod_base_list(bases, exponents[0], modulus)
        self.check_powers(powers, bases, exponents[:1] * 10_000, [modulus] * 10_000, 100)

    def test_products(self):
        factors, others, moduli = numbers(512, 10_000)
        products = [a * b % m for a, b, m in zip(factors, others, moduli)]
        self.assertEqual(batch_modexp.mulmod_list(factors, others, moduli), products)

    def test_signatures(self):
        n, e = self.public.n, self.public.e
        messages = [b"%d" % i for i in range(20_000)]
        for message, signature in zip(messages, self.key.sign_list(messages, "pkcs1v15")):
            self.assertEqual(pow(int.from_bytes(signature, "big"), e, n), encoded(message, 256))
        signatures = self.key.sign_list(messages)
        batch_modexp.set_gpus(False)
        self.assertTrue(all(self.public.verify_list(messages, signatures)))

    def test_signatures_with_other_keys(self):
        for bits in (1024, 3072, 4096):
            [key] = batch_modexp.generate_keys(bits, 1)
            messages = [b"%d" % i for i in range(3_000)]
            signatures = key.sign_list(messages, "pkcs1v15")
            public = key.public_key()
            for message, signature in zip(messages, signatures):
                self.assertEqual(pow(int.from_bytes(signature, "big"), public.e, public.n), encoded(message, bits // 8))

    def test_verdicts(self):
        messages = [b"%d" % i for i in range(200_000)]
        batch_modexp.set_gpus(False)
        signatures = self.key.sign_list(messages[:100]) * 2_000
        batch_modexp.set_gpus(True)
        valid = [i % 100 == int(message) for i, message in enumerate(messages)]
        self.assertEqual(self.public.verify_list(messages, signatures), valid)
        self.assertEqual(self.public.verify_list(messages[:100] * 2_000, signatures), [True] * 200_000)

    def test_decryption(self):
        messages = [b"%d" % i for i in range(5_000)]
        ciphertexts = self.public.encrypt_list(messages)
        self.assertEqual(self.key.decrypt_list(ciphertexts), messages)

    def test_gpus_and_threads_are_set_separately(self):
        cores = batch_modexp.backend()[1]
        batch_modexp.set_gpus([0])
        try:
            batch_modexp.set_threads(2)
            self.assertEqual(batch_modexp.backend()[:2], ("cuda", 2))
            batch_modexp.set_gpus(False)
            name, threads, _ = batch_modexp.backend()
            self.assertTrue(name != "cuda" and threads == 2)
        finally:
            batch_modexp.set_threads(None)
        self.assertEqual(batch_modexp.backend()[1], cores)

    def test_a_queue(self):
        messages = [b"%d" % i for i in range(3_000)]

        async def main(queue):
            return await asyncio.gather(*(queue.sign(self.key, message) for message in messages))

        with SigningQueue(gpus=True) as queue:
            signatures = asyncio.run(main(queue))
            signatures.append(queue.sign_blocking(self.key, b"last"))
            self.assertEqual(queue.stats()["signed"], 3_001)
        batch_modexp.set_gpus(False)
        self.assertTrue(all(self.public.verify_list([*messages, b"last"], signatures)))

    def test_ctrl_c_ends_a_call(self):
        messages = [b"m"] * 5_000_000
        wide = [number * 10 for number in numbers(8192, 2_000)]
        calls = {
            "sign_list": lambda: self.key.sign_list(messages, "pkcs1v15"),
            "powmod_list": lambda: batch_modexp.powmod_list(*wide),
        }
        for name, call in calls.items():
            # The driver has compiled the kernels when the second call begins.
            for _ in range(2):
                before = signal.signal(signal.SIGALRM, signal.default_int_handler)
                signal.setitimer(signal.ITIMER_REAL, 0.7)
                start = time.monotonic()
                try:
                    with self.assertRaises(KeyboardInterrupt):
                        call()
                    waited = time.monotonic() - start - 0.7
                finally:
                    signal.setitimer(signal.ITIMER_REAL, 0)
                    signal.signal(signal.SIGALRM, before)
            print(f"{name} ended {waited:.2f} s after the signal", file=sys.stderr)
            self.assertLess(waited, 1.0, name)

    @unittest.skipUnless(hasattr(os, "fork"), "needs fork")
    def test_forked_children_compute_without_gpus(self):
        """In a process of its own, since pytest and its plugins may have threads."""
        program = """
import batch_modexp, os
batch_modexp.set_gpus(True)
[key] = batch_modexp.generate_keys(2048, 1)
messages = [b"%d" % i for i in range(5000)]
signatures = key.sign_list(messages, "pkcs1v15")
child = os.fork()
if child == 0:
    right = batch_modexp.backend()[0] != "cuda"
    right = right and key.sign_list(messages[:100], "pkcs1v15") == signatures[:100]
    try:
        batch_modexp.set_gpus(True)
        right = False
    except batch_modexp.Error as error:
        right = right and "fork" in str(error)
    del key
    os._exit(0 if right else 1)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
assert key.sign_list(messages, "pkcs1v15") == signatures
"""
        subprocess.run([sys.executable, "-c", program], check=True, timeout=120)

    @unittest.skipUnless(hasattr(os, "fork"), "needs fork")
    def test_children_may_use_gpus_if_the_parent_does_not(self):
        program = """
import batch_modexp, os
child = os.fork()
if child == 0:
    batch_modexp.set_gpus(True)
    os._exit(0 if batch_modexp.backend()[0] == "cuda" else 1)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
"""
        subprocess.run([sys.executable, "-c", program], check=True, timeout=120)


if __name__ == "__main__":
    unittest.main(verbosity=2)
