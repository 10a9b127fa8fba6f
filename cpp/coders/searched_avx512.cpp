#include <immintrin.h>

#include "coders/searched_kernels.inc"

namespace embits {

const SearchKernel kSearchAvx512 = {"avx512", encode};

}  // namespace embits
