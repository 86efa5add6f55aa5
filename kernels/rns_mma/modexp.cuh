// The kernels of rns/modexp.cuh with mma.sync.
#pragma once

#define RNS_MMA_SYNC
#include "../rns/modexp.cuh"

namespace rns_mma = rns;
