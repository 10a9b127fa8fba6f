// Python bindings, and nothing else: shapes are checked in Python, work is done in embits_core.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include "search/asymmetric.h"
#include "search/kernels.h"
#include "search/multi_index.h"
#include "search/path.h"
#include "readers/rows.h"
#include "coders/least_squares.h"
#include "coders/products.h"
#include "coders/searched.h"
#include "coders/paper.h"
#include "coders/signs.h"
#include "words/subwords.h"
#include "readers/text_parser.h"
#include "search/top_k.h"
#include "readers/word2vec_parser.h"
#include "words/words.h"

namespace nb = nanobind;
using namespace nb::literals;

using Codes = nb::ndarray<const uint8_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
template <typename T>
using Array = nb::ndarray<T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <typename T>
using Out2D = nb::ndarray<T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
// One query and its answer have one dimension, a batch has two.
template <typename T>
using Batch = nb::ndarray<T, nb::c_contig, nb::device::cpu>;

template <typename T>
static size_t length(const Batch<T>& batch) {
    return batch.ndim() == 1 ? 1 : batch.shape(0);
}

// Hands a run of floats to NumPy as a matrix, without a copy.
static auto released(embits::FloatRun& run, size_t dims) {
    size_t n = run.size() / dims;
    float* data = run.release();
    nb::capsule owner(data, [](void* p) noexcept { std::free(p); });
    return nb::ndarray<nb::numpy, float, nb::ndim<2>>(data, {n, dims}, owner);
}

