// The window table, 2^window powers of the base as residues in base B in global memory, and its
// look-up.
//
// A look-up is a product on the tensor cores. A digit becomes a row of bytes, with a one in the
// column of the digit and zeros elsewhere. The rows of the matrix are the bytes of the entries.
// Every entry takes part for every digit, and no address depends on a digit.
//
// A product has sixteen rows, so one pass over the table of an instance looks up sixteen digits of
// its exponent. The entries found are kept until they are needed. docs/rns.md explains the layout.
#pragma once

#include "mma_sync.cuh"
#include "multiply.cuh"

namespace rns {

// Bits `position .. position + bits` of an exponent of S::WORDS words, or 0 for no bits. Positions
// are public.
template <class S>
__device__ __forceinline__ u32 exponent_digit(const u32* words, int position, int bits) {
    int word = position >> 5;
    u64 low = words[word];
    u64 high = words[min(word + 1, S::WORDS - 1)];
    return static_cast<u32>((high << 32 | low) >> (position & 31)) & ((1u << bits) - 1);
}

// Prefetches the words with digit number `digit` of both exponents, and those below it, into the
// second-level cache.
template <class S>
__device__ __forceinline__ void prefetch_digits(const u32* exponent_0, const u32* exponent_1, int digit, int window) {
    int word = digit * window >> 5;
    asm volatile("prefetch.global.L2 [%0];" ::"l"(exponent_0 + word) : "memory");
    asm volatile("prefetch.global.L2 [%0];" ::"l"(exponent_1 + word) : "memory");
}

// The digits of a pass, highest first. Lane 4 g + t has those from 4 t on of both of its instances,
// one byte each.
template <class S>
struct Digits {
    u32 of[2];

    // From digit number `digit` of the exponents downwards, as far as they exist. Digit numbers are
    // public.
    __device__ __forceinline__ Digits(const u32* exponent_0, const u32* exponent_1, int digit, int exponent_bits,
                                      int window, int t) {
        of[0] = of[1] = 0;
#pragma unroll
        for (int k = 0; k < 4; k++) {
            int number = digit - 4 * t - k;
            int position = max(number, 0) * window;
            int bits = number < 0 ? 0 : min(window, exponent_bits - position);
            of[0] |= exponent_digit<S>(exponent_0, position, bits) << 8 * k;
            of[1] |= exponent_digit<S>(exponent_1, position, bits) << 8 * k;
        }
    }

    // Digit `row` of instance `instance` of the first or second half of the warp.
    __device__ __forceinline__ u32 at(int half, int instance, int row) const {
        return __shfl_sync(ALL_LANES, of[half], 4 * instance + row / 4) >> 8 * (row % 4) & 255;
    }
};

// The layout of a table in byte matrices.
//
// Entries 8 t .. 8 t + 8 of 32 are the rows 4 t .. 4 t + 4 and 16 + 4 t .. 16 + 4 t + 4 of a
// matrix, which lane 4 g + t supplies for column g. The columns are bytes 0 and 1 of four residues,
// for t = 0, 1, 2, 3, or bytes 2 and 3. A lane therefore gets the words of its own residues, of any
// instance.
//
// For each slot of an instance, a lane supplies four adjacent words. Those of lane 4 g + t are at 8
// t + g, so that the lanes that have eight entries of an instance write whole lines.
template <class W>
struct Table {
    using S = typename W::S;
    static constexpr int MATRIX_ENTRIES = FEWEST_ENTRIES;
    static constexpr int MATRIX_BYTES = INSTANCES_PER_WARP * S::SLOTS * 512;
    // The number of reads ahead of the multiplication, where one read is a lane's data for one slot
    // of one instance.
    static constexpr int AHEAD = S::SLOTS % 3 == 0 ? 6 : 4;
    // Slots at a time when eight entries are split into bytes.
    static constexpr int TOGETHER = S::SLOTS % 3 == 0 ? 3 : S::SLOTS % 2 == 0 ? 2 : 1;

    const W& w;
    unsigned char* first;
    int entries;
    int lane;

    __device__ __forceinline__ Table(const W& w, unsigned char* scratch, int entries)
        : w(w), first(scratch), entries(entries), lane(static_cast<int>(threadIdx.x) & 31) {}

    // The place of lane 0's data for slot `slot` of instance `instance`; that of instance 8 +
    // `instance` is 512 bytes behind.
    __device__ __forceinline__ unsigned char* place(int matrix, int instance, int slot) const {
        return first + matrix * MATRIX_BYTES + (instance * S::SLOTS + slot) * 1024;
    }

