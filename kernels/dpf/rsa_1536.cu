// The RSA private operation for keys of 1536 bits with two primes of 768 bits. Parameters: kernels/README.md.
#include "rsa.cuh"

RSA_EXP_ENTRY(1536, 1, 15, 384, 1)
RSA_EXP_ENTRY(1536, 4, 4, 128, 4)
RSA_GARNER_ENTRY(1536, 4, 4, 128, 4)
RSA_CHECK_ENTRY(1536, 2, 15, 256, 1)
