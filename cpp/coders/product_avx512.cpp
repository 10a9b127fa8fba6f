#include "coders/product_kernels.inc"

namespace embits {

const ProductKernel kProductAvx512 = {"avx512", add};

}  // namespace embits
