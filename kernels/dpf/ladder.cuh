// The fixed-window (2^w-ary) method, Handbook of Applied Cryptography, algorithm 14.82.
//
// Every digit, including 0, costs `window` squarings, one look-up of the whole table and one
// multiplication.
#pragma once

#include "table.cuh"
#include "workspace.cuh"

namespace dpf {

// Bits `position .. position + bits` of an exponent of `count` words. Positions are public.
__device__ __forceinline__ u32 exponent_digit(const u64* words, int count, int position, int bits) {
    int word = position >> 6;
    int shift = position & 63;
    u64 low = words[word] >> shift;
    u64 high = words[min(word + 1, count - 1)] << ((64 - shift) & 63);
    u64 digit = shift + bits > 64 ? low | high : low;
    return static_cast<u32>(digit) & ((1u << bits) - 1);
}

// base^exponent mod P, at most P. `value` holds r2 = 2^(2 * r2_bits) mod P, and the modulus has
// been loaded.
//
// `base` converts the base to Montgomery form in Base::STEPS products, with base.prepare(step,
// value) before each. The operand is R^2 mod P before the first, and the last one gives a value
// below 2 P. The exponent is the low `exponent_bits` bits of `count` words. `exponent_bits`,
// `window` and `r2_bits` are public.
template <class W, class Base>
__device__ __forceinline__ void exponentiate(double (&value)[W::L], const Base& base, const W& work,
                                             const Table<typename W::S>& table, const u64* exponent, int count,
                                             int exponent_bits, int window, int r2_bits) {
    using S = typename W::S;
    const int one_step = W::r2_steps(r2_bits);
    const int base_step = one_step + 1;
    const int entry_step = base_step + Base::STEPS;
    // Entries from 2 on. With a window of 1, the single entry is not used.
    const int entries = max((1 << window) - 2, 1);
    work.products(value, entry_step + entries, [&](int step) {
        if (step < one_step) {
            work.prepare_r2(value, step, one_step, r2_bits);
        } else if (step == one_step) {
            work.operand.put(value);
            one<S>(value);
        } else if (step < entry_step) {
            if (step == base_step) table.put(0, value);
            base.prepare(step - base_step, value);
        } else {
            if (step == entry_step) work.operand.put(value);
            table.put(step - entry_step + 1, value);
        }
    });
    table.put(entries + 1, value);

    // The highest digit only needs a look-up. After the lowest, a multiplication by 1 leaves
    // Montgomery form.
    const int digit_count = max((exponent_bits + window - 1) / window, 1);
#pragma unroll 1
    for (int i = digit_count - 1; i >= -1; i--) {
        if (i < 0) {
            work.operand.put_power_of_two(0);
        } else {
            int position = i * window;
            u32 digit = exponent_digit(exponent, count, position, min(window, exponent_bits - position));
            Scan<S, Operand<S, W::THREADS>> scan(table, digit, work.operand);
#pragma unroll 1
            for (int k = i < digit_count - 1 ? window : 0; k > 0; k--) work.square(value, work.p, scan);
            scan.finish();
            if (i == digit_count - 1) {
                work.operand.get(value);
                continue;
            }
        }
        multiply<S>(value, value, work.operand, work.p);
    }
}

}  // namespace dpf
