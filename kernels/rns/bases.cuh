// The constants of the bases, by shape.
#pragma once

#include "bases_1024.cuh"
#include "bases_1536.cuh"
#include "bases_2048.cuh"
#include "bases_3072.cuh"
#include "bases_4096.cuh"
#include "shape.cuh"

namespace rns {

// The table of the width of S.
template <class S>
struct Bases {
    __device__ __forceinline__ static const u32* constants() {
        if constexpr (S::BITS == 1024) {
            return checked<BASES_1024_COUNT>(bases_1024());
        } else if constexpr (S::BITS == 1536) {
            return checked<BASES_1536_COUNT>(bases_1536());
        } else if constexpr (S::BITS == 2048) {
            return checked<BASES_2048_COUNT>(bases_2048());
        } else if constexpr (S::BITS == 3072) {
            return checked<BASES_3072_COUNT>(bases_3072());
        } else {
            static_assert(S::BITS == 4096, "there are no bases for this width");
            return checked<BASES_4096_COUNT>(bases_4096());
        }
    }

    template <int COUNT>
    __device__ __forceinline__ static const u32* checked(const u32* table) {
        static_assert(Constants<S>::COUNT == COUNT, "the table of constants has another layout");
        return table;
    }
};

}  // namespace rns
