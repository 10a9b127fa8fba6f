// Python bindings, and nothing else: shapes are checked in Python, work is done in embits_core.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include "asymmetric.h"
#include "kernels.h"
#include "multi_index.h"
#include "top_k.h"

namespace nb = nanobind;
using namespace nb::literals;

using Codes = nb::ndarray<const uint8_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
// One query and its answer have one dimension, a batch has two.
template <typename T>
using Batch = nb::ndarray<T, nb::c_contig, nb::device::cpu>;

template <typename T>
size_t length(const Batch<T>& batch) {
    return batch.ndim() == 1 ? 1 : batch.shape(0);
}

NB_MODULE(_core, m) {
    m.def("simd", [] { return embits::kernels().name; });
    m.def("use_simd", [](const char* name) { embits::use_kernels(name); }, "name"_a);
    m.def("available_simd", [] {
        nb::list names;
        for (auto table = embits::available_kernels(); *table; ++table) names.append((*table)->name);
        return names;
    });
    // .noconvert(): an output array must never be a silent copy.
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
                new (self) embits::MultiIndex(codes.data(), codes.shape(0), codes.shape(1), n_chunks);
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
