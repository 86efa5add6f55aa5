"""Signatures and encryption, compared with the package cryptography."""

import copy
import hashlib
import pickle
from pathlib import Path

import batch_modexp
import pytest
from batch_modexp import PrivateKey, PublicKey
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding as paddings
from cryptography.hazmat.primitives.asymmetric import rsa, utils

KEYS = Path(__file__).parents[3] / "tests" / "keys"
HASHES = {"sha256": hashes.SHA256(), "sha384": hashes.SHA384(), "sha512": hashes.SHA512()}
MESSAGES = [b"", b"one", bytearray(b"two"), memoryview(b"three"), bytes(100_000)]


def theirs(key):
    return serialization.load_der_private_key(key.to_der(), None)


def scheme_of(padding, digest, salt_length):
    if padding == "pkcs1v15":
        return paddings.PKCS1v15()
    return paddings.PSS(paddings.MGF1(digest), salt_length or digest.digest_size)


SCHEMES = [(p, h, None) for p in ("pss", "pkcs1v15") for h in HASHES] + [("pss", "sha256", 20)]


@pytest.mark.parametrize("padding, hash, salt_length", SCHEMES)
def test_signatures_both_ways(key, padding, hash, salt_length):
    public, scheme, digest = theirs(key).public_key(), scheme_of(padding, HASHES[hash], salt_length), HASHES[hash]
    signatures = key.sign_list(MESSAGES, padding, hash, salt_length=salt_length)
    for message, signature in zip(MESSAGES, signatures):
        public.verify(signature, bytes(message), scheme, digest)
    own = key.public_key()
    signatures = [theirs(key).sign(bytes(m), scheme, digest) for m in MESSAGES]
    verdicts = own.verify_list(MESSAGES, signatures, padding, hash, salt_length=salt_length)
    assert verdicts == [True] * len(MESSAGES)
    digests = [hashlib.new(hash, m).digest() for m in MESSAGES]
    signatures = key.sign_list(digests, padding, hash, salt_length=salt_length, prehashed=True)
    for d, signature in zip(digests, signatures):
        public.verify(signature, d, scheme, utils.Prehashed(digest))
    assert all(own.verify_list(digests, signatures, padding, hash, salt_length=salt_length, prehashed=True))


@pytest.mark.parametrize(
    "name", [*HASHES, "sha224", "sha512_224", "sha512_256", "sha3_224", "sha3_256", "sha3_384", "sha3_512"]
)
def test_names_are_those_of_hashlib(key, name):
    digests = [hashlib.new(name, m).digest() for m in MESSAGES]
    signatures = key.sign_list(MESSAGES, "pkcs1v15", name)
    assert signatures == key.sign_list(digests, "pkcs1v15", name, prehashed=True)
    public = key.public_key()
    assert all(public.verify_list(digests, key.sign_list(MESSAGES, "pss", name), "pss", name, prehashed=True))
    assert key.decrypt_list(public.encrypt_list([b"m"], "oaep", name), "oaep", name) == [b"m"]


def test_signatures_that_are_wrong(key):
    messages = [b"0", b"1", b"2", b"3", b"4"]
    signatures = key.sign_list(messages)
    flipped = bytearray(signatures[1])
    flipped[100] ^= 1
    signatures[1:4] = [bytes(flipped), signatures[2][:-1], b"\xff" * 256]
    public = key.public_key()
    assert public.verify_list(messages, signatures) == [True, False, False, False, True]
    assert public.verify_list(messages, signatures, hash="sha512") == [False] * 5
    assert public.verify_list(messages, signatures, "pkcs1v15") == [False] * 5
    with pytest.raises(batch_modexp.Error, match="signature 1") as caught:
        public.verify_list(messages, signatures, raise_invalid=True)
    assert caught.value.index == 1
    with pytest.raises(InvalidSignature):
        theirs(key).public_key().verify(
            signatures[1], messages[1], scheme_of("pss", HASHES["sha256"], None), HASHES["sha256"]
        )


