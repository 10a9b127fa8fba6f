// One step of the descent is three phases of tasks; a thread takes the next task when it is done
// with one, and waits where a task needs the phase before.
//
//     encode       scores W x of blocks of bits, and their signs; rows of the Gram matrix of W
//     reconstruct  blocks of columns of tanh(Wᵀ b + c) and of the gradient; the next batch
//     update       blocks of columns of W and c
#include "coders/paper.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

#include "coders/paper_kernels.h"
#include "parallel.h"
#include "search/kernels.h"

namespace embits {
namespace {

constexpr size_t kTaskRows = 48;          // rows of a product that are one task
constexpr size_t kLeastWork = 1'000'000;  // multiplications of a step that are worth a thread
constexpr int kSpins = 40'000;            // of a waiting thread, about 40 microseconds
constexpr int kMaxLongWaits = 4;          // after so many, one thread goes on alone

static_assert(kTaskRows % kTileRows == 0 && kTaskRows % kGroup == 0, "");
static_assert(kTaskRows % kMaxLanes == 0, "a task of the Gram matrix starts at a whole vector");

size_t rounded_up(size_t n, size_t unit) { return (n + unit - 1) / unit * unit; }
size_t parts(size_t n, size_t size) { return (n + size - 1) / size; }

const PaperKernels& paper_kernels() {
#ifdef EMBITS_X86
    if (std::strcmp(kernels().name, "portable") != 0) return kPaperAvx2;
#endif
    return kPaperPortable;
}

// Eight bytes as rows of an 8 x 8 matrix of bits, transposed (Warren, Hacker's Delight, 7-3).
uint64_t transposed(uint64_t m) {
    uint64_t t = (m ^ (m >> 7)) & 0x00aa00aa00aa00aa;
    m ^= t ^ (t << 7);
    t = (m ^ (m >> 14)) & 0x0000cccc0000cccc;
    m ^= t ^ (t << 14);
    t = (m ^ (m >> 28)) & 0x00000000f0f0f0f0;
    return m ^ t ^ (t << 28);
}

// out[r] has bit b where rows[b * step] has bit r: 16 x 16 bits.
void transpose_masks(const uint16_t* rows, size_t step, uint16_t* out) {
    std::fill(out, out + kGroup, uint16_t{0});
    for (unsigned low = 0; low < kGroup; low += 8)        // of the bits
        for (unsigned shift = 0; shift < kGroup; shift += 8) {  // of the rows
            uint64_t block = 0;
            for (unsigned i = 0; i < 8; ++i)
                block |= uint64_t{(rows[(low + i) * step] >> shift) & 0xffu} << (8 * i);
            block = transposed(block);
            for (unsigned i = 0; i < 8; ++i)
                out[shift + i] |= static_cast<uint16_t>((block >> (8 * i) & 0xff) << low);
        }
}

struct Batch {
    std::vector<float> x, columns;  // (rows, stride), and transposed: (stride, batch_row)
    size_t rows = 0;
};

// Copies rows between an array without padding and one with it.
void copy_rows(const float* from, size_t from_row, float* to, size_t to_row, size_t rows,
               size_t width) {
    for (size_t row = 0; row < rows; ++row)
        std::memcpy(to + row * to_row, from + row * from_row, width * sizeof(float));
}

class Training {
   public:
    Training(const PaperModel& model, const float* X, const int64_t* order, size_t n,
             const PaperSettings& settings);
    double run();

   private:
    void work(bool first);
    void wait_for(size_t tasks);
    void run_task(size_t step, size_t number, float* scratch);
    void multiply_gram(size_t step, size_t block);
    void encode(size_t step, size_t block, float* scratch);
    void load_batch(size_t step);
    void reconstruct(size_t step, size_t block);
    void update(size_t step, size_t block, float* scratch);
    size_t first_vector(size_t block) const { return block * vectors / column_blocks; }

    const PaperModel model;
    const float* X;
    const int64_t* order;
    const size_t n;
    const PaperSettings settings;
    const PaperKernels& kernel;

    // Rows of floats are padded with zeros to whole vectors.
    const size_t stride, batch_row, batch_groups, padded_bits, vectors;
    const bool wide;  // at least as many bits as dimensions: the Gram matrix is WᵀW, else WWᵀ
    const size_t gram_size, gram_row;
    const size_t steps, gram_tasks, encode_tasks, column_blocks, step_tasks;

    // A step reads the first or the second of two, and writes the other.
    std::vector<float> W[2], W_columns[2];
    Batch batches[2];
    std::vector<float> velocity_W, c, velocity_c, gram, delta;
    std::vector<uint16_t> masks, codes;
    std::vector<double> losses;

