// Batch modular exponentiation: sixteen instances in a warp, in constant time.
//
// Control flow and addresses of a thread depend only on its position in the grid and on the launch
// parameters. Parameters and buffers: kernels/README.md.
#pragma once

#include "bases.cuh"
#include "ladder.cuh"
#include "leave.cuh"

namespace rns {

// Writes the words of all instances of a block to `out`, from z, an ordinary number. The block's
// first instance is `first`; instances past the end of the batch repeat its last one. The current
// matrix becomes LEAVE.
template <class W, class Operands>
__device__ __forceinline__ void leave(ConstResidues<typename W::S> z, u32* out, const Operands& operands, u32 first,
                                      u32 count, W& w) {
    using S = typename W::S;
    w.template change<LEAVE>();
    // A lane converts an instance of its own to words.
    u64 leaving[2];
    const u32* moduli[2];
#pragma unroll
    for (int h = 0; h < 2; h++) {
        u32 row = threadIdx.x / 32 * INSTANCES_PER_WARP + 8 * h + threadIdx.x % 8;
        leaving[h] = min(first + row, count - 1);
        moduli[h] = operands.modulus(leaving[h]);
    }
    to_words(z, out, moduli, leaving, w);
}

// Writes z, in Montgomery form, as an operand: for each of a lane's instances S::N residues in base
// B, and then S::N in base A. All are ones if the modulus has a factor in common with A.
template <class W>
__device__ __forceinline__ void leave_operands(ConstResidues<typename W::S> z, u32* out, u32 first, u32 count,
                                               W& w) {
    using S = typename W::S;
    complete_operand(z, w);
    u32 common[2];
    find_common_factors(common, w);
#pragma unroll
    for (int h = 0; h < 2; h++) {
        u32 row = threadIdx.x / 32 * INSTANCES_PER_WARP + 8 * h + threadIdx.x % 32 / 4;
        u32* to = out + static_cast<u64>(min(first + row, count - 1)) * (2 * S::N) + w.t;
#pragma unroll
        for (int r = 0; r < S::SLOTS; r++) {
            uint2 in_a = w.operand_a[r];
            to[4 * r] = z[h][r] | common[h];
            to[4 * r + S::N] = (h == 0 ? in_a.x : in_a.y) | common[h];
        }
    }
}

// Writes the powers of `count` instances to `out`: S::WORDS words each, or the residues of an
// operand, 2 S::N words.
//
// Operands locates the words of an instance: modulus(instance), r2(instance), exponent(instance),
// and base(instance, part) for PARTS parts of S::WORDS words, lowest first.
template <class S, int THREADS, Form FORM = Form::ORDINARY, class Operands>
__device__ __forceinline__ void powers(const Operands& operands, u32* out, double* scratch, u32 count, u32 exponent_bits,
                                       u32 window) {
    using W = Workspace<S, THREADS>;
    constexpr u32 INSTANCES = THREADS / 32 * INSTANCES_PER_WARP;
    const u32* constants = Bases<S>::constants();
    extern __shared__ uint4 dynamic[];
    unsigned char* shared = reinterpret_cast<unsigned char*>(dynamic);

    const u32 warp = threadIdx.x / 32;
    const u32 entries = max(1u << window, static_cast<u32>(FEWEST_ENTRIES));
    const u32 scratch_bytes = W::SCRATCH_DOUBLES * 8 * 32 * entries;
    const u32 table_bytes = S::SLOTS * 8 * 32 * entries;
    unsigned char* own = reinterpret_cast<unsigned char*>(scratch);
    own += (static_cast<u64>(blockIdx.x) * (THREADS / 32) + warp) * scratch_bytes;
    W w(shared, own + table_bytes, constants);
    const Table<W> table(w, own, 1 << window);
    w.fill();

#pragma unroll 1
    for (u32 first = blockIdx.x * INSTANCES; first < count; first += gridDim.x * INSTANCES) {
        // Instances past the end of the batch repeat its last one.
        u64 index[2];
#pragma unroll
        for (int h = 0; h < 2; h++) {
            u32 row = warp * INSTANCES_PER_WARP + 8 * h + threadIdx.x % 32 / 4;
            index[h] = min(first + row, count - 1);
        }

        u32 z[2][S::SLOTS];
        w.template change<ENTER>();
        // The modulus is last and not kept: it is the first operand.
#pragma unroll 1
        for (int number = 0; number <= Operands::PARTS + 1; number++) {
            const u32* words[2];
#pragma unroll
            for (int h = 0; h < 2; h++) {
                const u32* modulus = operands.modulus(index[h]);
                const u32* r2 = operands.r2(index[h]);
                bool is_base = number < Operands::PARTS;
                const u32* base = operands.base(index[h], is_base ? number : 0);
                words[h] = is_base ? base : number == Operands::PARTS ? r2 : modulus;
            }
            from_words(z, words[0], words[1], w);
            if (number <= Operands::PARTS) w.keep(number < Operands::PARTS ? KEPT_BASE + number : KEPT_R2).store(z);
        }
        take_modulus(z, w);
        w.operand_b.store(z);

        w.template change<B_TO_A>();
        exponentiate<Operands::PARTS, FORM>(z, w, table, operands.exponent(index[0]), operands.exponent(index[1]),
                                            static_cast<int>(exponent_bits), static_cast<int>(window));

        if constexpr (FORM == Form::ORDINARY) {
            leave(z, out, operands, first, count, w);
        } else {
            leave_operands(z, out, first, count, w);
        }
        table.clear();
        w.clear();
    }
    w.matrices.finish();
}

// Checks the columns of shapes.csv that follow from others. True, or a compiler error that names
// the wrong one. MIN_R2_BITS is the width.
template <int LANES, int LIMBS, int THREADS, int SHARED_BYTES, int MIN_R2_BITS>
constexpr bool is_shape() {
    return same<SHARED_BYTES, Workspace<Shape<LANES * LIMBS, MIN_R2_BITS>, THREADS>::BYTES>();
}

// The same for a shape with a window table. The width does not matter.
template <int LANES, int LIMBS, int SCRATCH_DOUBLES>
constexpr bool has_table() {
    return same<SCRATCH_DOUBLES, Workspace<Shape<LANES * LIMBS, 512>, 128>::SCRATCH_DOUBLES>();
}

}  // namespace rns