    // Stores the entries in sequence. Eight of them wait until they are split into the bytes of the
    // matrix.
    __device__ __forceinline__ void put(int entry, ConstResidues<S> z) const {
        w.keep(KEPT_ENTRIES + entry % 8).store(z);
        if (entry % 8 == 7 || entry == entries - 1) put_eight(entry / 8);
    }

    __device__ __forceinline__ void put_eight(int number) const {
        const int g = lane / 4;
#pragma unroll 1
        for (int first_slot = 0; first_slot < S::SLOTS; first_slot += TOGETHER) {
            uint2 words[TOGETHER][8];
#pragma unroll
            for (int k = 0; k < TOGETHER; k++) {
#pragma unroll
                for (int e = 0; e < 8; e++) words[k][e] = w.keep(KEPT_ENTRIES + e)[first_slot + k];
            }
            unsigned char* to = place(number / 4, g, first_slot) + number % 4 * 128 + w.t * 32;
#pragma unroll
            for (int k = 0; k < TOGETHER; k++) {
                const uint2(&word)[8] = words[k];
                put_bytes(to, word[0].x, word[1].x, word[2].x, word[3].x, word[4].x, word[5].x, word[6].x, word[7].x);
                to += 512;
                put_bytes(to, word[0].y, word[1].y, word[2].y, word[3].y, word[4].y, word[5].y, word[6].y, word[7].y);
                to += 512;
            }
        }
    }

    // The bytes of a residue in eight entries. Bytes 0 and 2 are for one lane, and bytes 1 and 3
    // for another.
    __device__ static __forceinline__ void put_bytes(unsigned char* to, u32 a, u32 b, u32 c, u32 d, u32 e, u32 f, u32 g,
                                                     u32 h) {
        uint4 lower = transposed(a, b, c, d);
        uint4 upper = transposed(e, f, g, h);
        *reinterpret_cast<uint4*>(to) = make_uint4(lower.x, upper.x, lower.z, upper.z);
        *reinterpret_cast<uint4*>(to + 16) = make_uint4(lower.y, upper.y, lower.w, upper.w);
    }

    // Transposes bytes: byte k of each word goes to word k.
    __device__ static __forceinline__ uint4 transposed(u32 a, u32 b, u32 c, u32 d) {
        u32 ab_low = __byte_perm(a, b, 0x5140);
        u32 ab_high = __byte_perm(a, b, 0x7362);
        u32 cd_low = __byte_perm(c, d, 0x5140);
        u32 cd_high = __byte_perm(c, d, 0x7362);
        return make_uint4(__byte_perm(ab_low, cd_low, 0x5410), __byte_perm(ab_low, cd_low, 0x7632),
                          __byte_perm(ab_high, cd_high, 0x5410), __byte_perm(ab_high, cd_high, 0x7632));
    }

    // Clears the matrices before the first entry. Rows without an entry also take part, with zeros.
    __device__ __forceinline__ void prepare() const {
        if (entries >= MATRIX_ENTRIES) return;
        clear();
        const u32 none[2][S::SLOTS] = {};
#pragma unroll 1
        for (int e = 0; e < 8; e++) w.keep(KEPT_ENTRIES + e).store(none);
    }

    __device__ __forceinline__ void clear() const {
        uint4* to = reinterpret_cast<uint4*>(first) + lane;
        int bytes = (max(entries, MATRIX_ENTRIES) / MATRIX_ENTRIES) * MATRIX_BYTES;
#pragma unroll 1
        for (int i = 0; i < bytes; i += 512) {
            *to = make_uint4(0, 0, 0, 0);
            to += 32;
        }
        // Lanes clear words for each other.
        __syncwarp();
    }

    // Looks up the entries for the digits, and keeps them.
    __device__ __forceinline__ void look_up(const Digits<S>& digits) const {
        __syncwarp();
        look_up_in<false>(0, digits);
        __syncwarp();
#pragma unroll 1
        for (int matrix = 1; matrix * MATRIX_ENTRIES < entries; matrix++) {
            look_up_in<true>(matrix, digits);
            __syncwarp();
        }
    }

