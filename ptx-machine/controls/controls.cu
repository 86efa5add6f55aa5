// Small kernels that test the PTX machine: some without leaks, and at least one for each kind of
// leak that it must detect.
//
// Each computes base^exponent mod modulus with 16-bit numbers, one instance in each lane, and a
// fixed window of two bits. They differ in the table look-up.

typedef unsigned int u32;

constexpr int DIGITS = 8;
constexpr u32 ALL_LANES = 0xffffffffu;

// a * b mod m for 16-bit a and b, bit by bit, without a division.
static __device__ u32 multiply(u32 a, u32 b, u32 m) {
    u32 product = 0;
#pragma unroll 1
    for (int i = 15; i >= 0; i--) {
        product = 2 * product + (a & (0u - (b >> i & 1)));
        product -= m & (0u - (u32)(product >= m));
        product -= m & (0u - (u32)(product >= m));
    }
    return product;
}

struct Instance {
    u32 base, exponent, modulus, lane;
    u32 table[4];

    __device__ Instance(const u32* bases, const u32* exponents, const u32* moduli) {
        lane = threadIdx.x;
        base = bases[lane];
        exponent = exponents[lane];
        modulus = moduli[lane];
        table[0] = 1;
#pragma unroll
        for (int i = 1; i < 4; i++) table[i] = multiply(table[i - 1], base, modulus);
    }

    __device__ u32 digit(int i) const { return exponent >> (2 * i) & 3; }

    __device__ u32 scanned(u32 digit) const {
        u32 entry = 0;
#pragma unroll
        for (u32 i = 0; i < 4; i++) entry |= table[i] & (0u - (u32)(i == digit));
        return entry;
    }

    template <class LookUp>
    __device__ u32 power(LookUp look_up) const {
        u32 power = 1;
#pragma unroll 1
        for (int i = DIGITS - 1; i >= 0; i--) {
            power = multiply(power, power, modulus);
            power = multiply(power, power, modulus);
            power = multiply(power, look_up(digit(i)), modulus);
        }
        return power;
    }
};

// `volatile`, because the compiler would otherwise reuse the stored values.
static __device__ u32 scanned_rows(const volatile u32* rows, u32 lane, u32 digit) {
    u32 entry = 0;
#pragma unroll
    for (u32 i = 0; i < 4; i++) entry |= rows[32 * i + lane] & (0u - (u32)(i == digit));
    return entry;
}

#define CONTROL(NAME) \
    extern "C" __global__ void NAME(u32* out, const u32* bases, const u32* exponents, const u32* moduli, u32* scratch)

// No leak: reads the whole table.
CONTROL(scanned_table) {
    Instance x(bases, exponents, moduli);
    out[x.lane] = x.power([&](u32 digit) { return x.scanned(digit); });
}

// No leak: the table is in shared memory, is read completely, and is cleared.
CONTROL(scanned_shared_table) {
    __shared__ volatile u32 rows[4 * 32];
    Instance x(bases, exponents, moduli);
#pragma unroll
    for (int i = 0; i < 4; i++) rows[32 * i + x.lane] = x.table[i];
    out[x.lane] = x.power([&](u32 digit) { return scanned_rows(rows, x.lane, digit); });
#pragma unroll
    for (int i = 0; i < 4; i++) rows[32 * i + x.lane] = 0;
}

// Leaves the table in shared memory.
CONTROL(uncleared_table) {
    __shared__ volatile u32 rows[4 * 32];
    Instance x(bases, exponents, moduli);
#pragma unroll
    for (int i = 0; i < 4; i++) rows[32 * i + x.lane] = x.table[i];
    out[x.lane] = x.power([&](u32 digit) { return scanned_rows(rows, x.lane, digit); });
}

// The digit is the address in global memory.
CONTROL(gathered_table) {
    Instance x(bases, exponents, moduli);
#pragma unroll
    for (int i = 0; i < 4; i++) scratch[4 * x.lane + i] = x.table[i];
    out[x.lane] = x.power([&](u32 digit) { return scratch[4 * x.lane + digit]; });
}

// The whole table is read, but the entry of the digit is prefetched first.
CONTROL(prefetched_entry) {
    Instance x(bases, exponents, moduli);
    volatile u32* rows = scratch;
#pragma unroll
    for (int i = 0; i < 4; i++) rows[32 * i + x.lane] = x.table[i];
    out[x.lane] = x.power([&](u32 digit) {
        asm volatile("prefetch.global.L2 [%0];" ::"l"(scratch + 32 * digit + x.lane));
        return scanned_rows(rows, x.lane, digit);
    });
}

// The digit selects the bank.
CONTROL(moving_bank) {
    __shared__ u32 rows[32 * 4];
    Instance x(bases, exponents, moduli);
#pragma unroll
    for (int i = 0; i < 4; i++) rows[4 * x.lane + i] = x.table[i];
    out[x.lane] = x.power([&](u32 digit) { return rows[4 * x.lane + digit]; });
}

