// Instructions that pass a carry in the processor's carry flag.
//
// The flag survives from one `asm` statement to the next: they are volatile, so the compiler keeps
// their order, and no other code that it emits changes the flag. Names end in the effect on the
// flag: `_out` sets it, `_in` uses it, and `_through` does both.
//
// A product with an addition is two instructions, `mad.lo` and `mad.hi`. If the two words of the
// addend are in a pair of registers, the assembler merges them into one (IMAD.WIDE). docs/int.md
// has its rate.
#pragma once

#include "lanes.cuh"

namespace integer {

__device__ __forceinline__ u32 add_out(u32 a, u32 b) {
    u32 sum;
    asm volatile("add.cc.u32 %0, %1, %2;" : "=r"(sum) : "r"(a), "r"(b));
    return sum;
}

__device__ __forceinline__ u32 add_through(u32 a, u32 b) {
    u32 sum;
    asm volatile("addc.cc.u32 %0, %1, %2;" : "=r"(sum) : "r"(a), "r"(b));
    return sum;
}

__device__ __forceinline__ u32 add_in(u32 a, u32 b) {
    u32 sum;
    asm volatile("addc.u32 %0, %1, %2;" : "=r"(sum) : "r"(a), "r"(b));
    return sum;
}

__device__ __forceinline__ u32 sub_out(u32 a, u32 b) {
    u32 difference;
    asm volatile("sub.cc.u32 %0, %1, %2;" : "=r"(difference) : "r"(a), "r"(b));
    return difference;
}

__device__ __forceinline__ u32 sub_through(u32 a, u32 b) {
    u32 difference;
    asm volatile("subc.cc.u32 %0, %1, %2;" : "=r"(difference) : "r"(a), "r"(b));
    return difference;
}

// The flag as a number, 0 or 1.
__device__ __forceinline__ u32 carry() { return add_in(0, 0); }

// All ones if a subtraction borrowed, otherwise 0.
__device__ __forceinline__ u32 borrow_mask() {
    u32 mask;
    asm volatile("subc.u32 %0, 0, 0;" : "=r"(mask));
    return mask;
}

// Sets the flag if `bit` is 1.
__device__ __forceinline__ void set_carry(u32 bit) {
    [[maybe_unused]] u32 unwanted;
    asm volatile("add.cc.u32 %0, %1, 0xffffffff;" : "=r"(unwanted) : "r"(bit));
}

// `high:low = x * y + high_addend:low_addend`
__device__ __forceinline__ void mad_out(u32& low, u32& high, u32 x, u32 y, u32 low_addend, u32 high_addend) {
    u32 l, h;
    asm volatile("mad.lo.cc.u32 %0, %1, %2, %3;" : "=r"(l) : "r"(x), "r"(y), "r"(low_addend));
    asm volatile("madc.hi.cc.u32 %0, %1, %2, %3;" : "=r"(h) : "r"(x), "r"(y), "r"(high_addend));
    low = l;
    high = h;
}

__device__ __forceinline__ void mad_through(u32& low, u32& high, u32 x, u32 y, u32 low_addend, u32 high_addend) {
    u32 l, h;
    asm volatile("madc.lo.cc.u32 %0, %1, %2, %3;" : "=r"(l) : "r"(x), "r"(y), "r"(low_addend));
    asm volatile("madc.hi.cc.u32 %0, %1, %2, %3;" : "=r"(h) : "r"(x), "r"(y), "r"(high_addend));
    low = l;
    high = h;
}

// The same for a sum that fits.
__device__ __forceinline__ void mad_in(u32& low, u32& high, u32 x, u32 y, u32 low_addend, u32 high_addend) {
    u32 l, h;
    asm volatile("madc.lo.cc.u32 %0, %1, %2, %3;" : "=r"(l) : "r"(x), "r"(y), "r"(low_addend));
    asm volatile("madc.hi.u32 %0, %1, %2, %3;" : "=r"(h) : "r"(x), "r"(y), "r"(high_addend));
    low = l;
    high = h;
}

}  // namespace integer
