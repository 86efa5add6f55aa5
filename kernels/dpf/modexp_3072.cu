// Modular exponentiation of 3072-bit instances: for large batches, and for small ones that must not wait.
// Parameters: kernels/README.md.
#include "modexp.cuh"

MODEXP_ENTRY(3072, 4, 15, 384, 1)
MODEXP_ENTRY(3072, 8, 8, 128, 3)
