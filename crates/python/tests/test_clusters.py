"""The examples for Ray and Dask on local clusters, with workers that die.

Skipped where these are not installed: they are large.
"""

import importlib.util
import os
import pathlib

import batch_modexp
import pytest

HERE = pathlib.Path(__file__).parent
KEY = HERE.parents[2] / "tests/keys/rsa2048-pkcs8.pem"


def example(name):
    spec = importlib.util.spec_from_file_location(name, HERE.parent / f"examples/{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def die_once(marker):
    """Ends the process, unless one has ended here before."""
    try:
        os.close(os.open(marker, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return
    os._exit(1)


def test_ray_signs_each_message_once(tmp_path):
    ray = pytest.importorskip("ray", reason="ray is not installed")
    pytest.importorskip("ray.data", reason="ray[data] is not installed")
    ray_sign = example("ray_sign")
    marker = str(tmp_path / "died")

    class Dying(ray_sign.Signer):
        def __call__(self, batch):
            if 700 in batch["id"]:
                die_once(marker)
            return super().__call__(batch)

    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    try:
        count = 1000
        messages = [{"id": i, "message": b"message %d" % i} for i in range(count)]
        messages = ray.data.from_items(messages, override_num_blocks=10)
        rows = ray_sign.sign(messages, str(KEY), workers=2, batch_size=50, signer=Dying).take_all()
    finally:
        ray.shutdown()
    assert os.path.exists(marker)
    assert sorted(row["id"] for row in rows) == list(range(count))
    public = batch_modexp.PrivateKey.from_pem(KEY.read_bytes()).public_key()
    assert all(row["message"] == b"message %d" % row["id"] for row in rows)
    assert all(
        public.verify_list([row["message"] for row in rows], [row["signature"] for row in rows])
    )


def test_dask_computes_every_chunk(tmp_path):
    pytest.importorskip("dask.array", reason="dask is not installed")
    distributed = pytest.importorskip("distributed", reason="distributed is not installed")
    import dask.array

    dask_powmod = example("dask_powmod")
    marker = str(tmp_path / "died")

    def powmod(bases, exponents, moduli):
        if len(bases):
            die_once(marker)
        return batch_modexp.powmod_list(bases, exponents, moduli)

    numbers = [dask_powmod.random_numbers(200, 64) for _ in range(3)]
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address=None
    ) as cluster:
        with distributed.Client(cluster):
            chunked = (dask.array.from_array(octets, chunks=(20, 64)) for octets in numbers)
            result = dask_powmod.powers(*chunked, powmod=powmod).compute()
    assert os.path.exists(marker)
    rows = zip(*numbers, result)
    for row in rows:
        base, exponent, modulus, power = (int.from_bytes(octets.tobytes()) for octets in row)
        assert pow(base, exponent, modulus) == power
