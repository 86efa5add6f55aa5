// Small kernels with a product on the tensor cores that test the PTX machine: correct ones, and one
// for each fault that it must detect.
//
// A warpgroup multiplies 64 rows of 32 secret bytes in registers by a matrix of 32 rows and 8
// columns in shared memory. Thread i has the words 4 i .. 4 i + 4 of `rows`, and writes its four
// sums.

typedef unsigned int u32;
typedef unsigned long long u64;

struct Product {
    u32 row[4];
    u32 sum[4];

    __device__ Product(const u32* rows) {
#pragma unroll
        for (int i = 0; i < 4; i++) {
            row[i] = rows[4 * threadIdx.x + i];
            sum[i] = 0;
        }
    }

    __device__ void fence() {
        // Registers of the product are not written after the fence.
#pragma unroll
        for (int i = 0; i < 4; i++) asm volatile("" : "+r"(row[i]), "+r"(sum[i]));
        asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
    }

    __device__ void start(u64 matrix, u32 keep) {
        asm volatile(
            "{.reg .pred keep; setp.ne.b32 keep, %9, 0; "
            "wgmma.mma_async.sync.aligned.m64n8k32.s32.u8.u8 {%0, %1, %2, %3}, {%4, %5, %6, %7}, %8, keep;}"
            : "+r"(sum[0]), "+r"(sum[1]), "+r"(sum[2]), "+r"(sum[3])
            : "r"(row[0]), "r"(row[1]), "r"(row[2]), "r"(row[3]), "l"(matrix), "r"(keep));
        asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
    }

    // Adds the product of the warp's 16 rows, independent of other warps. Lane 4 g + t uses the
    // bytes of column g.
    __device__ void add(const u32* shared) {
        u32 lower = shared[threadIdx.x % 32];
        u32 upper = shared[threadIdx.x % 32 + 32];
        asm volatile(
            "mma.sync.aligned.m16n8k32.row.col.s32.u8.u8.s32 "
            "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
            : "+r"(sum[0]), "+r"(sum[1]), "+r"(sum[2]), "+r"(sum[3])
            : "r"(row[0]), "r"(row[1]), "r"(row[2]), "r"(row[3]), "r"(lower), "r"(upper));
    }

