// The RSA private operation for keys of 1024 bits with two primes of 512 bits. Parameters: kernels/README.md.
#include "rsa.cuh"

RSA_EXP_ENTRY(1024, 1, 10, 512, 1)
RSA_EXP_ENTRY(1024, 2, 5, 128, 4)
RSA_GARNER_ENTRY(1024, 2, 5, 128, 4)
RSA_CHECK_ENTRY(1024, 1, 20, 256, 1)
