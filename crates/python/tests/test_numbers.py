"""Powers and products, compared with Python's pow and with gmpy2."""

import random

import batch_modexp
import gmpy2
import numpy
import pytest
from batch_modexp import mulmod_list, powmod_base_list, powmod_exp_list, powmod_list
from hypothesis import given, settings
from hypothesis import strategies as st

RANDOM = random.Random(1)

# Values around limbs and octets, where widths change.
edges = st.sampled_from([0, 1, 2, 3] + [2**k + d for k in (8, 63, 64, 65, 128, 256) for d in (-1, 0, 1)])
naturals = edges | st.integers(0, 2**300)
integers = naturals | naturals.map(lambda n: -n)
odd_moduli = naturals.map(lambda n: n | 1)


def odd(bits):
    return RANDOM.getrandbits(bits) | 1 << (bits - 1) | 1


def buffer(numbers, width):
    return b"".join(n.to_bytes(width, "big") for n in numbers)


def array(numbers, width):
    return numpy.frombuffer(buffer(numbers, width), numpy.uint8).reshape(len(numbers), width)


def numbers_of(array):
    return [int.from_bytes(bytes(row), "big") for row in array]


def pow_or_none(base, exponent, modulus):
    try:
        return pow(base, exponent, modulus)
    except ValueError:
        return None


@settings(max_examples=300, deadline=None)
@given(st.lists(st.tuples(integers, integers, odd_moduli), max_size=20))
def test_powmod_list_is_pow(triples):
    expected = [pow_or_none(*triple) for triple in triples]
    columns = [list(column) for column in zip(*triples)] or [[], [], []]
    if None in expected:
        with pytest.raises(batch_modexp.Error, match="not invertible") as caught:
            powmod_list(*columns)
        assert caught.value.index == expected.index(None)
    else:
        assert powmod_list(*columns) == expected


@settings(max_examples=200, deadline=None)
@given(st.lists(integers, max_size=20), naturals, odd_moduli)
def test_one_exponent_or_base_for_all(numbers, other, modulus):
    assert powmod_base_list(numbers, other, modulus) == [pow(n, other, modulus) for n in numbers]
    naturals_only = [abs(n) for n in numbers]
    assert powmod_exp_list(other, naturals_only, modulus) == [pow(other, n, modulus) for n in naturals_only]


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(integers, integers, odd_moduli), max_size=20))
def test_mulmod_list_is_product_and_remainder(triples):
    columns = [list(column) for column in zip(*triples)] or [[], [], []]
    assert mulmod_list(*columns) == [a * b % m for a, b, m in triples]


@settings(max_examples=100, deadline=None)
@given(st.data(), st.integers(1, 40), st.integers(1, 40), st.integers(0, 12))
def test_buffers_are_fixed_width_numbers(data, width, exponent_width, count):
    lists = [
        data.draw(st.lists(st.integers(0, 256**w - 1), min_size=count, max_size=count))
        for w in (width, exponent_width, width)
    ]
    lists[2] = [m | 1 for m in lists[2]]
    expected = [pow(*triple) for triple in zip(*lists)]
    widths = (width, exponent_width, width)
    flat = powmod_list(*map(buffer, lists, widths), count=count)
    assert type(flat) is bytes and flat == buffer(expected, width if count else 0)
    rows = powmod_list(*map(array, lists, widths))
    assert rows.dtype == numpy.uint8 and rows.shape == (count, width)
    assert numbers_of(rows) == expected


@pytest.mark.parametrize("bits", [512, 1024, 1536, 2048, 3072, 4096, 2056, 1000])
def test_usual_lengths(bits):
    moduli = [odd(bits) for _ in range(70)]
    bases = [RANDOM.getrandbits(bits) for _ in moduli]
    exponents = [RANDOM.getrandbits(bits) for _ in moduli]
    assert powmod_list(bases, exponents, moduli) == [*map(gmpy2.powmod, bases, exponents, moduli)]
    assert powmod_base_list(bases, 65537, moduli[0]) == gmpy2.powmod_base_list(bases, 65537, moduli[0])
    assert powmod_exp_list(3, exponents, moduli[0]) == gmpy2.powmod_exp_list(3, exponents, moduli[0])
    products = [a * b % m for a, b, m in zip(bases, exponents, moduli)]
    assert mulmod_list(bases, exponents, moduli) == products


@pytest.mark.parametrize("base", [0, 3, -5, 2**700 + 1])
def test_many_powers_of_one_base(base):
    """Enough for a table of powers on any machine, with exponents of several lengths and signs."""
    modulus = odd(521)
    lengths = [0, 1, 64, 65, 300, 521, 600]
    exponents = [RANDOM.getrandbits(RANDOM.choice(lengths)) for _ in range(6000)]
    assert powmod_exp_list(base, exponents, modulus) == [pow(base, e, modulus) for e in exponents]
    exponents = [e * RANDOM.choice([-1, 1]) for e in exponents[:5000]]
    if base:
        assert powmod_exp_list(base, exponents, 2**127 - 1) == [pow(base, e, 2**127 - 1) for e in exponents]


