// The RSA private operation m^d = f b^(d - 1) with the Chinese remainder theorem (RFC 8017, section
// 5.1.2), in three steps:
//
//   rsa_exp      b^(dP - 1) mod p and b^(dQ - 1) mod q, side by side in one grid
//   rsa_garner   h = (m_1 - m_2) qInv mod p
//   rsa_join     s = f (m_2 + q h) mod n
//
// with f = b = m, or with f and b from a blinding step that uses m and a random r:
//
//   rsa_blind    f = m r^(e - 1) mod n, b = f r mod n
//
// Then f b^(d - 1) is m^d too, since r^(ed) = r: docs/dpf.md, "Blinding".
//
// Constant time in everything except n and e, which are public. The results are checked by the
// host. Parameters and the record of a key: kernels/README.md.
#pragma once

#include "ladder.cuh"
#include "shape.cuh"

namespace dpf {

// The places of the parts of a key, in words. P is the number of words of a prime; n has twice as
// many.
template <int P>
struct KeyRecord {
    // The records of p and of q are alike: prime, r2, exponent.
    static constexpr int PRIME = 0;
    static constexpr int EXPONENT = 2 * P;
    static constexpr int PRIME_RECORD = 3 * P;
    static constexpr int QINV = 2 * PRIME_RECORD;
    static constexpr int MODULUS = QINV + P;
    static constexpr int WORDS = MODULUS + 4 * P;
};

// The sum of two values as limbs in [0, 2^52]. It must be below 2^(52 N).
template <class S>
__device__ __forceinline__ void add(double (&sum)[S::L], const double (&x)[S::L], const double (&y)[S::L]) {
    u64 column[S::L];
#pragma unroll
    for (int j = 0; j < S::L; j++) column[j] = to_column(x[j]) + to_column(y[j]);
    resolve_single_hop<S>(column);
#pragma unroll
    for (int j = 0; j < S::L; j++) sum[j] = to_double(column[j]);
}

// x - y + 2 P, in (0, 4 P), for x and y below 2 P.
template <class W>
__device__ __forceinline__ void subtract(double (&difference)[W::L], const double (&x)[W::L], const double (&y)[W::L],
                                         const W& work) {
    using S = typename W::S;
    double p[S::L];
    work.p.get(p);
    u64 column[S::L];
#pragma unroll
    for (int j = 0; j < S::L; j++) column[j] = to_column(x[j]) + 2 * to_column(p[j]) - to_column(y[j]);
    resolve_fully<S>(column);
#pragma unroll
    for (int j = 0; j < S::L; j++) difference[j] = to_double(column[j]);
}

// Replaces the operand with a number of `count` words, a few limbs at a time, because values occupy
// the registers.
template <class S, int THREADS>
__device__ __forceinline__ void put_words(const Operand<S, THREADS>& operand, const u64* words, int count) {
    __syncwarp();
#pragma unroll 5
    for (int j = 0; j < S::L; j++) {
        operand.put_limb(j, to_double(limb_of_words(words, count, S::lane() * S::L + j)));
    }
    __syncwarp();
}

// A number b of 2 * WORDS words as a base: b mod P is b_high (2^(64 WORDS) R) / R + b_low.
template <class W, int WORDS>
struct WideBase {
    using S = typename W::S;
    static constexpr int STEPS = 3;

    const u64* words;
    const W& work;

