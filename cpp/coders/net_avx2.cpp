#include <immintrin.h>

#include "coders/net_kernels.inc"

namespace embits {

const NetKernel kNetAvx2 = {"avx2", dots<true>, dots<false>};

}  // namespace embits