def test_mixed_widths_in_one_call():
    moduli = [odd(RANDOM.choice([17, 64, 65, 500, 1024, 2048])) for _ in range(200)]
    bases = [RANDOM.getrandbits(RANDOM.choice([1, 64, 1024, 3000])) for _ in moduli]
    exponents = [RANDOM.getrandbits(RANDOM.choice([1, 17, 64, 300])) for _ in moduli]
    assert powmod_list(bases, exponents, moduli) == [*map(pow, bases, exponents, moduli)]


def test_more_than_a_piece():
    moduli = [odd(64) for _ in range(300_000)]
    assert mulmod_list(moduli, moduli[::-1], moduli[0]) == [
        a * b % moduli[0] for a, b in zip(moduli, moduli[::-1])
    ]
    exponents = [m % 1000 for m in moduli]
    assert powmod_list(moduli[::-1], exponents, moduli) == [*map(pow, moduli[::-1], exponents, moduli)]


def test_anything_with_index():
    numbers = [gmpy2.mpz(7), numpy.int64(8), True]
    assert powmod_base_list(numbers, gmpy2.mpz(3), numpy.uint16(1001)) == [343, 512, 1]
    assert powmod_base_list(numpy.array([7, 8]), 3, 1001) == [343, 512]
    assert powmod_base_list(iter([7]), 3, 1001) == [343]
    assert type(powmod_base_list([gmpy2.mpz(7)], 3, 1001)[0]) is int


def test_kind_of_the_result_is_that_of_the_first_list():
    modulus = (1001).to_bytes(2, "big")
    assert powmod_base_list(memoryview(b"\7\0\10").cast("B", [3, 1]), 3, modulus) == buffer([343, 0, 512], 2)
    assert powmod_base_list(bytearray(b"\7\10"), 3, 1001, count=2) == buffer([343, 512], 2)
    assert powmod_exp_list(7, b"\3\4", 1001, count=2) == buffer([343, 2401 - 2002], 2)
    assert powmod_list([7], b"\3", [1001], count=1) == [343]
    wide = numpy.zeros((2, 6), numpy.uint8)
    wide[:, 2] = [7, 8]
    assert numbers_of(powmod_base_list(wide[:, ::2], 3, 1001)) == [
        pow(7 * 256, 3, 1001),
        pow(8 * 256, 3, 1001),
    ]


@pytest.mark.parametrize(
    "modulus, words",
    [(0, "is 0"), (10, "even"), (-7, "negative"), (2**16384 + 1, "16,384")],
    ids=["zero", "even", "negative", "long"],
)
def test_moduli_that_are_refused(modulus, words):
    for function in (powmod_list, mulmod_list):
        with pytest.raises(batch_modexp.Error, match=f"item 2: .*{words}") as caught:
            function([1, 2, 3], [1, 2, 3], [7, 7, modulus])
        assert caught.value.index == 2
    with pytest.raises(ValueError, match=words) as caught:
        powmod_base_list([1, 2, 3], 1, modulus)
    assert caught.value.index is None


def test_the_longest_modulus():
    modulus = odd(16384)
    assert powmod_base_list([3], 65537, modulus) == [pow(3, 65537, modulus)]


def test_arguments_that_do_not_fit():
    with pytest.raises(ValueError, match="bases has 2 items and moduli has 1"):
        powmod_list([1, 2], [1, 2], [3])
    for bases in ([1, 2, 3], array([1, 2, 3], 1)):
        with pytest.raises(ValueError, match="bases has 3 items and count is 2"):
            powmod_list(bases, [1, 2, 3], [7, 7, 7], count=2)
    with pytest.raises(ValueError, match="moduli has 1 items and count is 2"):
        mulmod_list(b"ab", b"ab", [7], count=2)
    with pytest.raises(ValueError, match="a has 1 items and b has 2"):
        mulmod_list([1], [1, 2], 3)
    with pytest.raises(TypeError, match=r"exponents\[1\]: .*float"):
        powmod_list([1, 2], [1, 2.0], [3, 3])
    with pytest.raises(TypeError, match="modulus: .*str"):
        powmod_base_list([1], 1, "3")
    with pytest.raises(ValueError, match="needs `count`"):
        powmod_base_list(b"ab", 3, 7)
    with pytest.raises(ValueError, match="3 octets are not 2 numbers"):
        powmod_base_list(b"abc", 3, 7, count=2)
    with pytest.raises(ValueError, match="one or two dimensions"):
        powmod_base_list(numpy.zeros((1, 1, 1), numpy.uint8), 3, 7)
    with pytest.raises(ValueError, match="2 numbers, where one"):
        powmod_base_list([1], 3, numpy.ones((2, 4), numpy.uint8))
