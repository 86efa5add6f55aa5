// The RSA private operation for keys of 2048 bits with two primes of 1024 bits. Parameters: kernels/README.md.
#include "rsa.cuh"

RSA_EXP_ENTRY(2048, 1, 20, 256, 1)
RSA_EXP_ENTRY(2048, 4, 5, 128, 4)
RSA_GARNER_ENTRY(2048, 4, 5, 128, 4)
RSA_CHECK_ENTRY(2048, 2, 20, 256, 1)
