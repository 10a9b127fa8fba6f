// Python bindings, and nothing else: shapes are checked in Python, work is done in embits_core.
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include "bindings.h"
#include "search/asymmetric.h"
#include "search/filter.h"
#include "search/kernels.h"
#include "search/multi_index.h"
#include "search/path.h"
#include "readers/rows.h"
#include "words/subwords.h"
#include "readers/text_parser.h"
#include "search/top_k.h"
#include "readers/word2vec_parser.h"

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

// A filter reads the arrays it was made from, and keeps them alive.
static void bind_filters(nb::module_& m) {
    using embits::Filter;
    nb::class_<Filter>(m, "Filter")
        .def(
            "__init__",
            [](Filter* self, Out2D<const uint64_t> numbers, Array<const int64_t> starts,
               size_t count, bool is_mask) {
                Filter filter;
                filter.count = count;
                if (is_mask) {
                    filter.mask = numbers.data();
                    filter.stride = numbers.shape(0) == 1 ? 0 : numbers.shape(1);
                } else {
                    filter.rows = reinterpret_cast<const int64_t*>(numbers.data());
                    filter.starts = starts.shape(0) == 0 ? nullptr : starts.data();
                }
                new (self) Filter(filter);
            },
            "numbers"_a.noconvert(), "starts"_a.noconvert(), "count"_a, "is_mask"_a,
            nb::keep_alive<1, 2>(), nb::keep_alive<1, 3>());
    m.def(
        "mask_rows",
        [](Array<const uint64_t> mask, Array<int64_t> rows) {
            embits::mask_rows(mask.data(), mask.shape(0), rows.data());
        },
        "mask"_a.noconvert(), "rows"_a.noconvert());
}

// What the search uses. .noconvert(): an output array must never be a silent copy.
static void bind_search(nb::module_& m) {
    using embits::Filter;
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
           Batch<int32_t> distances, Batch<int64_t> rows, const Filter* filter) {
            nb::gil_scoped_release release;
            embits::top_k(codes.data(), codes.shape(0), codes.shape(1), queries.data(),
                          length(queries), k, threads, distances.data(), rows.data(),
                          filter ? *filter : Filter{});
        },
        "codes"_a.noconvert(), "queries"_a.noconvert(), "k"_a, "threads"_a,
        "distances"_a.noconvert(), "rows"_a.noconvert(), "filter"_a = nb::none());
    m.def(
        "asymmetric_top_k",
        [](Codes codes, Batch<const float> queries, size_t k, unsigned threads,
           Batch<float> scores, Batch<int64_t> rows, const Filter* filter) {
            nb::gil_scoped_release release;
            embits::asymmetric_top_k(codes.data(), codes.shape(0), codes.shape(1), queries.data(),
                                     length(queries), queries.shape(queries.ndim() - 1), k, threads,
                                     scores.data(), rows.data(), filter ? *filter : Filter{});
        },
        "codes"_a.noconvert(), "queries"_a.noconvert(), "k"_a, "threads"_a, "scores"_a.noconvert(),
        "rows"_a.noconvert(), "filter"_a = nb::none());
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
    bind_filters(m);
    bind_search(m);
}
