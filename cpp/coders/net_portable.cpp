#include "coders/net_kernels.inc"

namespace embits {

const NetKernel kNetPortable = {"portable", dots<true>, dots<false>};

}  // namespace embits
