// Modular exponentiation of 4096-bit instances: for large batches, and for small ones that must not wait.
// Parameters: kernels/README.md.
#include "modexp.cuh"

MODEXP_ENTRY(4096, 4, 20, 256, 1)
MODEXP_ENTRY(4096, 16, 5, 128, 4)
