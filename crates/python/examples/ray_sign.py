"""Signs messages on a Ray cluster, and verifies the signatures.

    pip install "ray[data]"
    python ray_sign.py KEY.pem --count 100000 --workers 2

A worker is a process that reads the key once, from a path that its machine has. The key is no
argument and no result: it is never in Ray's object store. Ray gives the batches of a worker that
died to others.
"""

import argparse
import time

import batch_modexp
import ray


class Signer:
    """A worker."""

    def __init__(self, path):
        batch_modexp.set_threads(1)
        with open(path, "rb") as file:
            self.key = batch_modexp.PrivateKey.from_pem(file.read())

    def __call__(self, batch):
        batch["signature"] = self.key.sign_list([bytes(message) for message in batch["message"]])
        return batch


def sign(messages, path, workers, batch_size=1024, signer=Signer):
    """The dataset `messages`, one of whose columns is `message`, with a column `signature`."""
    return messages.map_batches(
        signer,
        fn_constructor_args=(path,),
        batch_size=batch_size,
        num_cpus=1,
        compute=ray.data.ActorPoolStrategy(size=workers),
    )


def main():
    parser = argparse.ArgumentParser(description="Signs messages on a Ray cluster.")
    parser.add_argument("key", help="a private key in PEM, at this path on every machine")
    parser.add_argument("--count", type=int, default=100_000, help="the number of messages")
    parser.add_argument("--workers", type=int, default=2, help="the number of processes")
    options = parser.parse_args()

    with open(options.key, "rb") as file:
        public = batch_modexp.PrivateKey.from_pem(file.read()).public_key()
    messages = [{"id": i, "message": f"message {i}".encode()} for i in range(options.count)]
    messages = ray.data.from_items(messages, override_num_blocks=4 * options.workers)
    started = time.monotonic()
    rows = sign(messages, options.key, options.workers).take_all()
    seconds = time.monotonic() - started
    verdicts = public.verify_list(
        [row["message"] for row in rows], [row["signature"] for row in rows]
    )
    print(f"{len(rows):,} signatures in {seconds:.1f} s, {sum(verdicts):,} of them valid")


if __name__ == "__main__":
    main()
