// Modular exponentiation of 768-bit instances: for large batches, and for small ones that must not wait.
// Parameters: kernels/README.md.
#include "modexp.cuh"

MODEXP_ENTRY(768, 1, 15, 384, 1)
MODEXP_ENTRY(768, 4, 4, 128, 4)
