"""The queue, from threads and from asyncio."""

import asyncio
import hashlib
import os
import threading

import batch_modexp
import pytest
from batch_modexp import SigningQueue


@pytest.fixture
def queue():
    with SigningQueue() as queue:
        yield queue


def test_asyncio(key, queue):
    messages = [b"%d" % i for i in range(500)]

    async def main():
        return await asyncio.gather(*(queue.sign(key, message) for message in messages))

    signatures = asyncio.run(main())
    assert key.public_key().verify_list(messages, signatures) == [True] * 500
    stats = queue.stats()
    assert stats["accepted"] == stats["signed"] == 500
    assert 0 < stats["batches"] < 500


def test_more_requests_than_the_queue_holds(key):
    async def main():
        return await asyncio.gather(*(queue.sign(key, b"m", "pkcs1v15") for _ in range(100)))

    with SigningQueue(capacity=2) as queue:
        assert len(set(asyncio.run(main()))) == 1


def test_threads(key, queue):
    signatures = {}

    def work(number):
        for round in range(10):
            message = b"%d %d" % (number, round)
            signatures[message] = queue.sign_blocking(key, message)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(signatures) == 80
    assert all(key.public_key().verify_list(signatures.keys(), signatures.values()))


def test_schemes(key, queue):
    public, digest = key.public_key(), hashlib.sha512(b"m").digest()

    async def main():
        options = {"salt_length": 11, "prehashed": True}
        return [
            await queue.sign(key, digest, "pss", "sha512", **options),
            queue.sign_blocking(key, digest, "pss", "sha512", **options),
            await queue.sign(key, b"m", "pkcs1v15", "sha384"),
            queue.sign_blocking(key, b"m", "pkcs1v15", "sha384"),
        ]

    signatures = asyncio.run(main())
    assert public.verify_list([b"m"] * 2, signatures[:2], "pss", "sha512", salt_length=11) == [True] * 2
    assert public.verify_list([b"m"] * 2, signatures[2:], "pkcs1v15", "sha384") == [True] * 2


def test_cancelled_requests_are_not_signed(key):
    async def main():
        requests = [queue.sign(key, b"m") for _ in range(2000)]
        for request in requests[1:]:
            request.cancel()
        await requests[0]
        while sum(queue.stats()[n] for n in ("signed", "cancelled")) < 2000:
            await asyncio.sleep(0.01)
        return queue.stats()

    with SigningQueue(threads=1) as queue:
        assert asyncio.run(main())["cancelled"] > 1000


def test_several_loops(key, queue):
    async def main():
        return await asyncio.gather(*(queue.sign(key, b"m", "pkcs1v15") for _ in range(20)))

    results = []
    threads = [threading.Thread(target=lambda: results.extend(asyncio.run(main()))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 80 and len(set(results)) == 1


def test_errors(key, queue):
    short = batch_modexp.generate_keys(1024, 1)[0]

    async def main():
        with pytest.raises(batch_modexp.Error, match="1034"):
            await queue.sign(short, b"m", "pss", "sha512")
        with pytest.raises(batch_modexp.Error, match="5 bytes"):
            await queue.sign(key, b"short", prehashed=True)

    asyncio.run(main())
    with pytest.raises(batch_modexp.Error, match="1034"):
        queue.sign_blocking(short, b"m", "pss", "sha512")
    with pytest.raises(RuntimeError, match="no running event loop"):
        queue.sign(key, b"m")
    for wrong in ({"threads": 0}, {"capacity": 0}):
        with pytest.raises(batch_modexp.Error, match="at least 1"):
            SigningQueue(**wrong)


def test_a_closed_queue(key):
    async def main():
        waiting = [queue.sign(key, b"m") for _ in range(50)]
        await asyncio.to_thread(queue.close)
        signatures = await asyncio.gather(*waiting)
        assert key.public_key().verify_list([b"m"] * 50, signatures) == [True] * 50
        with pytest.raises(batch_modexp.Error, match="shut down"):
            await queue.sign(key, b"m")

    queue = SigningQueue()
    asyncio.run(main())
    with pytest.raises(batch_modexp.Error, match="shut down"):
        queue.sign_blocking(key, b"m")


def test_closing_may_cancel(key):
    async def main():
        waiting = [queue.sign(key, b"m") for _ in range(5000)]
        await asyncio.to_thread(queue.close, cancel=True)
        return await asyncio.gather(*waiting, return_exceptions=True)

    queue = SigningQueue(threads=1)
    answers = asyncio.run(main())
    errors = [answer for answer in answers if isinstance(answer, batch_modexp.Error)]
    assert len(errors) > 1000 and all("shut down" in str(error) for error in errors)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_forked_child_gets_an_error(key, queue):
    async def main():
        await queue.sign(key, b"m")

    child = os.fork()
    if child == 0:
        status = 1
        try:
            asyncio.run(main())
        except batch_modexp.Error as error:
            status = 0 if "forked child" in str(error) else 2
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