def test_verdicts_are_on_signatures_alone(key):
    """An unfit key or digest is an error, as it is in sign_list."""
    public, [signature] = key.public_key(), key.sign_list([b"a"])
    with pytest.raises(batch_modexp.Error, match="message 1") as caught:
        public.verify_list([hashlib.sha256(b"a").digest(), b"a"], [signature] * 2, prehashed=True)
    assert caught.value.index == 1
    restricted = PublicKey.from_pem((KEYS / "pss-public.pem").read_bytes())
    short = PrivateKey.from_pem((KEYS / "rsa1024.pem").read_bytes()).public_key()
    for unfit, scheme in ((restricted, ("pkcs1v15", "sha256")), (short, ("pss", "sha512"))):
        with pytest.raises(batch_modexp.Error) as caught:
            batch_modexp.verify_list([public, unfit], [b"a"] * 2, [signature, bytes(128)], *scheme)
        assert caught.value.index == 1
        assert unfit.verify_list([b"a"], [bytes(128)]) == [False]


def test_any_salt(key):
    public, signatures = key.public_key(), key.sign_list([b"a"], salt_length=7)
    assert public.verify_list([b"a"], signatures) == [False]
    assert public.verify_list([b"a"], signatures, salt_length="any") == [True]
    assert public.verify_list([b"a"], signatures, salt_length=7) == [True]
    assert public.verify_list([b"a"], key.sign_list([b"a"], salt_length=0), salt_length=0) == [True]


OAEP_HASHES = HASHES | {"sha1": hashes.SHA1(), "sha224": hashes.SHA224()}
ENCRYPTIONS = [("oaep", h, None, b"") for h in OAEP_HASHES]
ENCRYPTIONS += [("oaep", "sha256", "sha1", b"label"), ("oaep", "sha1", "sha512", b"label"), ("pkcs1v15", "sha256", None, None)]


@pytest.mark.parametrize("padding, hash, mgf_hash, label", ENCRYPTIONS)
def test_encryption_both_ways(key, padding, hash, mgf_hash, label):
    oaep = paddings.OAEP(paddings.MGF1(OAEP_HASHES[mgf_hash or hash]), OAEP_HASHES[hash], label)
    scheme = paddings.PKCS1v15() if padding == "pkcs1v15" else oaep
    messages = [b"", b"one", bytes(range(100))]
    names = {"padding": padding, "hash": hash, "mgf_hash": mgf_hash, "label": label}
    ciphertexts = key.public_key().encrypt_list(messages, **names)
    assert [theirs(key).decrypt(c, scheme) for c in ciphertexts] == messages
    ciphertexts = [theirs(key).public_key().encrypt(m, scheme) for m in messages]
    assert key.decrypt_list(ciphertexts, **names) == messages
    keys, public_keys = [key] * len(messages), [key.public_key()] * len(messages)
    assert batch_modexp.decrypt_list(keys, ciphertexts, **names) == messages
    ciphertexts = batch_modexp.encrypt_list(public_keys, messages, **names)
    assert [theirs(key).decrypt(c, scheme) for c in ciphertexts] == messages


def test_items_fail_alone(key):
    ciphertexts = key.public_key().encrypt_list([b"a", b"b", b"c"])
    ciphertexts[1] = ciphertexts[1][:-1]
    with pytest.raises(batch_modexp.Error) as caught:
        key.decrypt_list(ciphertexts)
    assert caught.value.index == 1
    a, error, c = key.decrypt_list(ciphertexts, return_exceptions=True)
    assert (a, c, error.index, type(error)) == (b"a", b"c", 1, batch_modexp.Error)
    with pytest.raises(batch_modexp.Error) as caught:
        key.decrypt_list(ciphertexts[:1], label=b"other")
    assert caught.value.index == 0
    results = key.public_key().encrypt_list([b"a", bytes(500)], return_exceptions=True)
    assert len(results[0]) == 256 and results[1].index == 1
    results = key.sign_list([b"short", bytes(32)], prehashed=True, return_exceptions=True)
    assert results[0].index == 0 and len(results[1]) == 256


