#include "coders/searched_kernels.inc"

namespace embits {

const SearchKernel kSearchPortable = {"portable", encode};

}  // namespace embits
