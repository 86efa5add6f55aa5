// Modular exponentiation of 2048-bit instances: for large batches, and for small ones that must not wait.
// Parameters: kernels/README.md.
#include "modexp.cuh"

MODEXP_ENTRY(2048, 2, 20, 256, 1)
MODEXP_ENTRY(2048, 8, 5, 128, 4)