def test_a_key_for_each_item(key):
    files = [PrivateKey.from_pem((KEYS / f"rsa{bits}.pem").read_bytes()) for bits in (4096, 1024)]
    keys = [key, *files, PrivateKey.from_der(key.to_der())] * 5
    public_keys = [key.public_key() for key in keys]
    messages = [b"%d" % i for i in range(len(keys))]
    digest = HASHES["sha384"]
    for padding in ("pss", "pkcs1v15"):
        scheme = scheme_of(padding, digest, None)
        signatures = batch_modexp.sign_list(keys, messages, padding, "sha384")
        for public, message, signature in zip(public_keys, messages, signatures):
            serialization.load_der_public_key(public.to_der()).verify(signature, message, scheme, digest)
        assert all(batch_modexp.verify_list(public_keys, messages, signatures, padding, "sha384"))
        digests = [hashlib.sha384(message).digest() for message in messages]
        signatures = batch_modexp.sign_list(keys, digests, padding, "sha384", prehashed=True)
        verdicts = batch_modexp.verify_list(public_keys, messages, signatures[:-1] + [b""], padding, "sha384")
        assert verdicts == [True] * (len(keys) - 1) + [False]
    oaep = paddings.OAEP(paddings.MGF1(HASHES["sha256"]), HASHES["sha256"], b"label")
    ciphertexts = batch_modexp.encrypt_list(public_keys, messages, label=b"label")
    assert theirs(key).decrypt(ciphertexts[0], oaep) == messages[0]
    assert batch_modexp.decrypt_list(keys, ciphertexts, label=b"label") == messages


def test_items_fail_alone_with_a_key_for_each(key):
    [short] = batch_modexp.generate_keys(1024, 1)
    keys, public_keys = [key, short, key], [key.public_key(), short.public_key(), key.public_key()]
    with pytest.raises(batch_modexp.Error) as caught:
        batch_modexp.sign_list(keys, [b""] * 3, "pss", "sha512")
    assert caught.value.index == 1
    results = batch_modexp.sign_list(keys, [b""] * 3, "pss", "sha512", return_exceptions=True)
    assert (len(results[0]), results[1].index, len(results[2])) == (256, 1, 256)
    results = batch_modexp.encrypt_list(public_keys, [bytes(100)] * 3, return_exceptions=True)
    assert (len(results[0]), results[1].index, len(results[2])) == (256, 1, 256)
    results[1] = results[0]
    results = batch_modexp.decrypt_list(keys, results, return_exceptions=True)
    assert (results[0], results[1].index, results[2]) == (bytes(100), 1, bytes(100))
    with pytest.raises(batch_modexp.Error) as caught:
        batch_modexp.verify_list(public_keys, [b""] * 3, [b""] * 3, raise_invalid=True)
    assert caught.value.index == 0


def test_keys_that_do_not_fit(key):
    public = key.public_key()
    with pytest.raises(ValueError, match="keys has 1 items and messages has 2"):
        batch_modexp.sign_list([key], [b"", b""])
    with pytest.raises(ValueError, match="keys has 2 items and ciphertexts has 1"):
        batch_modexp.decrypt_list([key, key], [b""])
    with pytest.raises(ValueError, match="keys has 0 items and messages has 1"):
        batch_modexp.encrypt_list([], [b""])
    with pytest.raises(ValueError, match="messages has 1 items and signatures has 2"):
        batch_modexp.verify_list([public], [b""], [b"", b""])
    with pytest.raises(TypeError, match=r"keys\[1\]: a PrivateKey is needed, not 'PublicKey'"):
        batch_modexp.sign_list([key, public], [b"", b""])
    with pytest.raises(TypeError, match=r"keys\[0\]: a PublicKey is needed, not 'GeneratedKey'"):
        batch_modexp.encrypt_list([key], [b""])
    with pytest.raises(TypeError, match="not iterable"):
        batch_modexp.decrypt_list(key, [b""])
    with pytest.raises(batch_modexp.Error, match="salt_length"):
        batch_modexp.verify_list([public], [b""], [b""], "pkcs1v15", salt_length="any")
    assert batch_modexp.sign_list([], []) == [] == batch_modexp.verify_list([], [], [])
    assert batch_modexp.encrypt_list([], []) == [] == batch_modexp.decrypt_list([], [])


