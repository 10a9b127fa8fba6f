// The inner loop of products.cpp, once per instruction set; see search/kernels.h for the rules.
#pragma once
#include <cstddef>

namespace embits {

constexpr size_t kTileRows = 6, kTileColumns = 16;

// C += A B for a tile: A holds k groups of kTileRows, B k groups of kTileColumns, and C rows of
// kTileColumns.
struct ProductKernel {
    const char* name;
    void (*add)(const float* A, const float* B, size_t k, float* C);
};

extern const ProductKernel kProductPortable, kProductAvx2, kProductAvx512;

}  // namespace embits