    __device__ __forceinline__ void prepare(int step, double (&value)[S::L]) const {
        if (step == 0) {
            work.operand.get(value);
            work.park(value);
            power_of_two<S>(value, 64 * WORDS);
        } else if (step == 1) {
            work.operand.put(value);
            import_words<S>(value, words + WORDS, WORDS);
        } else {
            double other[S::L];
            import_words<S>(other, words, WORDS);
            add<S>(value, value, other);
            work.unpark(other);
            work.operand.put(other);
        }
    }
};

// Half 2 i is the power of base i modulo p, and half 2 i + 1 that modulo q, with the exponents of
// the key.
template <class S, int PRIME_BITS, int THREADS>
__device__ __forceinline__ void rsa_exp(u64* halves, const u64* bases, const u64* keys, const u32* key_index,
                                        double* scratch, u32 count, u32 exponent_bits, u32 r2_bits, u32 window) {
    static_assert(LIMB_BITS * S::N >= PRIME_BITS + 8, "R must exceed the prime by 8 bits");
    constexpr int WORDS = PRIME_BITS / 64;
    using Key = KeyRecord<WORDS>;
    constexpr u32 INSTANCES = THREADS / S::T;
    extern __shared__ double shared[];
    Workspace<S, THREADS> work(shared);
    Table<S> table(scratch, 1 << window);

#pragma unroll 1
    for (u32 first = blockIdx.x * INSTANCES; first < 2 * count; first += gridDim.x * INSTANCES) {
        // Lanes past the end of the batch repeat its last half.
        u64 half = min(first + static_cast<u32>(threadIdx.x) / S::T, 2 * count - 1);
        u64 index = half >> 1;
        const u64* prime = keys + static_cast<u64>(key_index[index]) * Key::WORDS + (half & 1) * Key::PRIME_RECORD;

        double value[S::L];
        work.take_modulus(value, prime, WORDS);
        WideBase<Workspace<S, THREADS>, WORDS> base{bases + index * (2 * WORDS), work};
        exponentiate(value, base, work, table, prime + Key::EXPONENT, WORDS, static_cast<int>(exponent_bits),
                     static_cast<int>(window), static_cast<int>(r2_bits));

        u64 result[S::L];
        work.canonical(result, value);
        work.write_words(halves + half * WORDS, WORDS, result);
        table.clear();
        work.clear();
    }
}

// h = (m_1 - m_2) qInv mod p.
template <class S, int PRIME_BITS, int THREADS>
__device__ __forceinline__ void rsa_garner(u64* h, const u64* halves, const u64* keys, const u32* key_index, u32 count,
                                           u32 r2_bits) {
    constexpr int WORDS = PRIME_BITS / 64;
    using Key = KeyRecord<WORDS>;
    constexpr u32 INSTANCES = THREADS / S::T;
    extern __shared__ double shared[];
    Workspace<S, THREADS> work(shared);

#pragma unroll 1
    for (u32 first = blockIdx.x * INSTANCES; first < count; first += gridDim.x * INSTANCES) {
        u64 index = min(first + static_cast<u32>(threadIdx.x) / S::T, count - 1);
        const u64* key = keys + static_cast<u64>(key_index[index]) * Key::WORDS;

        double value[S::L];
        work.take_modulus(value, key + Key::PRIME, WORDS);
        const int r2_steps = work.r2_steps(static_cast<int>(r2_bits));
        work.products(value, r2_steps + 3, [&](int step) {
            if (step < r2_steps) {
                work.prepare_r2(value, step, r2_steps, static_cast<int>(r2_bits));
            } else if (step == r2_steps) {
                work.operand.put(value);
                import_words<S>(value, halves + 2 * index * WORDS, WORDS);
            } else if (step == r2_steps + 1) {
                work.park(value);
                import_words<S>(value, halves + (2 * index + 1) * WORDS, WORDS);
            } else {
                // The difference is in Montgomery form and qInv is not, so h is not.
                double other[S::L];
                work.unpark(other);
                subtract(value, other, value, work);
                import_words<S>(other, key + Key::QINV, WORDS);
                work.operand.put(other);
            }
        });

        u64 result[S::L];
        work.canonical(result, value);
        work.write_words(h + index * WORDS, WORDS, result);
        work.clear();
    }
}

// s = f (m_2 + q h) mod n.
template <class S, int MODULUS_BITS, int THREADS>
__device__ __forceinline__ void rsa_join(u64* out, const u64* halves, const u64* h, const u64* factors,
                                         const u64* keys, const u32* key_index, u32 count, u32 r2_bits) {
    static_assert(LIMB_BITS * S::N >= MODULUS_BITS + 8, "R must exceed the modulus by 8 bits");
    constexpr int WORDS = MODULUS_BITS / 64;
    constexpr int PRIME_WORDS = WORDS / 2;
    using Key = KeyRecord<PRIME_WORDS>;
    constexpr u32 INSTANCES = THREADS / S::T;
    extern __shared__ double shared[];
    Workspace<S, THREADS> work(shared);

#pragma unroll 1
    for (u32 first = blockIdx.x * INSTANCES; first < count; first += gridDim.x * INSTANCES) {
        u64 index = min(first + static_cast<u32>(threadIdx.x) / S::T, count - 1);
        const u64* key = keys + static_cast<u64>(key_index[index]) * Key::WORDS;

        double value[S::L];
        work.take_modulus(value, key + Key::MODULUS, WORDS);
        const int r2_steps = work.r2_steps(static_cast<int>(r2_bits));
        u64 result[S::L];
        work.products(value, r2_steps + 4, [&](int step) {
            if (step < r2_steps) {
                work.prepare_r2(value, step, r2_steps, static_cast<int>(r2_bits));
            } else if (step == r2_steps) {
                work.park(value);
                work.operand.put(value);
                import_words<S>(value, key + Key::PRIME_RECORD, PRIME_WORDS);
            } else if (step == r2_steps + 1) {
                double other[S::L];
                import_words<S>(other, h + index * PRIME_WORDS, PRIME_WORDS);
                work.operand.put(other);
            } else if (step == r2_steps + 2) {
                // q h mod n is q h, and the sum is below n.
                work.canonical(result, value);
                import_words<S>(value, halves + (2 * index + 1) * PRIME_WORDS, PRIME_WORDS);
#pragma unroll
                for (int j = 0; j < S::L; j++) result[j] += to_column(value[j]);
                resolve_fully<S>(result);
#pragma unroll
                for (int j = 0; j < S::L; j++) value[j] = to_double(result[j]);
                put_words(work.operand, factors + index * WORDS, WORDS);
            } else {
                // Two ordinary numbers: their Montgomery product lacks a factor R.
                double other[S::L];
                work.unpark(other);
                work.operand.put(other);
            }
        });

        work.canonical(result, value);
        work.write_words(out + index * WORDS, WORDS, result);
        work.clear();
    }
}

// f = m r^(e - 1) mod n and b = f r mod n; public_exponent is e - 1.
//
// Lanes past the end of the batch write the result of its last instance to their own places. They
// are not in lockstep with the lanes of that instance, which use b's place twice.
template <class S, int MODULUS_BITS, int THREADS>
__device__ __forceinline__ void rsa_blind(u64* factors, u64* bases, const u64* messages, const u64* randoms,
                                          const u64* keys, const u32* key_index, u64 public_exponent, u32 count,
                                          u32 r2_bits) {
    static_assert(LIMB_BITS * S::N >= MODULUS_BITS + 8, "R must exceed the modulus by 8 bits");
    constexpr int WORDS = MODULUS_BITS / 64;
    using Key = KeyRecord<WORDS / 2>;
    constexpr u32 INSTANCES = THREADS / S::T;
    extern __shared__ double shared[];
    Workspace<S, THREADS> work(shared);

#pragma unroll 1
    for (u32 first = blockIdx.x * INSTANCES; first < count; first += gridDim.x * INSTANCES) {
        u64 place = first + static_cast<u32>(threadIdx.x) / S::T;
        u64 index = min(place, static_cast<u64>(count - 1));
        const u64* key = keys + static_cast<u64>(key_index[index]) * Key::WORDS;
        u64* base = bases + place * WORDS;

        double value[S::L];
        work.take_modulus(value, key + Key::MODULUS, WORDS);
        const int r2_steps = work.r2_steps(static_cast<int>(r2_bits));
        work.products(value, r2_steps + 1, [&](int step) {
            if (step < r2_steps) {
                work.prepare_r2(value, step, r2_steps, static_cast<int>(r2_bits));
            } else {
                work.operand.put(value);
                import_words<S>(value, randoms + index * WORDS, WORDS);
            }
        });
        // Squarings use the memory for parked values, so r in Montgomery form is stored in the
        // place of b.
        u64 result[S::L];
        work.canonical(result, value);
        work.write_words(base, WORDS, result);

        // From the highest bit of the exponent down. After the lowest, two more products follow.
        work.operand.put(value);
        int bit = 63;
#pragma unroll 1
        while (bit > 0 && public_exponent >> bit == 0) bit--;
        Idle idle;
#pragma unroll 1
        while (--bit >= -2) {
            if (bit >= 0) {
                work.square(value, work.p, idle);
                if ((public_exponent >> bit & 1) == 0) continue;
            } else if (bit == -1) {
                // m is not in Montgomery form, so f is not either.
                put_words(work.operand, messages + index * WORDS, WORDS);
            } else {
                work.canonical(result, value);
                work.write_words(factors + place * WORDS, WORDS, result);
                put_words(work.operand, base, WORDS);
#pragma unroll
                for (int j = 0; j < S::L; j++) value[j] = to_double(result[j]);
            }
            multiply<S>(value, value, work.operand, work.p);
        }
        work.canonical(result, value);
        work.write_words(base, WORDS, result);
        work.clear();
    }
}

}  // namespace dpf

