// Modular exponentiation of 1024-bit instances: for large batches, and for small ones that must not wait.
// Parameters: kernels/README.md.
#include "modexp.cuh"

MODEXP_ENTRY(1024, 1, 20, 256, 1)
MODEXP_ENTRY(1024, 4, 5, 128, 4)
