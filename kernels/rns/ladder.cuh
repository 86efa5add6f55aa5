// The fixed-window (2^w-ary) method, Handbook of Applied Cryptography, algorithm 14.82, and the
// preceding products.
//
// Every digit, including 0, costs `window` squarings and one multiplication. Sixteen digits are
// looked up at a time.
#pragma once

#include "enter.cuh"
#include "table.cuh"

namespace rns {

// z plus a kept value, both below 3.8 m. The sum is below 2^29 + 2^16.
template <class W>
__device__ __forceinline__ void add_kept(Residues<typename W::S> z, int number, const W& w) {
    Lane<32> kept = w.keep(number);
#pragma unroll
    for (int r = 0; r < W::S::SLOTS; r++) {
        uint2 other = kept[r];
        Modulus m = w.modulus_b(r);
        z[0][r] = reduce_word(z[0][r] + other.x, m);
        z[1][r] = reduce_word(z[1][r] + other.y, m);
    }
}

// Replaces the operand in base B with a kept value.
template <class W>
__device__ __forceinline__ void put_kept(int number, const W& w) {
    Lane<32> kept = w.keep(number);
#pragma unroll
    for (int r = 0; r < W::S::SLOTS; r++) w.operand_b[r] = kept[r];
}

// The form of a power: an ordinary number below 2^LEAVE_BITS M, or its product with A.
enum class Form { ORDINARY, MONTGOMERY };

// Replaces z with base^exponent mod M, in this form, plus a multiple of M. The operand is M, and r2
// and the base are kept values. A base of two parts is upper 2^BITS + lower.
//
// All products except the squarings share this code. Each step prepares `z` and the operand, and
// then multiplies. Steps, exponent_bits and window are public.
template <int PARTS, Form FORM, class W>
__device__ __forceinline__ void exponentiate(Residues<typename W::S> z, W& w, const Table<W>& table,
                                             const u32* exponent_0, const u32* exponent_1, int exponent_bits,
                                             int window) {
    using S = typename W::S;
    const int entries = table.entries;
    const int digits = max((exponent_bits + window - 1) / window, 1);
    static_assert(PARTS == 1 || PARTS == 2, "a base has one part or two");
    constexpr int FIRST_ENTRY = PARTS == 1 ? 9 : 11;
    const int first_digit = FIRST_ENTRY + entries - 1;
    const int last = first_digit + digits;
    // The used and the remaining digits of the last pass.
    int since = 0;
    int left = 0;
    const auto operand_of_products = w.operand_b;

#pragma unroll 1
    for (int step = 0; FORM == Form::ORDINARY ? step <= last : step < last; step++) {
        bool new_operand = false;
        bool product = true;
        if (step < FIRST_ENTRY) {
            // A^2 = (r2 l / A + c_0 / A) / A + r2 h / A + (r2 r2 / A) c_2 / A modulo M. With it,
            // base * A is the product of A^2 and the base. For a base of two parts, the second
            // factor is (upper A^2 / A) 2^BITS / A + lower.
            if (step == 1) make_factors(w);
            if (step == 2 || step == 4) w.keep(KEPT_SUM).store(z);
            if (step == 3 || step == 5 || step == 7) add_kept<W>(z, KEPT_SUM, w);
            if (step == 5) w.keep(KEPT_SUM).store(z);
            if (step == 7) w.operand_b.store(z);
            if (step == 7 && PARTS == 2) w.keep(KEPT_R2).store(z);
            if (step == 8) table.prepare();
            if (step == 8) table.put(0, z);
            if (step == 1 || step == 7) w.get_one(z);
            int kept = step != 8 ? KEPT_R2 : PARTS == 1 ? KEPT_BASE : KEPT_UPPER_BASE;
            if (step == 2 || step == 4 || step == 5 || step == 8) w.keep(kept).load(z);
            if (step == 5) w.operand_b.store(z);
            if (step == 1) w.put_public(C0);
            if (step == 2) w.put_public(L);
            if (step == 3) w.put_public(ONE);
            if (step == 4) w.put_public(H);
            if (step == 6) w.put_public(C2);
            if (step == 9) w.put_public(POWER_OF_TWO);
            if (step == 10) {
                add_kept<W>(z, KEPT_BASE, w);
                put_kept(KEPT_R2, w);
            }
            new_operand = step == 0 || step == 5 || step == 7 || step == 10;
            product = step > 0;
        } else if (step < first_digit) {
            int entry = step - FIRST_ENTRY + 1;
            table.put(entry, z);
            if (entry == 1) w.operand_b.store(z);
            new_operand = entry == 1;
            product = entry < entries - 1;
        } else if (step < last) {
            int digit = last - 1 - step;
            bool highest = step == first_digit;
            const bool pass = left == 0;
            if (pass) {
                // Blocks pass at different digits, and the groups of warps of a block at distant
                // ones, so that they do not all wait for memory at once. If each warp multiplies by
                // itself, they pass together: assemblers for chips before sm_90 would not detect
                // that the digit is the same in all lanes. Later ones detect it by the shuffle.
                // Streamed warps wait for each other at every tile, so they pass together too.
                u32 phase = blockIdx.x;
                if constexpr (WARPS_TOGETHER > 1 && !S::STREAMED) {
                    constexpr int GROUPS = W::THREADS / (32 * WARPS_TOGETHER);
                    u32 group = __shfl_sync(ALL_LANES, threadIdx.x / (32 * WARPS_TOGETHER), 0);
                    phase += group * DIGITS_OF_PASS / GROUPS;
                }
                since = 0;
                left = DIGITS_OF_PASS - (highest ? static_cast<int>(phase % DIGITS_OF_PASS) : 0);
                prefetch_digits<S>(exponent_0, exponent_1, digit, window);
            }
            Nothing nothing;
            // If the operand is in scratch memory, entries need not be moved.
            constexpr int BESIDE = S::OPERAND_IN_SCRATCH ? 0 : 1;
#pragma unroll 1
            for (int k = highest ? 0 : window - BESIDE; k > 0; k--) square(z, w, nothing);
            if constexpr (BESIDE == 1) {
                // In a pass the value read here is not used.
                u32 y[2][S::SLOTS];
                EntryBeside<W> entry(y, since, w);
                if (!highest) square(z, w, entry);
                if (!highest) w.operand_b.store(y);
            }
            if (pass) table.look_up(Digits<S>(exponent_0, exponent_1, digit, exponent_bits, window, w.t));
            if (pass || BESIDE == 0) take_entry(since, w);
            since++;
            left--;
            if (highest) w.operand_b.load(z);
            new_operand = !highest;
            product = !highest;
        } else {
            w.operand_b = operand_of_products;
            w.put_public(ONE);
        }
        if (new_operand) {
            // Read again, because registers are scarce between the steps.
            u32 y[2][S::SLOTS];
            w.operand_b.load(y);
            complete_operand(y, w);
        }
        if (product) multiply(z, w);
    }
    if constexpr (FORM == Form::MONTGOMERY) w.operand_b = operand_of_products;
}

}  // namespace rns
