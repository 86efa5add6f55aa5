from asyncio import Future
from collections.abc import Iterable, Sequence
from typing import Any, Literal, Protocol, SupportsIndex, TypeAlias, final, overload

from typing_extensions import disjoint_base

# collections.abc.Buffer is new in Python 3.12; numpy's arrays have the second.
class _Array(Protocol):
    @property
    def __array_interface__(self) -> dict[str, Any]: ...

_Octets: TypeAlias = bytes | bytearray | memoryview
_Buffer: TypeAlias = _Octets | _Array
_Numbers: TypeAlias = Iterable[SupportsIndex] | _Buffer
_Number: TypeAlias = SupportsIndex | _Buffer
_Hash: TypeAlias = Literal[
    "sha224", "sha256", "sha384", "sha512", "sha512_224", "sha512_256", "sha3_224", "sha3_256", "sha3_384", "sha3_512"
]
_OaepHash: TypeAlias = _Hash | Literal["sha1"]
_Signature: TypeAlias = Literal["pss", "pkcs1v15"]
_Encryption: TypeAlias = Literal["oaep", "pkcs1v15"]

__all__ = [
    "Error",
    "GeneratedKey",
    "PrivateKey",
    "PublicKey",
    "SigningQueue",
    "backend",
    "decrypt_list",
    "encrypt_list",
    "generate_keys",
    "mulmod_list",
    "powmod_base_list",
    "powmod_exp_list",
    "powmod_list",
    "set_gpus",
    "set_threads",
    "sign_list",
    "verify_list",
]

class Error(ValueError):
    index: int | None

# A list of integers gives a list of integers, octets give octets, and an array gives an array. An array is Any, since numpy
# need not be there. Octets are iterables of integers too: the first overload that fits counts.
@overload
def powmod_list(bases: _Octets, exponents: _Numbers, moduli: _Numbers, *, count: int | None = None) -> bytes: ...  # type: ignore[overload-overlap]
@overload
def powmod_list(bases: _Array, exponents: _Numbers, moduli: _Numbers, *, count: int | None = None) -> Any: ...
@overload
def powmod_list(
    bases: Iterable[SupportsIndex], exponents: _Numbers, moduli: _Numbers, *, count: int | None = None
) -> list[int]: ...
@overload
def powmod_base_list(bases: _Octets, exponent: _Number, modulus: _Number, *, count: int | None = None) -> bytes: ...  # type: ignore[overload-overlap]
@overload
def powmod_base_list(bases: _Array, exponent: _Number, modulus: _Number, *, count: int | None = None) -> Any: ...
@overload
def powmod_base_list(
    bases: Iterable[SupportsIndex], exponent: _Number, modulus: _Number, *, count: int | None = None
) -> list[int]: ...
@overload
def powmod_exp_list(base: _Number, exponents: _Octets, modulus: _Number, *, count: int | None = None) -> bytes: ...  # type: ignore[overload-overlap]
@overload
def powmod_exp_list(base: _Number, exponents: _Array, modulus: _Number, *, count: int | None = None) -> Any: ...
@overload
def powmod_exp_list(
    base: _Number, exponents: Iterable[SupportsIndex], modulus: _Number, *, count: int | None = None
) -> list[int]: ...
@overload
def mulmod_list(a: _Octets, b: _Numbers, moduli: _Numbers | SupportsIndex, *, count: int | None = None) -> bytes: ...  # type: ignore[overload-overlap]
@overload
def mulmod_list(a: _Array, b: _Numbers, moduli: _Numbers | SupportsIndex, *, count: int | None = None) -> Any: ...
@overload
def mulmod_list(
    a: Iterable[SupportsIndex], b: _Numbers, moduli: _Numbers | SupportsIndex, *, count: int | None = None
) -> list[int]: ...
def backend() -> tuple[str, int, str]: ...
def set_gpus(gpus: bool | Sequence[SupportsIndex]) -> None: ...
def set_threads(count: int | None) -> None: ...
def generate_keys(
    bits: int, count: int, *, public_exponent: int = 65537, safe_primes: bool = False
) -> list[GeneratedKey]: ...
@overload
def sign_list(
    keys: Iterable[PrivateKey],
    messages: Iterable[_Buffer],
    padding: _Signature = "pss",
    hash: _Hash = "sha256",
    *,
    salt_length: int | None = None,
    prehashed: bool = False,
    return_exceptions: Literal[False] = False,
) -> list[bytes]: ...
@overload
def sign_list(
    keys: Iterable[PrivateKey],
    messages: Iterable[_Buffer],
    padding: _Signature = "pss",
    hash: _Hash = "sha256",
    *,
    salt_length: int | None = None,
    prehashed: bool = False,
    return_exceptions: bool,
) -> list[bytes | Error]: ...
def verify_list(
    keys: Iterable[PublicKey],
    messages: Iterable[_Buffer],
    signatures: Iterable[_Buffer],
    padding: _Signature = "pss",
    hash: _Hash = "sha256",
    *,
    salt_length: int | Literal["any"] | None = None,
    prehashed: bool = False,
    raise_invalid: bool = False,
) -> list[bool]: ...
@overload
def encrypt_list(
    keys: Iterable[PublicKey],
    messages: Iterable[_Buffer],
    padding: _Encryption = "oaep",
    hash: _OaepHash = "sha256",
    *,
    mgf_hash: _OaepHash | None = None,
    label: _Buffer | None = None,
    return_exceptions: Literal[False] = False,
) -> list[bytes]: ...
@overload
def encrypt_list(
    keys: Iterable[PublicKey],
    messages: Iterable[_Buffer],
    padding: _Encryption = "oaep",
    hash: _OaepHash = "sha256",
    *,
    mgf_hash: _OaepHash | None = None,
    label: _Buffer | None = None,
    return_exceptions: bool,
) -> list[bytes | Error]: ...
@overload
def decrypt_list(
    keys: Iterable[PrivateKey],
    ciphertexts: Iterable[_Buffer],
    padding: _Encryption = "oaep",
    hash: _OaepHash = "sha256",
    *,
    mgf_hash: _OaepHash | None = None,
    label: _Buffer | None = None,
    return_exceptions: Literal[False] = False,
) -> list[bytes]: ...
@overload
def decrypt_list(
    keys: Iterable[PrivateKey],
    ciphertexts: Iterable[_Buffer],
    padding: _Encryption = "oaep",
    hash: _OaepHash = "sha256",
    *,
    mgf_hash: _OaepHash | None = None,
    label: _Buffer | None = None,
    return_exceptions: bool,
) -> list[bytes | Error]: ...