// What the readers use: rows parsed from text and from word2vec's binary format, the matrix that
// collects them, and fastText's n-grams.
static void bind_readers(nb::module_& m) {
    using embits::FloatRun;
    using embits::Rows;
    nb::class_<FloatRun>(m, "FloatRun")
        .def(nb::init<>())
        .def(
            "append",
            [](FloatRun& run, Out2D<const float> rows) { run.append(rows.data(), rows.size()); },
            "rows"_a.noconvert())
        .def("take", [](FloatRun& run, size_t dims) { return released(run, dims); }, "dims"_a);
    using Bytes = nb::ndarray<const uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
    using Offsets = nb::ndarray<const int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
    nb::class_<Rows>(m, "Rows")
        .def(nb::init<size_t, size_t, bool, int64_t>(), "dims"_a, "limit"_a, "skip_bad"_a,
             "first_place"_a)
        .def("__len__", &Rows::size)
        .def_prop_ro("stopped", &Rows::stopped)
        .def_prop_ro("full", &Rows::full)
        .def_ro("lost", &Rows::lost)
        .def_ro("n_bad", &Rows::n_bad)
        .def_ro("next_place", &Rows::next_place)
        .def_prop_ro("first_bad",
                     [](const Rows& rows) {
                         const embits::Fault& fault = rows.first_bad;
                         return nb::make_tuple(
                             fault.place, nb::bytes(fault.found.data(), fault.found.size()),
                             nb::bytes(fault.expected.data(), fault.expected.size()));
                     })
        .def(
            "parse_text",
            [](Rows& rows, nb::bytes text, unsigned threads) {
                const char* data = text.c_str();
                const size_t size = text.size();
                nb::gil_scoped_release release;
                embits::parse_text(data, size, threads, rows);
            },
            "text"_a, "threads"_a)
        .def("end_text", [](Rows& rows) { embits::end_text(rows); })
        .def(
            "parse_word2vec",
            [](Rows& rows, nb::bytes block) {
                const char* data = block.c_str();
                const size_t size = block.size();
                nb::gil_scoped_release release;
                return embits::parse_word2vec(data, size, rows);
            },
            "block"_a)
        .def("take_words",
             [](Rows& rows) {
                 nb::bytes words(rows.words.data(), rows.words.size());
                 std::string().swap(rows.words);
                 return words;
             })
        .def("take_matrix", [](Rows& rows) { return released(rows.matrix, rows.dims); })
        .def("take_places", [](Rows& rows) {
            auto* places = new std::vector<int64_t>(std::move(rows.places));
            nb::capsule owner(places, [](void* p) noexcept {
                delete static_cast<std::vector<int64_t>*>(p);
            });
            return nb::ndarray<nb::numpy, int64_t, nb::ndim<1>>(places->data(), {places->size()},
                                                                owner);
        });
    m.def(
        "ngram_buckets",
        [](nb::bytes word, int minn, int maxn, uint32_t n_buckets) {
            return embits::ngram_buckets(word.c_str(), word.size(), {minn, maxn, n_buckets});
        },
        "word"_a, "minn"_a, "maxn"_a, "n_buckets"_a);
    m.def(
        "word_vectors",
        [](Bytes words, Offsets offsets, Bytes input, size_t n_input_words, int minn, int maxn,
           uint32_t n_buckets, unsigned threads, Out2D<float> out) {
            nb::gil_scoped_release release;
            embits::word_vectors(reinterpret_cast<const char*>(words.data()), offsets.data(),
                                 out.shape(0), reinterpret_cast<const char*>(input.data()),
                                 n_input_words, out.shape(1), {minn, maxn, n_buckets}, threads,
                                 out.data());
        },
        "words"_a.noconvert(), "offsets"_a.noconvert(), "input"_a.noconvert(), "n_input_words"_a,
        "minn"_a, "maxn"_a, "n_buckets"_a, "threads"_a, "out"_a.noconvert());
}

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
static void bind_words(nb::module_& m) {
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
static void bind_coders(nb::module_& m) {
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

// What the search uses. .noconvert(): an output array must never be a silent copy.
static void bind_search(nb::module_& m) {
    m.def("simd", [] { return embits::kernels().name; });
    m.def("use_simd", [](const char* name) { embits::use_kernels(name); }, "name"_a);
    m.def("path", [] { return embits::last_path(); });
    m.def("use_path", [](const char* name) { embits::use_path(name); }, "name"_a);
    m.def("available_simd", [] {
        nb::list names;
        for (auto table = embits::available_kernels(); *table; ++table) names.append((*table)->name);
        return names;
    });
    m.def(
        "top_k",
        [](Codes codes, Batch<const uint8_t> queries, size_t k, unsigned threads,
           Batch<int32_t> distances, Batch<int64_t> rows) {
            nb::gil_scoped_release release;
            embits::top_k(codes.data(), codes.shape(0), codes.shape(1), queries.data(),
                          length(queries), k, threads, distances.data(), rows.data());
        },
        "codes"_a.noconvert(), "queries"_a.noconvert(), "k"_a, "threads"_a,
        "distances"_a.noconvert(), "rows"_a.noconvert());
    m.def(
        "asymmetric_top_k",
        [](Codes codes, Batch<const float> queries, size_t k, unsigned threads,
           Batch<float> scores, Batch<int64_t> rows) {
            nb::gil_scoped_release release;
            embits::asymmetric_top_k(codes.data(), codes.shape(0), codes.shape(1), queries.data(),
                                     length(queries), queries.shape(queries.ndim() - 1), k, threads,
                                     scores.data(), rows.data());
        },
        "codes"_a.noconvert(), "queries"_a.noconvert(), "k"_a, "threads"_a, "scores"_a.noconvert(),
        "rows"_a.noconvert());
    // The index reads the codes it was made from: the object keeps their array alive.
    nb::class_<embits::MultiIndex>(m, "MultiIndex")
        .def(
            "__init__",
            [](embits::MultiIndex* self, Codes codes, unsigned n_chunks) {
                nb::gil_scoped_release release;
                new (self)
                    embits::MultiIndex(codes.data(), codes.shape(0), codes.shape(1), n_chunks);
            },
            "codes"_a.noconvert(), "n_chunks"_a, nb::keep_alive<1, 2>())
        .def_prop_ro("bytes", &embits::MultiIndex::bytes)
        .def(
            "top_k",
            [](const embits::MultiIndex& self, Batch<const uint8_t> queries, size_t k,
               unsigned threads, Batch<int32_t> distances, Batch<int64_t> rows) {
                nb::gil_scoped_release release;
                return self.top_k(queries.data(), length(queries), k, threads, distances.data(),
                                  rows.data());
            },
            "queries"_a.noconvert(), "k"_a, "threads"_a, "distances"_a.noconvert(),
            "rows"_a.noconvert());
}

NB_MODULE(_core, m) {
    bind_readers(m);
    bind_words(m);
    bind_coders(m);
    bind_search(m);
}