def test_the_index_counts_from_the_beginning_of_the_list(key):
    """Later pieces than the first too."""
    count = 30_000
    message, signature = b"m", key.sign_list([b"m"])[0]
    signatures = [signature] * count
    signatures[-1] = bytes(256)
    verdicts = key.public_key().verify_list([message] * count, signatures)
    assert verdicts == [True] * (count - 1) + [False]
    with pytest.raises(batch_modexp.Error, match=f"signature {count - 1}") as caught:
        key.public_key().verify_list([message] * count, signatures, raise_invalid=True)
    assert caught.value.index == count - 1


def test_documents():
    pem = (KEYS / "rsa2048-pkcs8.pem").read_bytes()
    other = serialization.load_pem_private_key(pem, None)
    encodings, formats = serialization.Encoding, serialization.PrivateFormat
    plain = serialization.NoEncryption()
    secret = serialization.BestAvailableEncryption(b"secret")
    keys = [
        PrivateKey.from_pem(pem),
        PrivateKey.from_pem(pem.decode()),
        PrivateKey.from_pem(other.private_bytes(encodings.PEM, formats.TraditionalOpenSSL, plain)),
        PrivateKey.from_pem(other.private_bytes(encodings.PEM, formats.PKCS8, secret), password="secret"),
        PrivateKey.from_der(other.private_bytes(encodings.DER, formats.PKCS8, plain)),
        PrivateKey.from_der(other.private_bytes(encodings.DER, formats.TraditionalOpenSSL, plain)),
        PrivateKey.from_der(other.private_bytes(encodings.DER, formats.PKCS8, secret), b"secret"),
        PrivateKey.from_cryptography(other),
    ]
    numbers = other.public_key().public_numbers()
    public_formats = serialization.PublicFormat
    public_keys = [key.public_key() for key in keys] + [
        PublicKey.from_numbers(numbers.n, numbers.e),
        PublicKey.from_cryptography(other.public_key()),
    ]
    for form in (public_formats.PKCS1, public_formats.SubjectPublicKeyInfo):
        public_keys.append(PublicKey.from_pem(other.public_key().public_bytes(encodings.PEM, form)))
        public_keys.append(PublicKey.from_der(other.public_key().public_bytes(encodings.DER, form)))
    assert set(public_keys) == {public_keys[0]}
    key = public_keys[0]
    assert (key.n, key.e, key.bits, key.size) == (numbers.n, numbers.e, 2048, 256)
    assert PublicKey.from_pem(key.to_pem()) == key == PublicKey.from_der(key.to_der())
    assert keys[0].bits == 2048 and keys[0].size == 256


@pytest.mark.parametrize("name", ["mismatch-d", "mismatch-q", "ed25519", "rsa1016", "encrypted-pkcs8"])
def test_documents_that_are_refused(name):
    with pytest.raises(batch_modexp.Error):
        PrivateKey.from_pem((KEYS / f"{name}.pem").read_bytes())


def test_wrong_passwords_and_octets():
    with pytest.raises(batch_modexp.Error):
        PrivateKey.from_pem((KEYS / "encrypted-pkcs8.pem").read_bytes(), "wrong")
    for wrong in (b"", b"\x30", "text"):
        with pytest.raises(batch_modexp.Error):
            PrivateKey.from_pem(wrong)
        with pytest.raises(batch_modexp.Error):
            PublicKey.from_pem(wrong)
    with pytest.raises(batch_modexp.Error):
        PublicKey.from_numbers(10, 3)
    with pytest.raises(TypeError):
        PrivateKey.from_der(5)


def test_a_key_for_pss_alone():
    key = PrivateKey.from_pem((KEYS / "pss-sha256.pem").read_bytes())
    signatures = key.sign_list([b"a"], salt_length=40)
    assert key.public_key().verify_list([b"a"], signatures, salt_length=40) == [True]
    for refused in ({"padding": "pkcs1v15"}, {"salt_length": 32}):
        with pytest.raises(batch_modexp.Error, match="may only sign by") as caught:
            key.sign_list([b"a"], **refused)
        assert caught.value.index == 0


