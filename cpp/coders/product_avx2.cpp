#include "coders/product_kernels.inc"

namespace embits {

const ProductKernel kProductAvx2 = {"avx2", add};

}  // namespace embits