    // Each entry is in one of the matrices, with zeros in the others. With ADD, the results are
    // added to the kept ones.
    template <bool ADD>
    __device__ __forceinline__ void look_up_in(int matrix, const Digits<S>& digits) const {
        const int g = lane / 4;
        const unsigned char* const start = place(matrix, 0, 0) + (8 * w.t + g) * 16;
        // The results for row g and row g + 8 are stored where lanes 4 `instance` + t read theirs.
        uint2* to = w.keep(KEPT_ENTRIES + g).first - lane + w.t;
        uint4 ahead[AHEAD];
#pragma unroll
        for (int k = 0; k < AHEAD; k++) ahead[k] = read(start + k * 512);
        const unsigned char* from = start + AHEAD * 512;
#pragma unroll 1
        for (int instance = 0; instance < 8; instance++) {
            u32 rows[2][4];
#pragma unroll
            for (int h = 0; h < 2; h++) {
                u32 upper = digits.at(h, instance, g);
                u32 lower = digits.at(h, instance, g + 8);
                u32 column = matrix * (MATRIX_ENTRIES / 4) + 2 * w.t;
                rows[h][0] = row(upper, column);
                rows[h][1] = row(lower, column);
                rows[h][2] = row(upper, column + 1);
                rows[h][3] = row(lower, column + 1);
            }
#pragma unroll
            for (int slot = 0; slot < S::SLOTS; slot++) {
                u32 words[2][2];
#pragma unroll
                for (int h = 0; h < 2; h++) {
                    const int k = 2 * slot + h;
                    multiply(words[h], rows[h], ahead[k % AHEAD]);
                    // After the last data, the first is read again and not used.
                    if (k == 2 * S::SLOTS - AHEAD && instance == 7) from = start - k * 512;
                    ahead[k % AHEAD] = read(from + k * 512);
                }
                uint2* of_upper = to + slot * 32;
                uint2* of_lower = of_upper + 8 * S::SLOTS * 32;
                put_pair<ADD>(of_upper, words[0][0], words[1][0]);
                put_pair<ADD>(of_lower, words[0][1], words[1][1]);
            }
            from += S::SLOTS * 1024;
            to += 4;
        }
    }

    // In assembly, so that the compiler does not move the read down to its use.
    __device__ static __forceinline__ uint4 read(const unsigned char* from) {
        uint4 words;
        asm volatile("ld.global.cs.v4.u32 {%0, %1, %2, %3}, [%4];"
                     : "=r"(words.x), "=r"(words.y), "=r"(words.z), "=r"(words.w)
                     : "l"(from)
                     : "memory");
        return words;
    }

    // Four columns of a digit's row: a one if the digit is among them, otherwise zeros.
    __device__ static __forceinline__ u32 row(u32 digit, u32 column) {
        return if_equal(digit >> 2, column, 1u << 8 * (digit & 3), 0);
    }

    // The words of row g and of row g + 8.
    __device__ static __forceinline__ void multiply(u32 (&word)[2], const u32 (&row)[4], uint4 matrix) {
        u32 low[4];
        u32 high[4];
        multiply_add_block(low, row[0], row[1], row[2], row[3], matrix.x, matrix.y, 0);
        multiply_add_block(high, row[0], row[1], row[2], row[3], matrix.z, matrix.w, 0);
#pragma unroll
        for (int k = 0; k < 2; k++) {
            word[k] = low[2 * k] + (low[2 * k + 1] << 8) + ((high[2 * k] + (high[2 * k + 1] << 8)) << 16);
        }
    }

    template <bool ADD>
    __device__ static __forceinline__ void put_pair(uint2* to, u32 first, u32 second) {
        uint2 before = make_uint2(0, 0);
        if (ADD) before = *to;
        *to = make_uint2(before.x + first, before.y + second);
    }
};

// Replaces the operand in base B with the entry for the digit `since` digits after the first of the
// last pass.
template <class W>
__device__ __forceinline__ void take_entry(int since, W& w) {
    const Lane<32> entry = w.keep(KEPT_ENTRIES + since);
    if constexpr (W::S::OPERAND_IN_SCRATCH) {
        w.operand_b = entry;
    } else {
        u32 y[2][W::S::SLOTS];
        entry.load(y);
        w.operand_b.store(y);
    }
}

// Reads that entry during a squaring, in the middle of its last slots, when registers are free.
template <class W>
struct EntryBeside {
    using S = typename W::S;
    static constexpr int AFTER_SLOT = S::SLOTS - S::GROUP_SLOTS + S::GROUP_SLOTS / 2 - 1;

    Residues<S> y;
    const uint2* entry;

    __device__ __forceinline__ EntryBeside(Residues<S> y, int since, const W& w)
        : y(y), entry(w.keep(KEPT_ENTRIES + since).first) {}

    __device__ __forceinline__ void after_slot(int slot) {
        if (slot != AFTER_SLOT) return;
#pragma unroll
        for (int r = 0; r < S::SLOTS; r++) {
            asm volatile("ld.global.v2.u32 {%0, %1}, [%2];"
                         : "=r"(y[0][r]), "=r"(y[1][r])
                         : "l"(entry + r * 32)
                         : "memory");
        }
    }
};

}  // namespace rns
