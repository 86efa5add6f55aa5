// The fixed-window (2^w-ary) method, Handbook of Applied Cryptography, algorithm 14.82, and the products that lead to it.
//
// Every digit costs `window` squarings, one look-up that reads the whole table and one multiplication, the digit 0 too. Some
// digits share what a look-up reads.
#pragma once

#include "enter.cuh"
#include "table.cuh"

namespace rns {

// z plus what is kept, both below 2.5 m, below 2^29 + 2^15.
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

// The operand in base B becomes what is kept.
template <class W>
__device__ __forceinline__ void put_kept(int number, const W& w) {
    Lane<32> kept = w.keep(number);
#pragma unroll
    for (int r = 0; r < W::S::SLOTS; r++) w.operand_b[r] = kept[r];
}

// The operand in base B becomes the entry for the digit `since` digits behind the one of the last pass over the table.
template <class W>
__device__ __forceinline__ void put_operand(int since, const W& w) {
    u32 entry[2][W::S::SLOTS];
    w.keep(KEPT_ENTRIES + since - 1).load(entry);
    w.operand_b.store(entry);
}

// z becomes base^exponent mod M and a multiple of M below 2^LEAVE_BITS M, M being the operand, and r2 and the base kept.
// A base of two parts is upper 2^BITS + lower.
//
// All products but the squarings are one piece of code: in each step `z` and the operand are prepared, and then
// multiplied. Steps, exponent_bits and window are public.
template <int PARTS, class W>
__device__ __forceinline__ void exponentiate(Residues<typename W::S> z, W& w, const Table<typename W::S>& table,
                                             const u32* exponent_0, const u32* exponent_1, int exponent_bits,
                                             int window) {
    using S = typename W::S;
    const int entries = 1 << window;
    const int digits = max((exponent_bits + window - 1) / window, 1);
    static_assert(PARTS == 1 || PARTS == 2, "a base has one part or two");
    constexpr int FIRST_ENTRY = PARTS == 1 ? 9 : 11;
    const int first_digit = FIRST_ENTRY + entries - 1;
    const int last = first_digit + digits;

#pragma unroll 1
    for (int step = 0; step <= last; step++) {
        bool new_operand = false;
        bool product = true;
        if (step < FIRST_ENTRY) {
            // A^2 = (r2 l / A + c_0 / A) / A + r2 h / A + (r2 r2 / A) c_2 / A modulo M. With it the base A is the product by
            // the base, or, of two parts, (upper A^2 / A) 2^BITS / A + lower is.
            if (step == 1) make_factors(w);
            if (step == 2 || step == 4) w.keep(KEPT_SUM).store(z);
            if (step == 3 || step == 5 || step == 7) add_kept<W>(z, KEPT_SUM, w);
            if (step == 5) w.keep(KEPT_SUM).store(z);
            if (step == 7) w.operand_b.store(z);
            if (step == 7 && PARTS == 2) w.keep(KEPT_R2).store(z);
            // What no entry is put into is read all the same.
            if (step == 8 && entries < S::FEWEST_ENTRIES) table.clear(S::FEWEST_ENTRIES * S::SLOTS * 256);
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
            // Digits since a pass over the table. Blocks are at different digits when they pass, so that not all read at once.
            int since = min((step - first_digit + static_cast<int>(blockIdx.x)) % S::DIGITS, step - first_digit);
            Digits<S> digits;
            if (since == 0) digits.take(exponent_0, exponent_1, digit, exponent_bits, window);
            Scan<W> scan(table, digits, since == 0, w);
#pragma unroll 1
            for (int k = highest ? 0 : window; k > 0; k--) square(z, w, scan);
            scan.finish();
            if (since > 0) put_operand(since, w);
            if (highest) w.operand_b.load(z);
            new_operand = !highest;
            product = !highest;
        } else {
            w.put_public(ONE);
        }
        if (new_operand) complete_operand(w);
        if (product) multiply(z, w);
    }
}

}  // namespace rns
