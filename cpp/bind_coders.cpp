// Python bindings of the coders and the vocabulary.
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include "bindings.h"
#include "coders/least_squares.h"
#include "coders/paper.h"
#include "coders/products.h"
#include "coders/searched.h"
#include "coders/signs.h"
#include "words/words.h"

template <typename Number>
static void bind_find_words(nb::module_& m) {
    m.def(
        "find_words",
        [](Array<const uint8_t> text, Array<const Number> ends, Array<const Number> order,
           Array<const uint8_t> wanted, Array<const uint64_t> wanted_ends, Array<int64_t> rows) {
            nb::gil_scoped_release release;
            embits::find_words(text.data(), text.shape(0), ends.data(), ends.shape(0),
                               order.data(), wanted.data(), wanted_ends.data(), rows.shape(0),
                               rows.data());
        },
        "text"_a.noconvert(), "ends"_a.noconvert(), "order"_a.noconvert(), "wanted"_a.noconvert(),
        "wanted_ends"_a.noconvert(), "rows"_a.noconvert());
}

// What the vocabulary uses.
void bind_words(nb::module_& m) {
    m.def(
        "word_order",
        [](Array<const uint8_t> text, Array<const uint64_t> ends, Array<uint64_t> order) {
            nb::gil_scoped_release release;
            embits::word_order(text.data(), ends.data(), ends.shape(0), order.data());
        },
        "text"_a.noconvert(), "ends"_a.noconvert(), "order"_a.noconvert());
    m.def(
        "repeated_words",
        [](Array<const uint8_t> text, Array<const uint64_t> ends, Array<const uint64_t> order) {
            return embits::repeated_words(text.data(), ends.data(), ends.shape(0), order.data());
        },
        "text"_a.noconvert(), "ends"_a.noconvert(), "order"_a.noconvert());
    bind_find_words<uint32_t>(m);
    bind_find_words<uint64_t>(m);
    m.def(
        "near_spellings",
        [](Array<const uint8_t> text, Array<const uint64_t> ends, nb::bytes word,
           unsigned max_edits, size_t most) {
            return embits::near_spellings(
                text.data(), text.shape(0), ends.data(), ends.shape(0),
                static_cast<const uint8_t*>(word.data()), word.size(), max_edits, most);
        },
        "text"_a.noconvert(), "ends"_a.noconvert(), "word"_a, "max_edits"_a, "most"_a);
}

// What the coders use.
void bind_coders(nb::module_& m) {
    m.def(
        "pack_signs",
        [](Out2D<const float> scores, Array<const float> errors, Out2D<uint8_t> codes,
           Out2D<uint8_t> doubtful) {
            nb::gil_scoped_release release;
            return embits::pack_signs(scores.data(), errors.data(), scores.shape(0),
                                      scores.shape(1), codes.data(), doubtful.data());
        },
        "scores"_a.noconvert(), "errors"_a.noconvert(), "codes"_a.noconvert(),
        "doubtful"_a.noconvert());
    using Matrix = nb::ndarray<const float, nb::ndim<2>, nb::device::cpu>;
    m.def(
        "product",
        [](Matrix a, Matrix b, unsigned threads, Out2D<float> out) {
            nb::gil_scoped_release release;
            embits::product({a.data(), a.stride(0), a.stride(1)},
                            {b.data(), b.stride(0), b.stride(1)}, a.shape(0), a.shape(1),
                            b.shape(1), out.data(), threads);
        },
        "a"_a.noconvert(), "b"_a.noconvert(), "threads"_a, "out"_a.noconvert());
    m.def(
        "solve_positive",
        [](Out2D<double> matrix, Out2D<double> sides) {
            nb::gil_scoped_release release;
            return embits::solve_positive(matrix.data(), sides.shape(0), sides.data(),
                                          sides.shape(1));
        },
        "matrix"_a.noconvert(), "sides"_a.noconvert());
    m.def(
        "encode_searched",
        [](Out2D<const float> vectors, Out2D<const int16_t> weights, Array<const int32_t> thresholds,
           Out2D<const int16_t> gram, Array<const int32_t> centre, unsigned shift, int32_t offset,
           int32_t length, float pull, unsigned sweeps, unsigned threads, Out2D<uint8_t> codes) {
            const embits::SearchedWeights coder = {
                vectors.shape(1), thresholds.shape(0), weights.data(), thresholds.data(),
                gram.data(), centre.data(), shift, offset, length, pull, sweeps};
            nb::gil_scoped_release release;
            embits::encode_searched(coder, vectors.data(), vectors.shape(0), threads, codes.data());
        },
        "vectors"_a.noconvert(), "weights"_a.noconvert(), "thresholds"_a.noconvert(),
        "gram"_a.noconvert(), "centre"_a.noconvert(), "shift"_a, "offset"_a, "length"_a, "pull"_a,
        "sweeps"_a, "threads"_a, "codes"_a.noconvert());
    m.def(
        "train_paper",
        [](Out2D<const float> X, Array<const int64_t> order, Out2D<float> W, Array<float> c,
           Out2D<float> velocity_W, Array<float> velocity_c, size_t batch_size, float learning_rate,
           float momentum, float lambda, Array<const float> mean, float scale, bool clip,
           unsigned threads) {
            nb::gil_scoped_release release;
            return embits::train_paper(
                {W.shape(0), W.shape(1), W.data(), c.data(), velocity_W.data(), velocity_c.data()},
                X.data(), order.data(), order.shape(0),
                {batch_size, learning_rate, momentum, lambda, mean.data(), scale, clip, threads});
        },
        "X"_a.noconvert(), "order"_a.noconvert(), "W"_a.noconvert(), "c"_a.noconvert(),
        "velocity_W"_a.noconvert(), "velocity_c"_a.noconvert(), "batch_size"_a, "learning_rate"_a,
        "momentum"_a, "lambda_reg"_a, "mean"_a.noconvert(), "scale"_a, "clip"_a, "threads"_a);
}
