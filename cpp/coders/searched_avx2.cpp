#include <immintrin.h>

#include "coders/searched_kernels.inc"

namespace embits {

const SearchKernel kSearchAvx2 = {"avx2", encode};

}  // namespace embits