    std::atomic<size_t> taken{0}, done{0};
    std::atomic<int> long_waits{0};
};

Training::Training(const PaperModel& model, const float* X, const int64_t* order, size_t n,
                   const PaperSettings& settings)
    : model(model), X(X), order(order), n(n), settings(settings), kernel(paper_kernels()),
      stride(rounded_up(model.dims, kMaxLanes)),
      batch_row(rounded_up(std::min(n, settings.batch_size), kGroup)),
      batch_groups(batch_row / kGroup),
      padded_bits(rounded_up(model.bits, kTaskRows)),
      vectors(parts(model.dims, kernel.lanes)),
      wide(model.bits >= model.dims),
      gram_size(wide ? model.dims : model.bits),
      gram_row(rounded_up(gram_size, kMaxLanes)),
      steps(parts(n, settings.batch_size)),
      gram_tasks(parts(gram_size, kTaskRows)),
      encode_tasks(padded_bits / kTaskRows),
      column_blocks(parts(vectors, kBlockVectors)),
      step_tasks(gram_tasks + encode_tasks + 1 + 2 * column_blocks),
      velocity_W(model.bits * stride), c(stride), velocity_c(stride),
      gram(rounded_up(gram_size, kTileRows) * gram_row), delta(batch_row * stride),
      masks(padded_bits * batch_groups), codes(padded_bits / kGroup * batch_row),
      losses(stride) {
    for (size_t i = 0; i < 2; ++i) {
        // Tiles of the Gram matrix may read beyond the last row.
        W[i].resize(padded_bits * stride + kTileRows);
        if (!wide) W_columns[i].resize(model.dims * gram_row + kTileRows);
        batches[i].x.resize(batch_row * stride);
        batches[i].columns.resize(stride * batch_row);
    }
}

double Training::run() {
    const size_t bits = model.bits, dims = model.dims;
    copy_rows(model.W, dims, W[0].data(), stride, bits, dims);
    copy_rows(model.velocity_W, dims, velocity_W.data(), stride, bits, dims);
    copy_rows(model.c, dims, c.data(), stride, 1, dims);
    copy_rows(model.velocity_c, dims, velocity_c.data(), stride, 1, dims);
    if (!wide)
        for (size_t bit = 0; bit < bits; ++bit)
            for (size_t k = 0; k < dims; ++k)
                W_columns[0][k * gram_row + bit] = W[0][bit * stride + k];
    load_batch(0);

    const size_t products = bits * dims * (batch_row + 2 * gram_size);
    const unsigned threads = worthwhile_threads(settings.threads, products, kLeastWork);
    run_parts(threads, threads, [this](unsigned part) { work(part == 0); });

    copy_rows(W[steps % 2].data(), stride, model.W, dims, bits, dims);
    copy_rows(velocity_W.data(), stride, model.velocity_W, dims, bits, dims);
    copy_rows(c.data(), stride, model.c, dims, 1, dims);
    copy_rows(velocity_c.data(), stride, model.velocity_c, dims, 1, dims);
    double total = 0;
    for (size_t k = 0; k < dims; ++k) total += losses[k];
    return total / static_cast<double>(dims);
}

// Tasks are numbered in the order of their phases. A task waits until all of the phases before are
// done; they were taken before it, so another thread runs them.
void Training::work(bool first) {
    std::vector<float> scratch(
        std::max(kTaskRows * batch_row, padded_bits * kBlockVectors * kernel.lanes));
    const size_t phases[] = {gram_tasks + encode_tasks, step_tasks - column_blocks};
    while (first || long_waits.load(std::memory_order_relaxed) < kMaxLongWaits) {
        const size_t next = taken.fetch_add(1, std::memory_order_relaxed);
        const size_t step = next / step_tasks, number = next % step_tasks;
        if (step >= steps) return;
        size_t phase = 0;
        for (const size_t start : phases)
            if (number >= start) phase = start;
        wait_for(step * step_tasks + phase);
        run_task(step, number, scratch.data());
        done.fetch_add(1, std::memory_order_acq_rel);
    }
}

// A thread that is not running holds up the others. Where that happens often, the cores are busy
// with other work, and one thread is faster than several.
void Training::wait_for(size_t tasks) {
    for (int spins = 0; done.load(std::memory_order_acquire) < tasks; ++spins)
        if (spins == kSpins)
            ++long_waits;
        else if (spins > kSpins)
            std::this_thread::yield();
}

void Training::run_task(size_t step, size_t number, float* scratch) {
    if (number < gram_tasks) return multiply_gram(step, number);
    number -= gram_tasks;
    if (number < encode_tasks) return encode(step, number, scratch);
    number -= encode_tasks;
    if (number == 0) return load_batch(step + 1);
    number -= 1;
    if (number < column_blocks) return reconstruct(step, number);
    update(step, number - column_blocks, scratch);
}

// Rows of 2 λ rate (WᵀW - I): what is on and right of the diagonal, and its mirror image.
void Training::multiply_gram(size_t step, size_t block) {
    const size_t first = block * kTaskRows, size = gram_size;
    const size_t rows = std::min(kTaskRows, size - first);
    const float* matrix = wide ? W[step % 2].data() : W_columns[step % 2].data();
    const size_t row = wide ? stride : gram_row;
    kernel.multiply({matrix + first, 1, row, matrix + first, row,
                     gram.data() + first * gram_row + first, gram_row, rounded_up(rows, kTileRows),
                     parts(size - first, kernel.lanes), wide ? model.bits : model.dims});
    const float scale = 2 * settings.lambda * settings.learning_rate;
    for (size_t i = first; i < first + rows; ++i)
        for (size_t j = i; j < size; ++j) {
            const float value = (gram[i * gram_row + j] - (i == j ? 1.0f : 0.0f)) * scale;
            gram[i * gram_row + j] = gram[j * gram_row + i] = value;
        }
}

void Training::encode(size_t step, size_t block, float* scores) {
    const size_t first = block * kTaskRows;
    kernel.multiply({W[step % 2].data() + first * stride, stride, 1,
                     batches[step % 2].columns.data(), batch_row, scores, batch_row,
                     rounded_up(std::min(kTaskRows, model.bits - first), kTileRows),
                     batch_row / kernel.lanes, model.dims});
    uint16_t* of_block = masks.data() + first * batch_groups;
    for (size_t bit = 0; bit < std::min(kTaskRows, model.bits - first); ++bit)
        kernel.sign_masks(scores + bit * batch_row, batch_groups, of_block + bit * batch_groups);
    for (size_t bit = 0; bit < kTaskRows; bit += kGroup)
        for (size_t group = 0; group < batch_groups; ++group)
            transpose_masks(of_block + bit * batch_groups + group, batch_groups,
                            codes.data() + (first + bit) / kGroup * batch_row + group * kGroup);
}

void Training::load_batch(size_t step) {
    if (step >= steps) return;
    Batch& batch = batches[step % 2];
    const size_t start = step * settings.batch_size;
    batch.rows = std::min(settings.batch_size, n - start);
    for (size_t row = 0; row < batch.rows; ++row) {
        const float* from = X + static_cast<size_t>(order[start + row]) * model.dims;
        for (size_t k = 0; k < model.dims; ++k) {
            float value = (from[k] - settings.mean[k]) * settings.scale;
            if (settings.clip) value = std::min(std::max(value, -1.0f), 1.0f);
            batch.x[row * stride + k] = batch.columns[k * batch_row + row] = value;
        }
    }
}

void Training::reconstruct(size_t step, size_t block) {
    const size_t first = first_vector(block), at = first * kernel.lanes;
    const float scale = 2 * settings.learning_rate / static_cast<float>(model.dims);
    const Batch& batch = batches[step % 2];
    for (size_t row = batch.rows; row < batch_row; ++row)
        std::fill_n(delta.data() + row * stride + at, (first_vector(block + 1) - first) * kernel.lanes,
                    0.0f);
    kernel.reconstruct({first_vector(block + 1) - first, stride, batch.rows, padded_bits / kGroup,
                        W[step % 2].data() + at, c.data() + at, batch.x.data() + at, codes.data(),
                        batch_row, scale, delta.data() + at, losses.data() + at});
}

void Training::update(size_t step, size_t block, float* change) {
    const size_t first = first_vector(block), at = first * kernel.lanes;
    const size_t width = first_vector(block + 1) - first;
    const float* now = W[step % 2].data();
    float* next = W[(step + 1) % 2].data();
    const float* left = wide ? now : gram.data();
    const float* right = wide ? gram.data() : now;
    kernel.multiply({left, wide ? stride : gram_row, 1, right + at, wide ? gram_row : stride,
                     change, kBlockVectors * kernel.lanes, rounded_up(model.bits, kTileRows), width,
                     gram_size});
    kernel.update({width, stride, model.bits, batch_groups, delta.data() + at, masks.data(),
                   settings.momentum, change, now + at, next + at, velocity_W.data() + at,
                   c.data() + at, velocity_c.data() + at});
    if (wide) return;
    float* columns = W_columns[(step + 1) % 2].data();
    for (size_t k = at; k < std::min(at + width * kernel.lanes, model.dims); ++k)
        for (size_t bit = 0; bit < model.bits; ++bit)
            columns[k * gram_row + bit] = next[bit * stride + k];
}

}  // namespace

double train_paper(const PaperModel& model, const float* X, const int64_t* order, size_t n,
                   const PaperSettings& settings) {
    return n ? Training(model, X, order, n, settings).run() : 0;
}

}  // namespace embits
