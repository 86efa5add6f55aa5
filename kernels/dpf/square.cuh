// Montgomery squaring with half of the cross products.
//
// a_i a_j equals a_j a_i, so only the products with i < j are computed. The column sums are doubled
// in the addition that adds the squares a_i a_i. The starting value of a column contains all its
// constants (twice its cross products, its square, its share of the reduction), halved before the
// doubling. Derivation: docs/dpf.md, "Squaring".
#pragma once

#include "montgomery.cuh"

namespace dpf {

// Half of `bias`: doubling it gives `bias(highs, lows)` modulo 2^64.
__host__ __device__ constexpr u64 half_bias(int highs, int lows) {
    return (static_cast<u64>(highs) * HIGH_EXPONENT + static_cast<u64>(lows) * LOW_EXPONENT) << (LIMB_BITS - 1);
}

// The number of pairs i < j below `limbs` with i + j == column.
__host__ __device__ constexpr int pairs_in_column(int limbs, int column) {
    int first = column - (limbs - 1) > 0 ? column - (limbs - 1) : 0;
    int count = (column + 1) / 2 - first;
    return column < 0 || count < 0 ? 0 : count;
}

// The number of products in a column, of `rows` rows of `limbs` limbs, each row one column above
// the one before.
__host__ __device__ constexpr int rows_in_column(int limbs, int rows, int column) {
    int first = column - (limbs - 1) > 0 ? column - (limbs - 1) : 0;
    int last = column < rows - 1 ? column : rows - 1;
    return last < first ? 0 : last - first + 1;
}

// Adds the cross products of a * a to the columns once.
template <int L>
__device__ __forceinline__ void add_cross_products(u64 (&column)[2 * L], const double (&a)[L]) {
#pragma unroll
    for (int i = 0; i < L - 1; i++) {
        u64 high = 0;
#pragma unroll
        for (int j = i + 1; j < L; j++) {
            Sample s = sample(a[i], a[j]);
            column[i + j] += s.low + high;
            high = s.high;
        }
        column[i + L] += high;
    }
}

// Doubles the columns and adds the squares a_i a_i.
template <int L>
__device__ __forceinline__ void double_and_add_squares(u64 (&column)[2 * L], const double (&a)[L]) {
#pragma unroll
    for (int i = 0; i < L; i++) {
        Sample s = sample(a[i], a[i]);
        column[2 * i] += column[2 * i] + s.low;
        column[2 * i + 1] += column[2 * i + 1] + s.high;
    }
}

// Squares: x^2 / R mod P, below 2 P, for x below 2 P. Input and output limbs are in [0, 2^52]. A
// step of the background work begins and ends with every few rows of the reduction.
template <class S, int THREADS>
struct Squaring;

// One lane holds the whole number.
template <int L, int THREADS>
struct Squaring<Shape<1, L>, THREADS> {
    using S = Shape<1, L>;
    // The upper half of the columns.
    static constexpr int BYTES = L * THREADS * 8;

    double* upper;

    __device__ __forceinline__ explicit Squaring(double* shared) : upper(shared + threadIdx.x) {}

    template <class Modulus, class Background>
    __device__ __forceinline__ void operator()(double (&x)[L], const Modulus& p, Background& background) const {
        u64 window[L + 1];
        {
            u64 column[2 * L];
#pragma unroll
            for (int k = 0; k < 2 * L; k++) {
                int highs = 2 * pairs_in_column(L, k - 1) + (k % 2 == 1) + rows_in_column(L, L, k - 1);
                int lows = 2 * pairs_in_column(L, k) + (k % 2 == 0) + rows_in_column(L, L, k);
                column[k] = 0 - half_bias(highs, lows);
            }
            add_cross_products<L>(column, x);
            double_and_add_squares<L>(column, x);
#pragma unroll
            for (int j = 0; j < L; j++) {
                window[j] = column[j];
                upper[j * THREADS] = from_bits(column[L + j]);
            }
        }
        double modulus[L];
        p.get(modulus);
#pragma unroll 1
        for (int i = 0; i < L; i += ROWS_PER_STEP<S>) {
            typename Background::Step step = background.issue();
#pragma unroll
            for (int row = 0; row < ROWS_PER_STEP<S>; row++) {
                window[L] = bits_of(upper[(i + row) * THREADS]);
                double quotient = quotient_digit<S>(window[0], p.negated_inverse);
                reduce_row<S>(window, quotient, modulus);
            }
            background.consume(step);
        }
        finish<S>(x, window);
    }

    __device__ __forceinline__ void clear() const {
#pragma unroll 1
        for (int j = 0; j < L; j++) upper[j * THREADS] = 0.0;
    }
};

// Two lanes hold one half each, a = a0 + a1 2^(52 L). Each computes the columns of its own half
// squared, and of half of the rows of a0 a1. The lower lane uses the lower limbs of a1, and the
// upper lane the upper ones.
template <int L, int THREADS>
struct Squaring<Shape<2, L>, THREADS> {
    using S = Shape<2, L>;
    // Rows of a0 a1 for each lane. If L is odd, the last row of the upper lane is zero.
    static constexpr int ROWS = (L + 1) / 2;
    // The limbs of the instance and the columns of the lane.
    static constexpr int BYTES = 3 * L * THREADS * 8;

    Operand<S, THREADS> limbs;
    double* columns;

    __device__ __forceinline__ explicit Squaring(double* shared)
        : limbs(shared), columns(shared + L * THREADS + threadIdx.x) {}

