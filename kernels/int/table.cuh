// The window table: 2^window powers of the base in Montgomery form, in global memory.
//
// Each warp has its own part of the scratch buffer. Limbs 2 k and 2 k + 1 of entry e, for all its
// lanes, are at pair (k * entries + e) * 32, so a look-up reads consecutive addresses. It reads
// every entry and selects one: no address depends on the digit. It runs in the background of the
// preceding squarings, so that it need not wait for memory.
#pragma once

#include "number.cuh"

namespace integer {

// Entries that one step of a look-up reads.
//
// The tables of a large grid exceed the second-level cache, and cyclic reads evict data shortly
// before it is needed again. Only the first KEPT entries of a step therefore stay in the cache; the
// others are read as streaming data. This depends only on their positions.
constexpr int READS = 8;
constexpr int KEPT = 4;

template <class S>
struct Table {
    static constexpr int PAIRS = S::L / 2;

    uint2* first;
    int entries;

    // A table of `count` entries, rounded up to READS. Entries beyond `count` are 0.
    __device__ __forceinline__ Table(double* scratch, int count) : entries(max(count, READS)) {
        u64 thread = static_cast<u64>(blockIdx.x) * blockDim.x + threadIdx.x;
        u64 lane = thread % 32;
        first = reinterpret_cast<uint2*>(scratch) + (thread - lane) * static_cast<u64>(PAIRS * entries) + lane;
        u32 zero[S::L] = {};
#pragma unroll 1
        for (int entry = count; entry < entries; entry++) put(entry, zero);
    }

    __device__ __forceinline__ void put(int entry, const u32 (&value)[S::L]) const {
        uint2* to = first + entry * 32;
#pragma unroll
        for (int k = 0; k < PAIRS; k++) {
            *to = make_uint2(value[2 * k], value[2 * k + 1]);
            to += entries * 32;
        }
    }

    __device__ __forceinline__ void clear() const {
        uint2* to = first;
#pragma unroll 1
        for (int k = 0; k < entries * PAIRS; k++) {
            *to = make_uint2(0, 0);
            to += 32;
        }
    }
};

// One look-up. `issue` starts the reads of a step, and `consume` processes them; the code in
// between hides the memory latency. After all steps, the operand holds the entry.
template <class S, int THREADS>
struct Scan {
    struct Step {
        uint2 read[READS];
    };

    const Number<S, THREADS>& operand;
    const uint2* from;
    int entries;
    u32 digit;
    int pair;
    int end;
    int entry;
    u32 lower;
    u32 upper;

    __device__ __forceinline__ Scan(const Table<S>& table, u32 digit, const Number<S, THREADS>& operand)
        : operand(operand),
          from(table.first),
          entries(table.entries),
          digit(digit),
          pair(0),
          end(Table<S>::PAIRS),
          entry(0),
          lower(0),
          upper(0) {
        Number<S, THREADS>::sync();
    }

    __device__ __forceinline__ bool done() const { return pair >= end; }

    // Postpones the pairs from `pairs` on, because their limbs of the operand are in use.
    __device__ __forceinline__ void go_up_to(int pairs) { end = pairs; }

    __device__ __forceinline__ Step issue() {
        Step step = {};
        if (!done()) {
#pragma unroll
            for (int k = 0; k < READS; k++) step.read[k] = k < KEPT ? from[k * 32] : __ldcs(from + k * 32);
            from += READS * 32;
        }
        return step;
    }

    __device__ __forceinline__ void consume(const Step& step) {
        if (done()) return;
#pragma unroll
        for (int k = 0; k < READS; k++) {
            bool wanted = static_cast<u32>(entry + k) == digit;
            lower = wanted ? step.read[k].x : lower;
            upper = wanted ? step.read[k].y : upper;
        }
        entry += READS;
        if (entry >= entries) {
            operand.own(2 * pair) = lower;
            operand.own(2 * pair + 1) = upper;
            pair++;
            entry = 0;
            lower = 0;
            upper = 0;
        }
    }

    __device__ __forceinline__ void finish() {
        end = Table<S>::PAIRS;
#pragma unroll 1
        while (!done()) {
            consume(issue());
        }
        Number<S, THREADS>::sync();
    }
};

}  // namespace integer
