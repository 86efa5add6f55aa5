// Products on tensor cores, by the instructions of the target: wgmma (sm_90a), or mma.sync where a
// family defines RNS_MMA_SYNC.
#pragma once

#ifdef RNS_MMA_SYNC
#include "mma.cuh"
#else
#include "wgmma.cuh"
#endif