def test_private_keys_stay_where_they_are(key):
    numbers = theirs(key).private_numbers()
    for shown in (repr(key), str(key), f"{key}"):
        assert shown == "<GeneratedKey of 2048 bits>"
        assert str(numbers.d) not in shown and f"{numbers.p:x}" not in shown
    imported = PrivateKey.from_der(key.to_der())
    assert repr(imported) == "<PrivateKey of 2048 bits>"
    for secret in (key, imported):
        for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
            with pytest.raises(TypeError, match="not pickled"):
                pickle.dumps(secret, protocol)
        with pytest.raises(TypeError):
            copy.deepcopy(secret)
        assert not hasattr(secret, "__dict__")
    assert not hasattr(imported, "to_pem") and not hasattr(imported, "to_der")


def test_public_keys_are_pickled(key):
    public = key.public_key()
    assert pickle.loads(pickle.dumps(public)) == public
    assert hash(pickle.loads(pickle.dumps(public))) == hash(public)
    assert public != batch_modexp.generate_keys(1024, 1)[0].public_key()


def test_errors_are_pickled(key):
    with pytest.raises(batch_modexp.Error) as caught:
        key.decrypt_list([b"short"])
    again = pickle.loads(pickle.dumps(caught.value))
    assert (type(again), again.index, str(again)) == (batch_modexp.Error, 0, str(caught.value))


@pytest.mark.parametrize("bits, count", [(1024, 20), (2048, 3), (3072, 1)])
def test_generated_keys(bits, count):
    keys = batch_modexp.generate_keys(bits, count)
    assert len(keys) == count == len({key.public_key() for key in keys})
    for key in keys:
        other = serialization.load_pem_private_key(key.to_pem().encode(), None)
        assert isinstance(other, rsa.RSAPrivateKey)
        numbers = other.private_numbers()
        assert numbers.p * numbers.q == key.public_key().n and key.bits == bits
        assert key.public_key().verify_list([b"a"], key.sign_list([b"a"])) == [True]


def test_safe_primes():
    [key] = batch_modexp.generate_keys(1024, 1, safe_primes=True)
    numbers = serialization.load_pem_private_key(key.to_pem().encode(), None).private_numbers()
    for prime in (numbers.p, numbers.q):
        half = (prime - 1) // 2
        assert prime % 8 == 7 and pow(2, half - 1, half) == 1


def test_generation_with_wrong_arguments():
    assert batch_modexp.generate_keys(1024, 0) == []
    assert batch_modexp.generate_keys(1024, 1, public_exponent=65539)[0].public_key().e == 65539
    for bits in (1000, 1025, 9000, 0):
        with pytest.raises(batch_modexp.Error, match=f"{bits} bits"):
            batch_modexp.generate_keys(bits, 1)
    with pytest.raises(batch_modexp.Error, match="public exponent 3"):
        batch_modexp.generate_keys(1024, 1, public_exponent=3)


def test_arguments_that_do_not_fit(key):
    public = key.public_key()
    for call in (
        lambda: key.sign_list([b""], "oaep"),
        lambda: key.sign_list([b""], hash="md5"),
        lambda: key.sign_list([b""], "pkcs1v15", salt_length=3),
        lambda: key.decrypt_list([b""], "pss"),
        lambda: key.sign_list([b""], hash="sha1"),
        lambda: public.encrypt_list([b""], "pkcs1v15", label=b"a"),
        lambda: public.encrypt_list([b""], "pkcs1v15", mgf_hash="sha256"),
        lambda: public.encrypt_list([b""], "pkcs1v15", "sha1"),
        lambda: public.verify_list([b""], [b""], "pkcs1v15", salt_length="any"),
    ):
        with pytest.raises(batch_modexp.Error):
            call()
    with pytest.raises(batch_modexp.Error, match="mgf_hash is \"md5\""):
        public.encrypt_list([b""], mgf_hash="md5")
    with pytest.raises(ValueError, match="messages has 1 items and signatures has 0"):
        public.verify_list([b""], [])
    with pytest.raises(TypeError, match=r"messages\[1\]: .*'str'"):
        key.sign_list([b"", "text"])
    with pytest.raises(TypeError):
        key.sign_list([b""], salt_length="any")
    with pytest.raises(TypeError):
        public.verify_list([b""], [b""], salt_length="all")
    assert key.sign_list([]) == [] == public.verify_list([], []) == key.decrypt_list([])