// Defines rsa_BITS_exp_tT for keys of BITS bits: T lanes of L limbs for each half.
#define CRT_HALVES_ENTRY(BITS, T, L, THREADS, BLOCKS)                                                        \
    extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)                                            \
        rsa_##BITS##_exp_t##T(dpf::u64* halves, const dpf::u64* bases, const dpf::u64* keys,                 \
                              const dpf::u32* key_index, double* scratch, dpf::u32 count,                    \
                              dpf::u32 exponent_bits, dpf::u32 r2_bits, dpf::u32 window) {                   \
        dpf::rsa_exp<dpf::Shape<T, L>, BITS / 2, THREADS>(halves, bases, keys, key_index, scratch, count,    \
                                                          exponent_bits, r2_bits, window);                   \
    }

// Defines rsa_BITS_garner for keys of BITS bits.
#define CRT_RECOMBINE_ENTRY(BITS, T, L, THREADS, BLOCKS)                                                  \
    extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)                                         \
        rsa_##BITS##_garner(dpf::u64* h, const dpf::u64* halves, const dpf::u64* keys,                    \
                            const dpf::u32* key_index, dpf::u32 count, dpf::u32 r2_bits) {                \
        dpf::rsa_garner<dpf::Shape<T, L>, BITS / 2, THREADS>(h, halves, keys, key_index, count, r2_bits); \
    }

