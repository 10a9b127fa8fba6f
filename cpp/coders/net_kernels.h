// The inner loop of net.cpp and search/cells.cpp, once per instruction set; see search/kernels.h for
// the rules.
#pragma once
#include <cstddef>
#include <cstdint>

namespace embits {

// out[r * stride + w] = row r . weight vector w, each `length` bytes long, a multiple of kNetLane.
using NetDots = void (*)(const uint8_t* rows, size_t n, const int8_t* weights, size_t n_weights,
                         size_t length, int32_t* out, size_t stride);

struct NetKernel {
    const char* name;
    NetDots small;  // rows hold numbers up to 63
    NetDots large;  // ... up to 127
};

extern const NetKernel kNetPortable, kNetAvx2, kNetAvx512;

// The one for the instruction set in use.
const NetKernel& net_kernel();

}  // namespace embits
