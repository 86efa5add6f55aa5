// The RSA private operation for keys of 4096 bits with two primes of 2048 bits. Parameters: kernels/README.md.
#include "rsa.cuh"

RSA_EXP_ENTRY(4096, 2, 20, 256, 1)
RSA_EXP_ENTRY(4096, 8, 5, 128, 4)
RSA_GARNER_ENTRY(4096, 8, 5, 128, 4)
RSA_CHECK_ENTRY(4096, 4, 20, 256, 1)