// Defines rsa_BITS_join for keys of BITS bits.
#define CRT_JOIN_ENTRY(BITS, T, L, THREADS, BLOCKS)                                                                   \
    extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)                                                     \
        rsa_##BITS##_join(dpf::u64* out, const dpf::u64* halves, const dpf::u64* h, const dpf::u64* factors,          \
                          const dpf::u64* keys, const dpf::u32* key_index, dpf::u32 count, dpf::u32 r2_bits) {        \
        dpf::rsa_join<dpf::Shape<T, L>, BITS, THREADS>(out, halves, h, factors, keys, key_index, count, r2_bits);     \
    }

// Defines rsa_BITS_blind for keys of BITS bits.
#define CRT_BLIND_ENTRY(BITS, T, L, THREADS, BLOCKS)                                                                  \
    extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)                                                     \
        rsa_##BITS##_blind(dpf::u64* factors, dpf::u64* bases, const dpf::u64* messages, const dpf::u64* randoms,     \
                           const dpf::u64* keys, const dpf::u32* key_index, dpf::u64 public_exponent,                 \
                           dpf::u32 count, dpf::u32 r2_bits) {                                                        \
        dpf::rsa_blind<dpf::Shape<T, L>, BITS, THREADS>(factors, bases, messages, randoms, keys, key_index,           \
                                                        public_exponent, count, r2_bits);                             \
    }