    template <class Modulus, class Background>
    __device__ __forceinline__ void operator()(double (&x)[L], const Modulus& p, Background& background) const {
        limbs.put(x);
        put_rows();
        put_columns(x);
        reduce(x, p, background);
    }

    __device__ __forceinline__ void clear() const {
        limbs.clear();
#pragma unroll 1
        for (int k = 0; k < 2 * L; k++) columns[k * THREADS] = 0.0;
    }

  private:
    // The columns of this lane's rows of a0 a1. Column k of the lower lane belongs to column L + k
    // of a * a, and that of the upper lane to L + ROWS + k.
    __device__ __forceinline__ void put_rows() const {
        double vector[L];
        u64 window[L + 1];
#pragma unroll
        for (int j = 0; j < L; j++) {
            vector[j] = limbs[j];
            window[j] = 0 - bias(rows_in_column(L, ROWS, j - 1), rows_in_column(L, ROWS, j));
        }
        const int first = L + S::lane() * ROWS;
        u64 top = 0 - bias(ROWS, ROWS - 1);
        double* to = columns;
#pragma unroll 1
        for (int i = 0; i < ROWS; i++) {
            double limb = limbs[min(first + i, 2 * L - 1)];
            double scalar = first + i < 2 * L ? limb : 0.0;
            Sample s = sample(scalar, vector[0]);
            *to = from_bits(window[0] + s.low);
            to += THREADS;
            u64 high = s.high;
#pragma unroll
            for (int j = 1; j < L; j++) {
                s = sample(scalar, vector[j]);
                window[j - 1] = window[j] + s.low + high;
                high = s.high;
            }
            window[L - 1] = top + high;
            top += bias(1, 1);
        }
#pragma unroll
        for (int j = 0; j < L; j++) to[j * THREADS] = from_bits(window[j]);
        __syncwarp();
    }

    // Twice the columns, plus the square of this lane's half. The columns of a0 a1 are the upper
    // half of the lower lane's columns, and the lower half of the upper lane's.
    __device__ __forceinline__ void put_columns(const double (&x)[L]) const {
        const u64 upper_lane = 0 - static_cast<u64>(S::lane() == 1);
        const double* own = columns + (S::lane() == 1 ? L - ROWS : 0) * THREADS;
        const double* other = columns + (S::lane() == 1 ? -1 : 1);
        u64 column[2 * L];
#pragma unroll
        for (int j = 0; j < L; j++) {
            u64 sum = bits_of(own[j * THREADS]);
            if (j < ROWS) {
                sum += bits_of(other[(L + j) * THREADS]) & upper_lane;
            } else {
                sum += bits_of(other[(j - ROWS) * THREADS]) & ~upper_lane;
            }
            column[j] = (sum & upper_lane) - square_half_bias(j);
            column[L + j] = (sum & ~upper_lane) - square_half_bias(L + j);
        }
        __syncwarp();
        add_cross_products<L>(column, x);
        double_and_add_squares<L>(column, x);
#pragma unroll
        for (int k = 0; k < 2 * L; k++) columns[k * THREADS] = from_bits(column[k]);
        __syncwarp();
    }

    // Half of the constants of a column of a squared half.
    __device__ static constexpr u64 square_half_bias(int k) {
        return half_bias(2 * pairs_in_column(L, k - 1) + (k % 2 == 1), 2 * pairs_in_column(L, k) + (k % 2 == 0));
    }

    // The lower lane starts with its own lower columns, and the upper lane with the lower lane's
    // upper columns. The upper lane's columns enter at its top, one with each row.
    template <class Modulus, class Background>
    __device__ __forceinline__ void reduce(double (&x)[L], const Modulus& p, Background& background) const {
        const bool upper_lane = S::lane() == 1;
        const double* from = columns + (upper_lane ? L * THREADS - 1 : 0);
        u64 window[L + 1];
#pragma unroll
        for (int j = 0; j < L; j++) window[j] = bits_of(from[j * THREADS]) - bias(j, j + 1);
        double modulus[L];
        p.get(modulus);
        const u64 take = 0 - static_cast<u64>(upper_lane);
        const double* incoming = columns + (upper_lane ? 0 : 1);
#pragma unroll 1
        for (int i = 0; i < S::N; i += ROWS_PER_STEP<S>) {
            typename Background::Step step = background.issue();
#pragma unroll
            for (int row = 0; row < ROWS_PER_STEP<S>; row++) {
                window[L] = (bits_of(incoming[(i + row) * THREADS]) & take) - bias(L, L);
                double quotient = quotient_digit<S>(window[0], p.negated_inverse);
                reduce_row<S>(window, quotient, modulus);
            }
            background.consume(step);
        }
#pragma unroll
        for (int j = 0; j < L; j++) window[j] += bias(j, j + 1);
        finish<S>(x, window);
    }
};

// With more lanes, the number is multiplied by itself.
template <int T, int L, int THREADS>
struct Squaring<Shape<T, L>, THREADS> {
    using S = Shape<T, L>;
    static constexpr int BYTES = Operand<S, THREADS>::BYTES;

    Operand<S, THREADS> limbs;

    __device__ __forceinline__ explicit Squaring(double* shared) : limbs(shared) {}

    template <class Modulus, class Background>
    __device__ __forceinline__ void operator()(double (&x)[L], const Modulus& p, Background& background) const {
        limbs.put(x);
        multiply_with<S, ROWS_PER_STEP<S>>(x, x, limbs, p, background);
    }

    __device__ __forceinline__ void clear() const { limbs.clear(); }
};

}  // namespace dpf
