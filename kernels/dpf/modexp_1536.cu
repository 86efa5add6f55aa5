// Modular exponentiation of 1536-bit instances: for large batches, and for small ones that must not wait.
// Parameters: kernels/README.md.
#include "modexp.cuh"

MODEXP_ENTRY(1536, 1, 30, 256, 1)
MODEXP_ENTRY(1536, 8, 4, 128, 4)
