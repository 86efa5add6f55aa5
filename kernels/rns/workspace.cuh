// The shared memory and scratch memory of a block, a warp and a thread.
#pragma once

#include "stream.cuh"

namespace rns {

// The values that a warp keeps in scratch memory: r2 and, later, A^2; a sum; both parts of the
// base; and the entries that the last pass looked up.
enum Kept { KEPT_R2, KEPT_SUM, KEPT_BASE, KEPT_UPPER_BASE, KEPT_ENTRIES };

// In assembly, so that the compiler does not move the read down to its use.
__device__ __forceinline__ uint4 read_global(const void* from) {
    uint4 words;
    asm volatile("ld.global.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(words.x), "=r"(words.y), "=r"(words.z), "=r"(words.w)
                 : "l"(from)
                 : "memory");
    return words;
}

// Residues of both instances of a lane.
template <class S>
using Residues = u32 (&)[2][S::SLOTS];

template <class S>
using ConstResidues = const u32 (&)[2][S::SLOTS];

// For each slot one word of both instances. Slots are STRIDE apart.
template <int STRIDE>
struct Lane {
    uint2* first;

    __device__ __forceinline__ uint2& operator[](int slot) const { return first[slot * STRIDE]; }

    template <int COUNT>
    __device__ __forceinline__ void load(u32 (&value)[2][COUNT]) const {
#pragma unroll
        for (int r = 0; r < COUNT; r++) {
            uint2 pair = first[r * STRIDE];
            value[0][r] = pair.x;
            value[1][r] = pair.y;
        }
    }

    template <int COUNT>
    __device__ __forceinline__ void store(const u32 (&value)[2][COUNT]) const {
#pragma unroll
        for (int r = 0; r < COUNT; r++) first[r * STRIDE] = make_uint2(value[0][r], value[1][r]);
    }
};

// The type of the matrices, for STREAMED.
template <class S, int THREADS, bool STREAMED>
struct MatricesOf {
    using Type = ResidentMatrices<S, THREADS>;
};

template <class S, int THREADS>
struct MatricesOf<S, THREADS, true> {
    using Type = StreamedMatrices<S, THREADS>;
};

template <class S_, int THREADS_>
struct Workspace {
    using S = S_;
    static constexpr int THREADS = THREADS_;
    static_assert(THREADS % (32 * WARPS_TOGETHER) == 0, "warps that multiply together are in one block");

    using Matrices = typename MatricesOf<S, THREADS, S::STREAMED>::Type;

    // The layout of shared memory: matrices, weights, moduli of A and of B, and then the data of
    // threads.
    static constexpr int WEIGHTS = Matrices::BYTES;
    static constexpr int MODULI_A = WEIGHTS + S::WEIGHT_BYTES;
    static constexpr int MODULI_B = MODULI_A + 8 * S::N;
    static constexpr int QUOTIENTS = MODULI_B + 8 * S::N;
    static constexpr int SLOT_BYTES = 8 * THREADS;
    static constexpr int FACTORS_IN_SHARED = S::FACTORS_IN_SCRATCH ? 0 : S::FACTORS_IN_REGISTERS ? 1 : 2;
    static constexpr int MODULUS = QUOTIENTS + FACTORS_IN_SHARED * S::SLOTS * SLOT_BYTES;
    static constexpr int OPERAND = MODULUS + S::MODULUS_SLOTS_IN_SHARED * SLOT_BYTES;
    static constexpr int BYTES = OPERAND + (S::OPERAND_IN_SCRATCH ? 0 : 2 * S::SLOTS * SLOT_BYTES);

    // Scratch memory of a warp: the window table, then kept residues.
    static constexpr int OPERANDS_KEPT = KEPT_ENTRIES + DIGITS_OF_PASS;
    static constexpr int FACTORS_KEPT = OPERANDS_KEPT + (S::OPERAND_IN_SCRATCH ? 2 : 0);
    static constexpr int KEPT = FACTORS_KEPT + (S::FACTORS_IN_SCRATCH ? 2 : 0);
    static constexpr int KEPT_BYTES = S::SLOTS * 32 * 8;
    static constexpr int SCRATCH_DOUBLES = S::SLOTS + (KEPT * S::SLOTS + FEWEST_ENTRIES - 1) / FEWEST_ENTRIES;

    static constexpr int OPERAND_STRIDE = S::OPERAND_IN_SCRATCH ? 32 : THREADS;
    static constexpr int FACTOR_STRIDE = S::FACTORS_IN_SCRATCH ? 32 : THREADS;
    static constexpr int MODULUS_SLOTS_IN_REGISTERS = S::SLOTS - S::MODULUS_SLOTS_IN_SHARED;

    unsigned char* shared;
    u32 weights;
    const u32* constants;
    Matrices matrices;
    // This lane's number among the four of an instance.
    int t;
    // -M^-1 times a constant, modulo a_i, and its quotient (Shoup): see `factor_of`. With
    // FACTORS_IN_REGISTERS, only quotients.
    Lane<THREADS> quotients;
    u32 factor[2][S::SLOTS];
    // Factors together with their quotients, for one read of both, if factors are not in registers.
    uint4* factors_and_quotients;
    // M / A modulo b_j. The upper slots are in registers.
    Lane<THREADS> modulus;
    u32 upper_modulus[2][MODULUS_SLOTS_IN_REGISTERS + 1];
    // The operand y of products: y / A modulo b_j, and -y / B modulo a_i.
    Lane<OPERAND_STRIDE> operand_b;
    Lane<OPERAND_STRIDE> operand_a;
    // Kept values, all as z / A modulo b_j.
    Lane<32> kept;

