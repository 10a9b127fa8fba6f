#include <immintrin.h>

#include "coders/net_kernels.inc"

namespace embits {

const NetKernel kNetAvx512 = {"avx512", dots<true>, dots<false>};

}  // namespace embits
