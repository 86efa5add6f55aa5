// The window table: 16 powers of the base in Montgomery form, in global memory, as singles.
//
// Each warp has its own stretch of the scratch buffer, in which limb k of entries 4 g .. 4 g + 3 of all its threads stand
// together. A look-up reads every entry and keeps one by selection: no address depends on the digit. It goes on behind the
// reductions of the squarings that come before it.
#pragma once

#include "limb.cuh"

namespace narrow {

constexpr int WINDOW = 4;
constexpr int ENTRIES = 1 << WINDOW;
// Of the reads of a limb, those that stay in the second-level cache; the others are streaming (kernels/dpf/table.cuh).
constexpr int READS = ENTRIES / 4;
constexpr int KEPT = READS / 2;

template <int N>
struct Table {
    // Of each thread.
    static constexpr int SINGLES = N * ENTRIES;

    float4* first;

    __device__ __forceinline__ explicit Table(float* scratch) {
        u64 thread = static_cast<u64>(blockIdx.x) * blockDim.x + threadIdx.x;
        u64 lane = thread % 32;
        first = reinterpret_cast<float4*>(scratch) + (thread - lane) * static_cast<u64>(SINGLES / 4) + lane;
    }

    __device__ __forceinline__ void put(int entry, const double (&value)[N]) const {
        float* to = reinterpret_cast<float*>(first + entry / 4 * 32) + entry % 4;
#pragma unroll
        for (int k = 0; k < N; k++) to[k * (READS * 32 * 4)] = static_cast<float>(value[k]);
    }

    __device__ __forceinline__ void clear() const {
#pragma unroll 1
        for (int k = 0; k < N * READS; k++) first[k * 32] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    }
};

// One look-up, a limb in each step. When it is done the operand holds the entry.
template <class W>
struct Scan {
    struct Step {
        float4 read[READS];
    };

    const W& work;
    const float4* from;
    u32 digit;
    int limb;

    __device__ __forceinline__ explicit Scan(const W& work) : work(work), from(nullptr), digit(0), limb(W::N) {}

    __device__ __forceinline__ void start(const Table<W::N>& table, u32 wanted) {
        from = table.first;
        digit = wanted;
        limb = 0;
    }

    __device__ __forceinline__ bool done() const { return limb >= W::N; }

    __device__ __forceinline__ Step issue() const {
        Step step = {};
        if (!done()) {
#pragma unroll
            for (int k = 0; k < READS; k++) step.read[k] = k < KEPT ? from[k * 32] : __ldcs(from + k * 32);
        }
        return step;
    }

    __device__ __forceinline__ void consume(const Step& step) {
        if (done()) return;
        float4 four = step.read[0];
#pragma unroll
        for (int k = 1; k < READS; k++) {
            bool wanted = digit / 4 == k;
            four.x = wanted ? step.read[k].x : four.x;
            four.y = wanted ? step.read[k].y : four.y;
            four.z = wanted ? step.read[k].z : four.z;
            four.w = wanted ? step.read[k].w : four.w;
        }
        float lower = digit & 1 ? four.y : four.x;
        float upper = digit & 1 ? four.w : four.z;
        work.operand[limb * W::THREADS] = digit & 2 ? upper : lower;
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
