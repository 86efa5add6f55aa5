// The window table: 16 powers of the base in Montgomery form, in global memory, as singles.
//
// Each warp has its own part of the scratch buffer, in which limb k of entries 4 g .. 4 g + 3 of
// all its threads is contiguous. A look-up reads every entry and selects one: no address depends on
// the digit. It runs in the background of the reductions of the preceding squarings.
#pragma once

#include "limb.cuh"

namespace narrow {

constexpr int WINDOW = 4;
constexpr int ENTRIES = 1 << WINDOW;
static_assert(WINDOW == 4, "`consume` chooses among 16 entries");
// Reads of one limb of all entries, with four entries each.
constexpr int READS = ENTRIES / 4;
// Limbs under way from memory to the second-level cache while one is read from there.
constexpr int AHEAD = 4;

template <int N>
struct Table {
    // Singles of each thread.
    static constexpr int SINGLES = N * ENTRIES;

    uint4* first;

    __device__ __forceinline__ explicit Table(float* scratch) {
        u64 thread = static_cast<u64>(blockIdx.x) * blockDim.x + threadIdx.x;
        u64 lane = thread % 32;
        first = reinterpret_cast<uint4*>(scratch) + (thread - lane) * static_cast<u64>(SINGLES / 4) + lane;
    }

    __device__ __forceinline__ void put(int entry, const double (&value)[N]) const {
        float* to = reinterpret_cast<float*>(first + entry / 4 * 32) + entry % 4;
#pragma unroll
        for (int k = 0; k < N; k++) to[k * (READS * 32 * 4)] = static_cast<float>(value[k]);
    }

    __device__ __forceinline__ void clear() const {
#pragma unroll 1
        for (int k = 0; k < N * READS; k++) first[k * 32] = make_uint4(0, 0, 0, 0);
    }
};

// `one` where the mask is all ones, `zero` where it is 0. The compiler turned conditionals into
// branches.
__device__ __forceinline__ u32 choose(u32 mask, u32 zero, u32 one) { return zero ^ ((zero ^ one) & mask); }

__device__ __forceinline__ uint4 choose(u32 mask, uint4 zero, uint4 one) {
    return make_uint4(choose(mask, zero.x, one.x), choose(mask, zero.y, one.y), choose(mask, zero.z, one.z),
                      choose(mask, zero.w, one.w));
}

__device__ __forceinline__ void prefetch(const uint4* from) { asm volatile("prefetch.global.L2 [%0];" ::"l"(from)); }

// One look-up, with a limb in each step. At the end the operand holds the entry.
template <class W>
struct Scan {
    struct Step {
        uint4 read[READS];
    };

    const W& work;
    const uint4* from;
    u32 digit;
    int limb;

    __device__ __forceinline__ explicit Scan(const W& work) : work(work), from(nullptr), digit(0), limb(W::N) {}

    __device__ __forceinline__ void start(const Table<W::N>& table, u32 wanted) {
        from = table.first;
        digit = wanted;
        limb = 0;
#pragma unroll
        for (int k = 0; k < AHEAD * READS; k++) prefetch(from + k * 32);
    }

    __device__ __forceinline__ bool done() const { return limb >= W::N; }

    __device__ __forceinline__ Step issue() const {
        Step step = {};
        if (limb + AHEAD < W::N) {
#pragma unroll
            for (int k = 0; k < READS; k++) prefetch(from + (AHEAD * READS + k) * 32);
        }
        if (!done()) {
#pragma unroll
            for (int k = 0; k < READS; k++) step.read[k] = from[k * 32];
        }
        return step;
    }

    __device__ __forceinline__ void consume(const Step& step) {
        if (done()) return;
        auto bit = [&](int k) { return 0 - (digit >> k & 1); };
        uint4 lower = choose(bit(2), step.read[0], step.read[1]);
        uint4 upper = choose(bit(2), step.read[2], step.read[3]);
        uint4 four = choose(bit(3), lower, upper);
        u32 one = choose(bit(1), choose(bit(0), four.x, four.y), choose(bit(0), four.z, four.w));
        work.operand[limb * W::THREADS] = __uint_as_float(one);
        from += READS * 32;
        limb++;
    }

    __device__ __forceinline__ void finish() {
#pragma unroll 1
        while (!done()) {
            Step step = issue();
            consume(step);
        }
    }
};

}  // namespace narrow
