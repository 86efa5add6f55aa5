// The RSA private operation for keys of 3072 bits with two primes of 1536 bits. Parameters: kernels/README.md.
#include "rsa.cuh"

RSA_EXP_ENTRY(3072, 1, 30, 256, 1)
RSA_EXP_ENTRY(3072, 8, 4, 128, 4)
RSA_GARNER_ENTRY(3072, 8, 4, 128, 4)
RSA_CHECK_ENTRY(3072, 4, 15, 384, 1)