    __device__ void wait() { asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory"); }

    __device__ void store(u32* out) const {
#pragma unroll
        for (int i = 0; i < 4; i++) out[4 * threadIdx.x + i] = sum[i];
    }
};

// The descriptor of 256 bytes at an address in shared memory, column by column, with 16 rows at a
// time.
static __device__ u64 descriptor(const void* shared) {
    u32 address = static_cast<u32>(__cvta_generic_to_shared(shared));
    return (address & 0x3ffff) >> 4 | 8ull << 16 | 8ull << 32;
}

static __device__ void fence_stores() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

#define CONTROL(NAME) extern "C" __global__ void __launch_bounds__(128) NAME(u32* out, const u32* rows, const u32* matrix)

#define SHARED_MATRIX                             \
    __shared__ __align__(128) u32 shared[64 + 4]; \
    if (threadIdx.x < 64) shared[threadIdx.x] = matrix[threadIdx.x];

// Without a fault.
CONTROL(whole_product) {
    SHARED_MATRIX
    fence_stores();
    __syncthreads();
    Product product(rows);
    product.fence();
    product.start(descriptor(shared), 0);
    product.wait();
    product.store(out);
}

// Another product adds to the first without a fence in between, which is allowed.
CONTROL(chained_products) {
    SHARED_MATRIX
    fence_stores();
    __syncthreads();
    Product product(rows);
    product.fence();
    product.start(descriptor(shared), 0);
    product.start(descriptor(shared), 1);
    product.wait();
    product.store(out);
}

// The same product, computed by each warp on its own, twice.
CONTROL(warp_products) {
    SHARED_MATRIX
    __syncthreads();
    Product product(rows);
    product.add(shared);
    product.add(shared);
    product.store(out);
}

// A warp computes its product in two parts.
CONTROL(parted_warp) {
    SHARED_MATRIX
    __syncthreads();
    Product product(rows);
    if (threadIdx.x % 2 == 0) product.add(shared);
    product.store(out);
}

// The stores to the matrix are not fenced.
CONTROL(unseen_matrix) {
    SHARED_MATRIX
    __syncthreads();
    Product product(rows);
    product.fence();
    product.start(descriptor(shared), 0);
    product.wait();
    product.store(out);
}

// The first warp stores the matrix, and the others do not wait.
CONTROL(racing_matrix) {
    __shared__ __align__(128) u32 shared[64];
    if (threadIdx.x < 32) {
        shared[threadIdx.x] = matrix[threadIdx.x];
        shared[threadIdx.x + 32] = matrix[threadIdx.x + 32];
    }
    fence_stores();
    Product product(rows);
    product.fence();
    product.start(descriptor(shared), 0);
    product.wait();
    product.store(out);
}

// A row is written after the fence.
CONTROL(unfenced_rows) {
    SHARED_MATRIX
    fence_stores();
    __syncthreads();
    Product product(rows);
    product.fence();
    asm volatile("add.u32 %0, %0, 1;" : "+r"(product.row[0]));
    product.start(descriptor(shared), 0);
    product.wait();
    product.store(out);
}

// A row is written while the product may still read it.
CONTROL(overwritten_rows) {
    SHARED_MATRIX
    fence_stores();
    __syncthreads();
    Product product(rows);
    product.fence();
    product.start(descriptor(shared), 0);
    asm volatile("add.u32 %0, %0, 1;" : "+r"(product.row[0]));
    product.wait();
    product.store(out);
    out[4 * threadIdx.x] += product.row[0];
}

// The sums are read before they are complete.
CONTROL(early_sums) {
    SHARED_MATRIX
    fence_stores();
    __syncthreads();
    Product product(rows);
    product.fence();
    product.start(descriptor(shared), 0);
    product.store(out);
    product.wait();
}

// The kernel ends with a product under way.
CONTROL(unfinished_product) {
    SHARED_MATRIX
    fence_stores();
    __syncthreads();
    Product product(rows);
    out[threadIdx.x] = product.row[0];
    product.fence();
    product.start(descriptor(shared), 0);
}

// A secret bit selects the place of the matrix.
CONTROL(secret_matrix) {
    SHARED_MATRIX
    fence_stores();
    __syncthreads();
    u32 secret = __shfl_sync(0xffffffffu, rows[0], 0) & 1;
    Product product(rows);
    product.fence();
    product.start(descriptor(shared) + secret, 0);
    product.wait();
    product.store(out);
}

// A secret bit selects whether the product is added.
CONTROL(secret_sum) {
    SHARED_MATRIX
    fence_stores();
    __syncthreads();
    u32 secret = __shfl_sync(0xffffffffu, rows[0], 0) & 1;
    Product product(rows);
    product.fence();
    product.start(descriptor(shared), secret);
    product.wait();
    product.store(out);
}

// A matrix with a swizzled layout.
CONTROL(swizzled_matrix) {
    SHARED_MATRIX
    fence_stores();
    __syncthreads();
    Product product(rows);
    product.fence();
    product.start(descriptor(shared) | 1ull << 62, 0);
    product.wait();
    product.store(out);
}

// The matrix in global memory, from which it is copied to shared memory.
static __device__ uint4 STREAMED[16];

static __device__ void fence_all() { asm volatile("fence.proxy.async;" ::: "memory"); }
static __device__ void fence_global() { asm volatile("fence.proxy.async.global;" ::: "memory"); }

// Two tiles of shared memory for matrices, and two barriers for copies.
static const u32 TILE = 256;
static const u32 BARRIERS = 2 * TILE;
static const u32 STREAM_BYTES = BARRIERS + 16;

struct Stream {
    const unsigned char* shared;
    u32 address;