@disjoint_base
class PrivateKey:
    @staticmethod
    def from_pem(data: str | _Buffer, password: str | _Buffer | None = None) -> PrivateKey: ...
    @staticmethod
    def from_der(data: _Buffer, password: str | _Buffer | None = None) -> PrivateKey: ...
    @staticmethod
    def from_cryptography(key: Any) -> PrivateKey: ...
    @property
    def bits(self) -> int: ...
    @property
    def size(self) -> int: ...
    def public_key(self) -> PublicKey: ...
    @overload
    def sign_list(
        self,
        messages: Iterable[_Buffer],
        padding: _Signature = "pss",
        hash: _Hash = "sha256",
        *,
        salt_length: int | None = None,
        prehashed: bool = False,
        return_exceptions: Literal[False] = False,
    ) -> list[bytes]: ...
    @overload
    def sign_list(
        self,
        messages: Iterable[_Buffer],
        padding: _Signature = "pss",
        hash: _Hash = "sha256",
        *,
        salt_length: int | None = None,
        prehashed: bool = False,
        return_exceptions: bool,
    ) -> list[bytes | Error]: ...
    @overload
    def decrypt_list(
        self,
        ciphertexts: Iterable[_Buffer],
        padding: _Encryption = "oaep",
        hash: _OaepHash = "sha256",
        *,
        mgf_hash: _OaepHash | None = None,
        label: _Buffer | None = None,
        return_exceptions: Literal[False] = False,
    ) -> list[bytes]: ...
    @overload
    def decrypt_list(
        self,
        ciphertexts: Iterable[_Buffer],
        padding: _Encryption = "oaep",
        hash: _OaepHash = "sha256",
        *,
        mgf_hash: _OaepHash | None = None,
        label: _Buffer | None = None,
        return_exceptions: bool,
    ) -> list[bytes | Error]: ...

@final
class GeneratedKey(PrivateKey):
    def to_pem(self) -> str: ...
    def to_der(self) -> bytes: ...

@final
class PublicKey:
    @staticmethod
    def from_pem(data: str | _Buffer) -> PublicKey: ...
    @staticmethod
    def from_der(data: _Buffer) -> PublicKey: ...
    @staticmethod
    def from_numbers(n: SupportsIndex, e: SupportsIndex) -> PublicKey: ...
    @staticmethod
    def from_cryptography(key: Any) -> PublicKey: ...
    @property
    def bits(self) -> int: ...
    @property
    def size(self) -> int: ...
    @property
    def n(self) -> int: ...
    @property
    def e(self) -> int: ...
    def to_der(self) -> bytes: ...
    def to_pem(self) -> str: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...
    def verify_list(
        self,
        messages: Iterable[_Buffer],
        signatures: Iterable[_Buffer],
        padding: _Signature = "pss",
        hash: _Hash = "sha256",
        *,
        salt_length: int | Literal["any"] | None = None,
        prehashed: bool = False,
        raise_invalid: bool = False,
    ) -> list[bool]: ...
    @overload
    def encrypt_list(
        self,
        messages: Iterable[_Buffer],
        padding: _Encryption = "oaep",
        hash: _OaepHash = "sha256",
        *,
        mgf_hash: _OaepHash | None = None,
        label: _Buffer | None = None,
        return_exceptions: Literal[False] = False,
    ) -> list[bytes]: ...
    @overload
    def encrypt_list(
        self,
        messages: Iterable[_Buffer],
        padding: _Encryption = "oaep",
        hash: _OaepHash = "sha256",
        *,
        mgf_hash: _OaepHash | None = None,
        label: _Buffer | None = None,
        return_exceptions: bool,
    ) -> list[bytes | Error]: ...

@final
class SigningQueue:
    def __new__(
        cls, *, threads: int | None = None, capacity: int = 8192, gpus: bool | Sequence[SupportsIndex] = False
    ) -> SigningQueue: ...
    def sign(
        self,
        key: PrivateKey,
        message: _Buffer,
        padding: _Signature = "pss",
        hash: _Hash = "sha256",
        *,
        salt_length: int | None = None,
        prehashed: bool = False,
    ) -> Future[bytes]: ...
    def sign_blocking(
        self,
        key: PrivateKey,
        message: _Buffer,
        padding: _Signature = "pss",
        hash: _Hash = "sha256",
        *,
        salt_length: int | None = None,
        prehashed: bool = False,
    ) -> bytes: ...
    def close(self, *, cancel: bool = False) -> None: ...
    def stats(self) -> dict[str, int]: ...
    def __enter__(self) -> SigningQueue: ...
    def __exit__(self, *exception: object) -> None: ...
