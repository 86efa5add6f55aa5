// The kernels of rns/rsa.cuh with mma.sync.
#pragma once

#define RNS_MMA_SYNC
#include "../rns/rsa.cuh"

namespace rns_mma = rns;
