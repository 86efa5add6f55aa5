"""Batches of modular exponentiations and RSA operations, in constant time."""

from ._native import (
    Error,
    GeneratedKey,
    PrivateKey,
    PublicKey,
    SigningQueue,
    backend,
    generate_keys,
    mulmod_list,
    powmod_base_list,
    powmod_exp_list,
    powmod_list,
    set_gpus,
    set_threads,
)

__all__ = [
    "Error",
    "GeneratedKey",
    "PrivateKey",
    "PublicKey",
    "SigningQueue",
    "backend",
    "generate_keys",
    "mulmod_list",
    "powmod_base_list",
    "powmod_exp_list",
    "powmod_list",
    "set_gpus",
    "set_threads",
]
