// The constants of the bases, by shape.
#pragma once

#include "bases_1024.cuh"
#include "bases_1536.cuh"
#include "bases_2048.cuh"
#include "bases_512.cuh"
#include "shape.cuh"

namespace rns {

// The table of the width of S.
template <class S>
struct Bases {
    __device__ __forceinline__ static const u32* constants() {
        constexpr int BITS = S::BITS;
        static_assert(BITS == 512 || BITS == 1024 || BITS == 1536 || BITS == 2048, "there are no bases for this width");
        constexpr int COUNT = BITS == 512    ? BASES_512_COUNT
                              : BITS == 1024 ? BASES_1024_COUNT
                              : BITS == 1536 ? BASES_1536_COUNT
                                             : BASES_2048_COUNT;
        static_assert(Constants<S>::COUNT == COUNT, "the table of constants has another layout");
        if constexpr (BITS == 512) {
            return bases_512();
        } else if constexpr (BITS == 1024) {
            return bases_1024();
        } else if constexpr (BITS == 1536) {
            return bases_1536();
        } else {
            return bases_2048();
        }
    }
};

}  // namespace rns