    __device__ __forceinline__ Workspace(unsigned char* shared, unsigned char* scratch, const u32* constants)
        : shared(shared),
          weights(static_cast<u32>(__cvta_generic_to_shared(shared)) + WEIGHTS),
          constants(constants),
          matrices(shared),
          t(static_cast<int>(threadIdx.x) & 3),
          quotients{of_thread(shared, QUOTIENTS)},
          factors_and_quotients(S::FACTORS_IN_SCRATCH
                                    ? reinterpret_cast<uint4*>(scratch + FACTORS_KEPT * KEPT_BYTES) + threadIdx.x % 32
                                    : reinterpret_cast<uint4*>(shared + QUOTIENTS) + threadIdx.x),
          modulus{of_thread(shared, MODULUS)},
          operand_b{S::OPERAND_IN_SCRATCH ? of_lane(scratch, OPERANDS_KEPT) : of_thread(shared, OPERAND)},
          operand_a{S::OPERAND_IN_SCRATCH ? of_lane(scratch, OPERANDS_KEPT + 1)
                                          : of_thread(shared, OPERAND + S::SLOTS * SLOT_BYTES)},
          kept{of_lane(scratch, 0)} {}

    __device__ static __forceinline__ uint2* of_thread(unsigned char* shared, int offset) {
        return reinterpret_cast<uint2*>(shared + offset) + threadIdx.x;
    }

    __device__ static __forceinline__ uint2* of_lane(unsigned char* scratch, int number) {
        return reinterpret_cast<uint2*>(scratch + number * KEPT_BYTES) + threadIdx.x % 32;
    }

    // The factors of slot r for both instances, and their quotients.
    __device__ __forceinline__ uint4 factor_of(int r) const {
        if constexpr (S::FACTORS_IN_REGISTERS) {
            uint2 quotient = quotients[r];
            return make_uint4(factor[0][r], factor[1][r], quotient.x, quotient.y);
        } else {
            const uint4* from = factors_and_quotients + r * FACTOR_STRIDE;
            return S::FACTORS_IN_SCRATCH ? read_global(from) : *from;
        }
    }

    // The modulus of slot r.
    __device__ __forceinline__ Modulus modulus_a(int r) const {
        return Modulus(reinterpret_cast<const uint2*>(shared + MODULI_A)[4 * r + t]);
    }

    __device__ __forceinline__ Modulus modulus_b(int r) const {
        return Modulus(reinterpret_cast<const uint2*>(shared + MODULI_B)[4 * r + t]);
    }

    __device__ __forceinline__ Lane<32> keep(int number) const { return Lane<32>{kept.first + number * S::SLOTS * 32}; }

    // Writes moduli, weights, and the matrices that are not written later. A barrier must follow.
    __device__ __forceinline__ void fill() {
        uint2* moduli = reinterpret_cast<uint2*>(shared + MODULI_A);
        for (int i = threadIdx.x; i < 2 * S::N; i += THREADS) moduli[i] = Modulus(constants[i]).words();
        fill_weights<S, THREADS>(shared + WEIGHTS, constants + Constants<S>::WEIGHT);
        matrices.fill(constants);
    }

    // Prepares products with ENTER, with LEAVE, or with B_TO_A and A_TO_B.
    template <Which WHICH>
    __device__ __forceinline__ void change() {
        matrices.template change<WHICH>(constants);
    }

    // Replaces the operand with a public integer.
    __device__ __forceinline__ void put_public(PublicInteger number) const {
        const u32* in_a = constants + Constants<S>::PUBLIC + number * 2 * S::N + t;
#pragma unroll 1
        for (int r = 0; r < S::SLOTS; r++) {
            u32 a = in_a[4 * r];
            u32 b = in_a[4 * r + S::N];
            operand_a[r] = make_uint2(a, a);
            operand_b[r] = make_uint2(b, b);
        }
    }

    __device__ __forceinline__ void get_one(u32 (&z)[2][S::SLOTS]) const {
        const u32* in_b = constants + Constants<S>::PUBLIC + ONE * 2 * S::N + S::N + t;
#pragma unroll
        for (int r = 0; r < S::SLOTS; r++) z[0][r] = z[1][r] = in_b[4 * r];
    }

    __device__ __forceinline__ void clear() {
        uint2 zero = make_uint2(0, 0);
#pragma unroll 1
        for (int r = 0; r < S::SLOTS; r++) {
            if (S::FACTORS_IN_REGISTERS) quotients[r] = zero;
            if (r < S::MODULUS_SLOTS_IN_SHARED) modulus[r] = zero;
            if (!S::FACTORS_IN_REGISTERS) factors_and_quotients[r * FACTOR_STRIDE] = make_uint4(0, 0, 0, 0);
            operand_b[r] = zero;
            operand_a[r] = zero;
            for (int number = 0; number < OPERANDS_KEPT; number++) keep(number)[r] = zero;
        }
    }
};

}  // namespace rns
