// Training of the paper's autoencoder: gradient descent with momentum on small batches.
#pragma once
#include <cstddef>
#include <cstdint>

namespace embits {

struct PaperModel {
    size_t bits, dims;
    float* W;           // (bits, dims)
    float* c;           // (dims)
    float* velocity_W;  // (bits, dims)
    float* velocity_c;  // (dims)
};

struct PaperSettings {
    size_t batch_size;
    float learning_rate, momentum, lambda;
    const float* mean;  // (dims), subtracted from the input
    float scale;        // the difference is multiplied by it
    bool clip;          // and then clipped to [-1, 1]
    unsigned threads;
};

// Trains on the rows `order[0]` ... `order[n - 1]` of X, a batch at a time, and updates the model
// in place. Returns the sum of the reconstruction losses of the rows, each before its step.
//
// Each number is summed in one fixed order, by the same rounded operations in every instruction set
// that has a fused multiply-add. The result depends neither on the number of threads nor on which
// of these processors runs it.
double train_paper(const PaperModel& model, const float* X, const int64_t* order, size_t n,
                   const PaperSettings& settings);

}  // namespace embits