    // Writes the matrix to global memory and makes the barriers, without a fence.
    __device__ Stream(const unsigned char* shared, const u32* matrix)
        : shared(shared), address(static_cast<u32>(__cvta_generic_to_shared(shared))) {
        if (threadIdx.x < 64) reinterpret_cast<u32*>(STREAMED)[threadIdx.x] = matrix[threadIdx.x];
        if (threadIdx.x == 0) {
            asm volatile("mbarrier.init.shared.b64 [%0], 1;" ::"r"(address + BARRIERS) : "memory");
            asm volatile("mbarrier.init.shared.b64 [%0], 1;" ::"r"(address + BARRIERS + 8) : "memory");
        }
    }

    // One thread copies the matrix to a tile.
    __device__ void copy(u32 thread, u32 tile, u32 barrier, u32 offset = 0) {
        if (threadIdx.x != thread) return;
        u64 from = __cvta_generic_to_global(STREAMED) + offset;
        asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(address + BARRIERS + 8 * barrier),
                     "r"(TILE)
                     : "memory");
        asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                         address + TILE * tile),
                     "l"(from), "r"(TILE), "r"(address + BARRIERS + 8 * barrier)
                     : "memory");
    }

    __device__ void wait(u32 barrier, u32 parity) {
        u32 complete;
        do {
            asm volatile(
                "{.reg .pred complete; mbarrier.try_wait.parity.shared.b64 complete, [%1], %2; "
                "selp.u32 %0, 1, 0, complete;}"
                : "=r"(complete)
                : "r"(address + BARRIERS + 8 * barrier), "r"(parity)
                : "memory");
        } while (complete == 0);
    }

    __device__ u64 tile(u32 number) { return descriptor(shared + TILE * number); }
};

// A barrier of the block at this place if the flag is 1.
static __device__ void meet_if(u32 flag) {
    asm volatile("{.reg .pred here; setp.ne.u32 here, %0, 0; @here bar.sync 0;}" ::"r"(flag) : "memory");
}

#define STREAM                                                     \
    __shared__ __align__(128) unsigned char shared[STREAM_BYTES]; \
    Stream stream(shared, matrix);

#define READY_STREAM \
    STREAM           \
    fence_all();     \
    __syncthreads();

// Without a fault: two copies to one tile. The warps meet between them at two different places.
CONTROL(streamed_products) {
    READY_STREAM
    u32 is_early = __shfl_sync(0xffffffffu, threadIdx.x / 64, 0);
    stream.copy(0, 0, 0);
    stream.wait(0, 0);
    Product product(rows);
    product.fence();
    product.start(stream.tile(0), 0);
    product.wait();
    meet_if(is_early);
    product.fence();
    meet_if(is_early ^ 1);
    stream.copy(0, 0, 0);
    stream.wait(0, 1);
    product.start(stream.tile(0), 1);
    product.wait();
    product.store(out);
}

// The first warps wait for a copy that the last warp starts.
CONTROL(late_copy) {
    READY_STREAM
    stream.copy(96, 0, 0);
    stream.wait(0, 0);
    Product product(rows);
    product.fence();
    product.start(stream.tile(0), 0);
    product.wait();
    product.store(out);
}

// Nobody waits for the copy.
CONTROL(unawaited_copy) {
    READY_STREAM
    stream.copy(0, 0, 0);
    __syncthreads();
    Product product(rows);
    product.fence();
    product.start(stream.tile(0), 0);
    product.wait();
    product.store(out);
}

// A load reads what has not been waited for.
CONTROL(unawaited_load) {
    READY_STREAM
    stream.copy(0, 0, 0);
    out[threadIdx.x] = shared[threadIdx.x];
    stream.wait(0, 0);
}

// Only the first warp waits for the copy, and the others meet it.
CONTROL(awaited_by_another) {
    READY_STREAM
    stream.copy(0, 0, 0);
    if (threadIdx.x < 32) stream.wait(0, 0);
    __syncthreads();
    out[threadIdx.x] = shared[threadIdx.x];
}

