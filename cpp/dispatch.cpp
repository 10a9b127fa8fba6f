#include "kernels.h"

namespace embits {

const Kernels& kernels() { return kPortable; }

}  // namespace embits
