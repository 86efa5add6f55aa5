// The window table: 2^window powers of the base as residues in base B, in global memory, and its look-up.
//
// A look-up reads every entry and keeps one by selection: no address depends on the digit. What it costs is not only time but
// the energy of memory, for which the chip lowers its clock (docs/rns.md). So a pass over the table serves S::DIGITS digits
// of each instance: the entry of the first is the operand, those of the others are kept for their turn.
//
// The steps of a pass are spread over the squarings before its first digit, so that it need not wait for memory. A lane's
// words of an entry, those of its first instance and then those of its second, come in PARTS parts of PART_WORDS; the
// table goes part by part, and within a part by steps of STEP_ENTRIES entries.
#pragma once

#include "multiply.cuh"

namespace rns {

template <class S>
struct Table {
    static constexpr int STEP_WORDS = S::STEP_ENTRIES * S::PART_WORDS;
    static constexpr int QUADS = STEP_WORDS / 4;
    static constexpr bool HAS_REST = STEP_WORDS % 4 != 0;
    static constexpr int STEP_BYTES = 32 * 4 * STEP_WORDS;
    static constexpr int PARTS_OF_ONE = S::PARTS / 2;

    unsigned char* first;
    int lane;
    // Of a part.
    int steps;

    __device__ __forceinline__ Table(unsigned char* scratch, int entries)
        : first(scratch),
          lane(static_cast<int>(threadIdx.x) & 31),
          steps(max(entries, S::FEWEST_ENTRIES) / S::STEP_ENTRIES) {}

    // Where word `word` of a step is.
    __device__ __forceinline__ u32* place(unsigned char* step, int word) const {
        int quad = word >> 2;
        int of_lane = quad < QUADS ? lane * 16 : lane * 8;
        return reinterpret_cast<u32*>(step + quad * 512 + of_lane) + (word & 3);
    }

    __device__ __forceinline__ void put(int entry, ConstResidues<S> z) const {
#pragma unroll
        for (int h = 0; h < 2; h++) {
#pragma unroll
            for (int part = 0; part < PARTS_OF_ONE; part++) {
                int number = (h * PARTS_OF_ONE + part) * steps + entry / S::STEP_ENTRIES;
                unsigned char* step = first + static_cast<u64>(number) * STEP_BYTES;
                int first_word = entry % S::STEP_ENTRIES * S::PART_WORDS;
#pragma unroll
                for (int k = 0; k < S::PART_WORDS; k++) *place(step, first_word + k) = z[h][part * S::PART_WORDS + k];
            }
        }
    }

    // Clears `bytes` of the warp's scratch memory, a multiple of 512.
    __device__ __forceinline__ void clear(u32 bytes) const {
        uint4* to = reinterpret_cast<uint4*>(first) + lane;
#pragma unroll 1
        for (u32 i = 0; i < bytes; i += 512) {
            *to = make_uint4(0, 0, 0, 0);
            to += 32;
        }
        // Lanes clear words of each other.
        __syncwarp();
    }
};

// Bits `position .. position + bits` of an exponent of S::WORDS words, and 0 for no bits; positions are public.
template <class S>
__device__ __forceinline__ u32 exponent_digit(const u32* words, int position, int bits) {
    int word = position >> 5;
    u64 low = words[word];
    u64 high = words[min(word + 1, S::WORDS - 1)];
    return static_cast<u32>((high << 32 | low) >> (position & 31)) & ((1u << bits) - 1);
}

// The digits of both of a lane's instances that a pass is for, the highest first.
template <class S>
struct Digits {
    u32 of[2][S::DIGITS];

    __device__ __forceinline__ Digits() {
#pragma unroll
        for (int k = 0; k < S::DIGITS; k++) of[0][k] = of[1][k] = 0;
    }

    // From digit number `digit` of the exponents downwards, as far as there are any. Numbers are public.
    __device__ __forceinline__ void take(const u32* exponent_0, const u32* exponent_1, int digit, int exponent_bits,
                                         int window) {
#pragma unroll
        for (int k = 0; k < S::DIGITS; k++) {
            int position = max(digit - k, 0) * window;
            int bits = digit < k ? 0 : min(window, exponent_bits - position);
            of[0][k] = exponent_digit<S>(exponent_0, position, bits);
            of[1][k] = exponent_digit<S>(exponent_1, position, bits);
        }
    }
};

// A pass over the table, or nothing if it is not `active`.
template <class W>
struct Scan {
    using S = typename W::S;
    using T = Table<S>;

    const W& w;
    // This lane's words of the step that is first in this turn.
    const unsigned char* from;
    int steps;
    // Of the part that is being taken in; S::PARTS when all are.
    int part;
    int steps_left;
    // The first entry of this turn.
    u32 entry;
    Digits<S> digits;
    u32 kept[S::DIGITS][S::PART_WORDS];
    uint4 quads[T::QUADS];
    uint2 rest;

    __device__ __forceinline__ Scan(const T& table, const Digits<S>& digits, bool active, const W& w)
        : w(w),
          from(table.first + table.lane * 16),
          steps(table.steps),
          part(active ? 0 : S::PARTS),
          steps_left(table.steps),
          entry(0),
          digits(digits) {
        __syncwarp();
#pragma unroll
        for (int d = 0; d < S::DIGITS; d++) {
#pragma unroll
            for (int k = 0; k < S::PART_WORDS; k++) kept[d][k] = 0;
        }
        if (active) read(0);
    }

