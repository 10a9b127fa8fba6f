// The inner loops of the paper's training, one table of them for each instruction set.
#pragma once
#include <cstddef>
#include <cstdint>

namespace embits {

constexpr size_t kTileRows = 12;    // rows of a product are computed in multiples of it
constexpr size_t kGroup = 16;       // bits, or rows of a batch, whose sums are looked up together
constexpr size_t kBlockVectors = 3;  // vectors of a block of columns, at most
constexpr size_t kMaxLanes = 8;     // floats of the longest vector

// A = rows of `a_row` floats, read down or across; B and C have rows of `b_row` and `c_row` floats.
struct Product {
    const float* a;
    size_t a_row, a_depth;  // steps in A to the next row and to the next term of the sum
    const float* b;
    size_t b_row;
    float* c;
    size_t c_row;
    size_t rows, vectors, depth;
};

// A block of columns, as wide as `vectors` vectors; each pointer is at its first column.
struct Reconstruction {
    size_t vectors, stride, rows, groups;
    const float *W, *c, *x;  // x: (rows, stride)
    const uint16_t* codes;   // (groups, code_row): 16 bits of a row, the first bit lowest
    size_t code_row;
    float scale;    // of the gradient
    float* delta;   // (rows, stride): gradient by the sum before tanh
    double* losses; // per column; the squared errors are added
};

struct Update {
    size_t vectors, stride, bits, groups;
    const float* delta;     // (16 * groups, stride)
    const uint16_t* masks;  // (bits, groups): one bit of 16 rows, the first row lowest
    float momentum;
    float* change;  // (bits, kBlockVectors vectors): gradient of the regularizer; the rest is added
    const float* W;
    float *W_next, *velocity_W, *c, *velocity_c;
};

struct PaperKernels {
    size_t lanes;
    void (*multiply)(const Product&);  // C = A B
    // masks[i] of 16 scores: a bit is 1 where its score is 0 or more.
    void (*sign_masks)(const float* scores, size_t groups, uint16_t* masks);
    void (*reconstruct)(const Reconstruction&);
    void (*update)(const Update&);
};

extern const PaperKernels kPaperPortable, kPaperAvx2;

}  // namespace embits
