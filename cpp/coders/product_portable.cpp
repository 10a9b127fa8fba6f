#include "coders/product_kernels.inc"

namespace embits {

const ProductKernel kProductPortable = {"portable", add};

}  // namespace embits
