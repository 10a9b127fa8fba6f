#pragma once
#include <cstddef>

namespace embits {

// A matrix of float32; element (i, j) is data[i * row + j * column].
struct MatrixView {
    const float* data;
    ptrdiff_t row, column;
};

// C = A B for A of n x k and B of k x m; C is contiguous, row by row. Each element is summed over
// k in order, without fused operations: C depends neither on the threads nor on the processor.
void product(MatrixView A, MatrixView B, size_t n, size_t k, size_t m, float* C, unsigned threads);

}  // namespace embits