    __device__ __forceinline__ bool done() const { return part == S::PARTS; }

    // Starts to read step `number` of this turn, and to bring the one behind it into the second-level cache. Behind the table
    // there are kept numbers, which are of no account here.
    __device__ __forceinline__ void read(int number) {
        int lane = static_cast<int>(threadIdx.x) & 31;
        const unsigned char* step = from + number * T::STEP_BYTES;
#pragma unroll
        for (int q = 0; q < T::QUADS; q++) {
            const uint4* place = reinterpret_cast<const uint4*>(step + q * 512);
            quads[q] = q < S::QUADS_IN_CACHE ? __ldcg(place) : __ldcs(place);
        }
        if (T::HAS_REST) rest = __ldcs(reinterpret_cast<const uint2*>(step + (T::QUADS * 512 - lane * 8)));
        const unsigned char* next = step + T::STEP_BYTES + lane * (T::STEP_BYTES / 32 - 16);
        asm volatile("prefetch.global.L2 [%0];" ::"l"(next) : "memory");
    }

    __device__ __forceinline__ u32 word(int index) const {
        int quad = index >> 2;
        if (quad >= T::QUADS) return (index & 1) == 0 ? rest.x : rest.y;
        uint4 four = quads[quad];
        return (index & 3) == 0 ? four.x : (index & 3) == 1 ? four.y : (index & 3) == 2 ? four.z : four.w;
    }

    // Takes in the step that was read, number `number` of its turn, and starts to read another.
    //
    // `late` is below 2^31; what it says is that nothing is taken in before `late` is known.
    __device__ __forceinline__ void step(int number, u32 late) {
        if (done()) return;
        u32 first = entry + (late >> 31);
#pragma unroll
        for (int e = 0; e < S::STEP_ENTRIES; e++) {
#pragma unroll
            for (int d = 0; d < S::DIGITS; d++) {
                take(kept[d], e * S::PART_WORDS, digits.of[0][d], first + (number * S::STEP_ENTRIES + e));
            }
        }
        bool last = number == S::TURN - 1;
        if (last) end_turn();
        read(last ? 0 : number + 1);
        // Keeps the compiler from moving the reads down to where they are wanted.
        __syncwarp();
    }

    // The words from `from_word` on if x is y, else what was kept. Many words are chosen by a mask, which one instruction more
    // makes of the predicate: that is quicker.
    __device__ __forceinline__ void take(u32 (&kept)[S::PART_WORDS], int from_word, u32 x, u32 y) const {
        constexpr bool BY_MASK = S::PART_WORDS > 4;
        u32 mask = BY_MASK ? mask_if_equal(x, y) : 0;
#pragma unroll
        for (int k = 0; k < S::PART_WORDS; k++) {
            u32 other = word(from_word + k);
            kept[k] = BY_MASK ? kept[k] ^ ((kept[k] ^ other) & mask) : if_equal(x, y, other, kept[k]);
        }
    }

    __device__ __forceinline__ void end_turn() {
        from += S::TURN * T::STEP_BYTES;
        entry += S::FEWEST_ENTRIES;
        steps_left -= S::TURN;
        if (steps_left == 0) end_part();
    }

    __device__ __forceinline__ void end_part() {
        bool second = part >= T::PARTS_OF_ONE;
        int slot = (second ? part - T::PARTS_OF_ONE : part) * S::PART_WORDS;
#pragma unroll
        for (int d = 0; d < S::DIGITS; d++) {
            if (d == 0) {
                put(w.operand_b, slot, second, kept[d]);
            } else {
                put(w.keep(KEPT_ENTRIES + d - 1), slot, second, kept[d]);
            }
        }
        part++;
        steps_left = steps;
        entry = 0;
        if (part == T::PARTS_OF_ONE) {
#pragma unroll
            for (int d = 0; d < S::DIGITS; d++) digits.of[0][d] = digits.of[1][d];
        }
    }

    // Words of one of the two instances, from `slot` on.
    template <int STRIDE>
    __device__ __forceinline__ static void put(const Lane<STRIDE>& to, int slot, bool second,
                                               const u32 (&words)[S::PART_WORDS]) {
        u32* place = reinterpret_cast<u32*>(&to[slot]) + (second ? 1 : 0);
#pragma unroll
        for (int k = 0; k < S::PART_WORDS; k++) place[k * STRIDE * 2] = words[k];
    }

    // Behind the start of a product for `group` of the first or second half of a squaring, and behind each slot of the group.
    __device__ __forceinline__ void after_start(int half, int group, u32 late) {
        step((half * S::GROUPS + group) * S::STEPS_PER_GROUP % S::TURN, late);
    }

    __device__ __forceinline__ void after_slot(int half, int group, int slot, u32 late) {
        if (slot % 3 == 2 && slot / 3 < S::STEPS_PER_GROUP - 1) {
            step(((half * S::GROUPS + group) * S::STEPS_PER_GROUP + 1 + slot / 3) % S::TURN, late);
        }
    }

    // What the squarings left to do.
    __device__ __forceinline__ void finish() {
#pragma unroll 1
        while (!done()) {
#pragma unroll
            for (int i = 0; i < S::TURN; i++) step(i, 0);
        }
        __syncwarp();
    }
};

}  // namespace rns