// Only one thread of each warp waits for the copy.
CONTROL(wait_of_one_thread) {
    READY_STREAM
    stream.copy(0, 0, 0);
    if (threadIdx.x % 32 == 0) stream.wait(0, 0);
    __syncthreads();
    out[threadIdx.x] = shared[threadIdx.x];
}

// The parity is that of the phase before, so the wait may end at once, or never.
CONTROL(wrong_parity) {
    READY_STREAM
    stream.copy(0, 0, 0);
    stream.wait(0, 1);
    out[threadIdx.x] = shared[threadIdx.x];
}

// Nobody starts a second copy.
CONTROL(endless_wait) {
    READY_STREAM
    stream.copy(0, 0, 0);
    stream.wait(0, 0);
    stream.wait(0, 1);
    out[threadIdx.x] = shared[threadIdx.x];
}

// A copy overwrites a tile that other warps may still read.
CONTROL(racing_copy) {
    READY_STREAM
    stream.copy(0, 0, 0);
    stream.wait(0, 0);
    out[threadIdx.x] = shared[threadIdx.x];
    stream.copy(96, 0, 1);
    stream.wait(1, 0);
}

// A barrier begins its second phase while other warps may still wait for the first.
CONTROL(racing_phase) {
    READY_STREAM
    stream.copy(0, 0, 0);
    stream.wait(0, 0);
    stream.copy(96, 1, 0);
    stream.wait(0, 1);
    out[threadIdx.x] = shared[threadIdx.x];
}

// A product may still read the tile that is overwritten.
CONTROL(copy_under_product) {
    READY_STREAM
    stream.copy(0, 0, 0);
    stream.wait(0, 0);
    Product product(rows);
    product.fence();
    product.start(stream.tile(0), 0);
    stream.copy(0, 0, 1);
    product.wait();
    stream.wait(1, 0);
    product.store(out);
}

// The stores to global memory are not fenced, only those of the barriers.
CONTROL(unseen_source) {
    STREAM
    fence_stores();
    __syncthreads();
    stream.copy(0, 0, 0);
    stream.wait(0, 0);
    out[threadIdx.x] = shared[threadIdx.x];
}

// Only one thread fences the stores of all.
CONTROL(fence_of_one_thread) {
    STREAM
    if (threadIdx.x == 0) fence_all();
    __syncthreads();
    stream.copy(0, 0, 0);
    stream.wait(0, 0);
    out[threadIdx.x] = shared[threadIdx.x];
}

// The stores to global memory are fenced, but not those of the barriers.
CONTROL(unseen_barrier) {
    STREAM
    fence_global();
    __syncthreads();
    stream.copy(0, 0, 0);
    stream.wait(0, 0);
    out[threadIdx.x] = shared[threadIdx.x];
}

// A copy overwrites stores that are not fenced.
CONTROL(copy_over_stores) {
    __shared__ __align__(128) unsigned char shared[STREAM_BYTES];
    Stream stream(shared, matrix);
    fence_all();
    shared[threadIdx.x] = 0;
    __syncthreads();
    stream.copy(0, 0, 0);
    stream.wait(0, 0);
    out[threadIdx.x] = shared[threadIdx.x];
}

// The kernel ends before the copy does.
CONTROL(unfinished_copy) {
    READY_STREAM
    stream.copy(0, 0, 0);
    out[threadIdx.x] = rows[threadIdx.x];
}

// A secret bit selects the source.
CONTROL(secret_source) {
    READY_STREAM
    stream.copy(0, 0, 0, rows[0] & 16);
    stream.wait(0, 0);
    out[threadIdx.x] = shared[threadIdx.x];
}

// Some lanes of a warp meet the others, and some do not.
CONTROL(parted_barrier) {
    meet_if(threadIdx.x & 1);
    out[threadIdx.x] = matrix[threadIdx.x % 64] + rows[threadIdx.x];
}
