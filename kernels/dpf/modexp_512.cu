// Modular exponentiation of 512-bit instances: for large batches, and for small ones that must not wait.
// Parameters: kernels/README.md.
#include "modexp.cuh"

MODEXP_ENTRY(512, 1, 10, 512, 1)
MODEXP_ENTRY(512, 2, 5, 128, 4)