// The digit selects only the row, and each lane uses its own bank: lanes never collide. The address
// is secret nevertheless.
CONTROL(lane_private_banks) {
    __shared__ u32 rows[4 * 32];
    Instance x(bases, exponents, moduli);
#pragma unroll
    for (int i = 0; i < 4; i++) rows[32 * i + x.lane] = x.table[i];
    out[x.lane] = x.power([&](u32 digit) { return rows[32 * digit + x.lane]; });
#pragma unroll
    for (int i = 0; i < 4; i++) rows[32 * i + x.lane] = 0;
}

// The digit selects only the row, but two lanes share each bank: they collide unless their digits
// agree.
CONTROL(shared_bank) {
    __shared__ u32 rows[4 * 32];
    Instance x(bases, exponents, moduli);
#pragma unroll
    for (int i = 0; i < 4; i++) rows[32 * i + x.lane] = x.table[i];
    out[x.lane] = x.power([&](u32 digit) { return rows[32 * digit + (x.lane & ~1u)]; });
}

// Every look-up marks the row of its digit, in the lane's own bank: a store with a secret address.
CONTROL(scattered_store) {
    __shared__ u32 rows[4 * 32];
    Instance x(bases, exponents, moduli);
#pragma unroll
    for (int i = 0; i < 4; i++) rows[32 * i + x.lane] = 0;
    out[x.lane] = x.power([&](u32 digit) {
        rows[32 * digit + x.lane] = 1;
        return x.scanned(digit);
    });
#pragma unroll
    for (int i = 0; i < 4; i++) scratch[4 * x.lane + i] = rows[32 * i + x.lane];
}

// Each warp keeps its table in the memory of its neighbour, without a barrier.
CONTROL(racing_warps) {
    __shared__ u32 rows[4 * 64];
    Instance x(bases, exponents, moduli);
    u32 place = x.lane ^ 32;
#pragma unroll
    for (int i = 0; i < 4; i++) rows[64 * i + x.lane] = x.table[i];
#pragma unroll
    for (int i = 0; i < 4; i++) rows[64 * i + place] = x.table[i];
    out[x.lane] = x.power([&](u32 digit) { return x.scanned(digit) & rows[0]; });
}

// Multiplies only for nonzero digits.
CONTROL(skipped_zero_digits) {
    Instance x(bases, exponents, moduli);
    u32 power = 1;
#pragma unroll 1
    for (int i = DIGITS - 1; i >= 0; i--) {
        power = multiply(power, power, x.modulus);
        power = multiply(power, power, x.modulus);
        if (x.digit(i) != 0) power = multiply(power, x.scanned(x.digit(i)), x.modulus);
    }
    out[x.lane] = power;
}

// All ones if a is less than b, from the carry flag.
static __device__ u32 borrow(u32 a, u32 b) {
    [[maybe_unused]] u32 difference;
    u32 mask;
    asm volatile("sub.cc.u32 %0, %2, %3;\n\tsubc.u32 %1, 0, 0;" : "=r"(difference), "=r"(mask) : "r"(a), "r"(b));
    return mask;
}

// No leak: a mask made from the carry flag selects the subtrahend.
CONTROL(masked_by_borrow) {
    Instance x(bases, exponents, moduli);
    u32 power = x.power([&](u32 digit) { return x.scanned(digit); }) + x.modulus;
    out[x.lane] = power - (x.modulus & ~borrow(power, x.modulus));
}

// Subtracts while the carry flag is set.
CONTROL(loop_on_borrow) {
    Instance x(bases, exponents, moduli);
    u32 power = x.power([&](u32 digit) { return x.scanned(digit); }) + x.modulus;
#pragma unroll 1
    while (borrow(power, x.modulus) == 0) power -= x.modulus;
    out[x.lane] = power;
}

// Ends at the highest set bit of the exponent.
CONTROL(secret_loop_bound) {
    Instance x(bases, exponents, moduli);
    u32 power = 1, square = x.base;
#pragma unroll 1
    for (u32 rest = x.exponent; rest != 0; rest >>= 1) {
        u32 keep = 0u - (rest & 1);
        power = (multiply(power, square, x.modulus) & keep) | (power & ~keep);
        square = multiply(square, square, x.modulus);
    }
    out[x.lane] = power;
}

// Four lanes hold one entry each of a shared table. The digit selects the source lane.
CONTROL(secret_shuffle_lane) {
    Instance x(bases, exponents, moduli);
    u32 own = x.scanned(x.lane & 3);
    out[x.lane] = x.power([&](u32 digit) { return __shfl_sync(ALL_LANES, own, digit, 4); });
}

// Reduces with the division instruction, whose time depends on its operands.
CONTROL(secret_division) {
    Instance x(bases, exponents, moduli);
    u32 power = 1;
#pragma unroll 1
    for (int i = 15; i >= 0; i--) {
        power = power * power % x.modulus;
        power = power * (x.exponent >> i & 1 ? x.base : 1) % x.modulus;
    }
    out[x.lane] = power;
}
