// Python bindings, and nothing else: shapes are checked in Python, work is done in embits_core.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/vector.h>

#include "kernels.h"
#include "spelling.h"
#include "top_k.h"

namespace nb = nanobind;
using namespace nb::literals;

using Codes = nb::ndarray<const uint8_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
template <typename T>
using Array = nb::ndarray<T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <typename T>
using Out2D = nb::ndarray<T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

NB_MODULE(_core, m) {
    m.def("simd", [] { return embits::kernels().name; });
    // .noconvert(): an output array must never be a silent copy.
    m.def(
        "top_k",
        [](Codes codes, Codes queries, size_t k, unsigned threads, Out2D<int32_t> distances,
           Out2D<int64_t> rows) {
            nb::gil_scoped_release release;
            embits::top_k(codes.data(), codes.shape(0), codes.shape(1), queries.data(),
                          queries.shape(0), k, threads, distances.data(), rows.data());
        },
        "codes"_a.noconvert(), "queries"_a.noconvert(), "k"_a, "threads"_a,
        "distances"_a.noconvert(), "rows"_a.noconvert());
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
