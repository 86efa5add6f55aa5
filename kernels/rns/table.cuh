// The window table: 2^window powers of the base as residues in base B, in global memory, and its look-up.
//
// A look-up reads every entry and keeps one by masks: no address depends on the digit. Its reads are spread over the
// squarings before it, so that it need not wait for memory. A lane's words of an entry, those of its first instance
// and then those of its second, come in PARTS parts of PART_WORDS; the table goes part by part, and within a part
// by pairs of entries. A pair is read in one step.
#pragma once

#include "multiply.cuh"

namespace rns {

template <class S>
struct Table {
    static constexpr int PAIR_WORDS = 2 * S::PART_WORDS;
    static constexpr int QUADS = PAIR_WORDS / 4;
    static constexpr bool HAS_REST = PAIR_WORDS % 4 != 0;
    static constexpr int PAIR_BYTES = 32 * 4 * PAIR_WORDS;

    unsigned char* first;
    int lane;
    int pairs;

    __device__ __forceinline__ Table(unsigned char* scratch, int entries)
        : first(scratch), lane(static_cast<int>(threadIdx.x) & 31), pairs(entries >> 1) {}

    // Where word `word` of a pair is.
    __device__ __forceinline__ u32* place(unsigned char* pair, int word) const {
        int quad = word >> 2;
        int of_lane = quad < QUADS ? lane * 16 : lane * 8;
        return reinterpret_cast<u32*>(pair + quad * 512 + of_lane) + (word & 3);
    }

    __device__ __forceinline__ void put(int entry, ConstResidues<S> z) const {
        constexpr int PARTS_OF_ONE = S::PARTS / 2;
#pragma unroll
        for (int h = 0; h < 2; h++) {
#pragma unroll
            for (int part = 0; part < PARTS_OF_ONE; part++) {
                unsigned char* pair =
                    first + static_cast<u64>((h * PARTS_OF_ONE + part) * pairs + (entry >> 1)) * PAIR_BYTES;
#pragma unroll
                for (int k = 0; k < S::PART_WORDS; k++) {
                    *place(pair, (entry & 1) * S::PART_WORDS + k) = z[h][part * S::PART_WORDS + k];
                }
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
    }
};

// The look-ups of both of a lane's instances. `operand` gets the entries.
template <class S, class Operand>
struct Scan {
    using T = Table<S>;
    static constexpr int PARTS_OF_ONE = S::PARTS / 2;

    struct Pair {
        uint4 quads[T::QUADS];
        uint2 rest;

        __device__ __forceinline__ u32 word(int index) const {
            int quad = index >> 2;
            if (quad >= T::QUADS) return (index & 1) == 0 ? rest.x : rest.y;
            uint4 four = quads[quad];
            return (index & 3) == 0 ? four.x : (index & 3) == 1 ? four.y : (index & 3) == 2 ? four.z : four.w;
        }
    };

    const Operand& operand;
    // This lane's words of the table, and where in it the next pair is that is read. Behind the last one it stays there.
    const unsigned char* first;
    u32 next;
    u32 last;
    int pairs;
    u32 digit_1;
    // Of the part that is being taken in.
    int part;
    int pairs_left;
    // How far the digit is above the first entry of the next pair.
    u32 relative;
    u32 kept[S::PART_WORDS];
    Pair read[S::READS_AHEAD];

    __device__ __forceinline__ Scan(const T& table, u32 digit_0, u32 digit_1, const Operand& operand)
        : operand(operand),
          first(table.first + table.lane * 16),
          next(0),
          last((S::PARTS * table.pairs - 1) * T::PAIR_BYTES),
          pairs(table.pairs),
          digit_1(digit_1),
          part(0),
          pairs_left(table.pairs),
          relative(digit_0) {
        __syncwarp();
#pragma unroll
        for (int k = 0; k < S::PART_WORDS; k++) kept[k] = 0;
#pragma unroll
        for (int i = 0; i < S::READS_AHEAD; i++) issue(read[i]);
    }

    __device__ __forceinline__ void issue(Pair& pair) {
        const unsigned char* from = first + next;
#pragma unroll
        for (int q = 0; q < T::QUADS; q++) {
            const uint4* place = reinterpret_cast<const uint4*>(from + q * 512);
            // Tables do not fit into the second-level cache: a part of them should stay there.
            pair.quads[q] = q < S::QUADS_IN_CACHE ? __ldcg(place) : __ldcs(place);
        }
        if (T::HAS_REST) {
            int lane = static_cast<int>(threadIdx.x) & 31;
            pair.rest = __ldcs(reinterpret_cast<const uint2*>(from + (T::QUADS * 512 - lane * 8)));
        }
        next = min(next + T::PAIR_BYTES, last);
    }

    // Takes in the pair that was read longest ago, and starts to read another. Steps are numbered from 0 within a squaring,
    // which has an even number of them. When all pairs are taken in, what is read is of no account.
    //
    // `late` is below 2^31; what it says is that the pair is not taken in before `late` is known.
    __device__ __forceinline__ void step(int number, u32 late) {
        Pair& pair = read[number % S::READS_AHEAD];
        u32 above = relative + (late >> 31);
        u32 even = mask_if_equal(above, 0);
        u32 odd = mask_if_equal(above, 1);
#pragma unroll
        for (int k = 0; k < S::PART_WORDS; k++) {
            kept[k] ^= (kept[k] ^ pair.word(k)) & even;
            kept[k] ^= (kept[k] ^ pair.word(S::PART_WORDS + k)) & odd;
        }
        relative -= 2;
        // As early as it can be, where the registers of two pairs are at hand.
        constexpr bool EARLY = S::READS_AHEAD > 1;
        if (EARLY) issue(pair);
        if (--pairs_left == 0) finish_part();
        if (!EARLY) issue(pair);
        // Keeps the compiler from moving the reads down to where they are wanted.
        __syncwarp();
    }

    __device__ __forceinline__ void finish_part() {
        bool second = part >= PARTS_OF_ONE;
        int slot = (second ? part - PARTS_OF_ONE : part) * S::PART_WORDS;
        u32* to = reinterpret_cast<u32*>(&operand[slot]) + (second ? 1 : 0);
#pragma unroll
        for (int k = 0; k < S::PART_WORDS; k++) to[k * Operand::STEP * 2] = kept[k];
        part++;
        // Each part begins at entry 0 again; behind the last one nothing ends any more.
        relative += 2 * static_cast<u32>(pairs);
        if (part == PARTS_OF_ONE) relative = digit_1;
        pairs_left = part == S::PARTS ? 0 : pairs;
    }

    __device__ __forceinline__ bool done() const { return part == S::PARTS; }

    // Behind the start of a product for `group` of the first or second half of a squaring, and behind each slot of the group.
    __device__ __forceinline__ void after_start(int half, int group, u32 late) {
        step((half * S::GROUPS + group) * S::READS_PER_GROUP, late);
    }

    __device__ __forceinline__ void after_slot(int half, int group, int slot, u32 late) {
        if (slot % 3 == 2 && slot / 3 < S::READS_PER_GROUP - 1) {
            step((half * S::GROUPS + group) * S::READS_PER_GROUP + 1 + slot / 3, late);
        }
    }

    __device__ __forceinline__ void finish() {
#pragma unroll 1
        while (!done()) {
            step(0, 0);
            if (S::READS_AHEAD > 1) step(1, 0);
        }
        __syncwarp();
    }
};

}  // namespace rns
