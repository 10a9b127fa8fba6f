// Python bindings of the readers and the vocabulary, a part of module.cpp: two files that are
// compiled on their own would make the extension 2 KB larger.
#pragma once
#include <nanobind/stl/vector.h>

#include <charconv>

#include "arrays.h"
#include "readers/rows.h"
#include "readers/text_parser.h"
#include "readers/word2vec_parser.h"
#include "text/pooling.h"
#include "words/packed_words.h"
#include "words/subwords.h"
#include "words/words.h"

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
        .def("take_places", [](Rows& rows) { return released(std::move(rows.places)); });
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
    m.def(
        "pool_bits",
        [](Codes codes, Array<const uint32_t> rows, Array<const float> weights,
           Array<const int64_t> ends, Out2D<float> counts) {
            nb::gil_scoped_release release;
            return embits::pool_bits({codes.data(), codes.shape(0), codes.shape(1)}, rows.data(),
                                     weights.data(), rows.shape(0), ends.data(), ends.shape(0),
                                     counts.data());
        },
        "codes"_a.noconvert(), "rows"_a.noconvert(), "weights"_a.noconvert(), "ends"_a.noconvert(),
        "counts"_a.noconvert());
}

// The arrays of a file's words, which are kept while they are used.
struct MappedWords {
    using Bytes = Array<const uint8_t>;
    MappedWords(Bytes text, Bytes codes, Bytes starts, Bytes rows, Bytes links, size_t n)
        : arrays{text, codes, starts, rows, links},
          words(span(text), span(codes), span(starts), span(rows), span(links), n) {}

    static embits::Bytes span(const Bytes& array) { return {array.data(), array.shape(0)}; }

    Bytes arrays[5];
    embits::PackedWords words;
};

// A list of strings that is being filled; what is not UTF-8, or is there already, is refused.
class StrList {
public:
    explicit StrList(size_t size)
        : list_(nb::steal(PyList_New(static_cast<Py_ssize_t>(size)))), is_set_(size) {}

    bool set(size_t place, const char* word, size_t size) {
        PyObject* text = PyUnicode_DecodeUTF8(word, static_cast<Py_ssize_t>(size), nullptr);
        if (!text) PyErr_Clear();
        if (!text || is_set_[place]) {
            Py_XDECREF(text);
            return false;
        }
        is_set_[place] = true;
        PyList_SetItem(list_.ptr(), static_cast<Py_ssize_t>(place), text);  // takes it over
        return true;
    }

    nb::object taken() { return std::move(list_); }

private:
    nb::object list_;
    std::vector<bool> is_set_;
};

// A hash table of words with the arrays that it reads.
struct HeldIndex {
    using Bytes = Array<const uint8_t>;
    HeldIndex(Bytes text, Bytes ends, unsigned item)
        : arrays{text, ends},
          index(text.data(), text.shape(0), {ends.data(), item}, ends.shape(0) / item) {}

    Bytes arrays[2];
    embits::WordIndex index;
};

static const uint8_t* data_of(const nb::bytes& word) {
    return static_cast<const uint8_t*>(word.data());
}

// The words of version 2.
static void bind_packed_words(nb::module_& m) {
    using Bytes = MappedWords::Bytes;
    nb::class_<MappedWords>(m, "PackedWords")
        .def(nb::init<Bytes, Bytes, Bytes, Bytes, Bytes, size_t>(), "text"_a.noconvert(),
             "codes"_a.noconvert(), "starts"_a.noconvert(), "rows"_a.noconvert(),
             "links"_a.noconvert(), "n"_a)
        .def("find",
             [](const MappedWords& self, const nb::bytes& word) {
                 const uint64_t end = word.size();
                 int64_t row;
                 self.words.find(data_of(word), &end, 1, &row);
                 return row;
             })
        .def("first_place",
             [](const MappedWords& self, const nb::bytes& word) {
                 return self.words.first_place(data_of(word), word.size());
             })
        .def("find_many",
             [](const MappedWords& self, Bytes wanted, Array<const uint64_t> ends,
                Array<int64_t> rows) {
                 nb::gil_scoped_release release;
                 self.words.find(wanted.data(), ends.data(), rows.shape(0), rows.data());
             })
        .def("word",
             [](const MappedWords& self, size_t row) -> nb::object {
                 std::string word;
                 const int64_t place = row < self.words.size() ? self.words.place(row) : -1;
                 if (place < 0 || !self.words.word(place, word)) return nb::none();
                 return nb::bytes(word.data(), word.size());
             })
        .def("unpack",
             [](const MappedWords& self, Array<uint64_t> ends, Array<uint8_t> text) {
                 return self.words.unpack(ends.data(), text.shape(0) ? text.data() : nullptr);
             })
        .def("words",
             [](const MappedWords& self) -> nb::object {
                 StrList words(self.words.size());
                 const bool is_whole = self.words.each([&](uint64_t row, const std::string& word) {
                     return words.set(row, word.data(), word.size());
                 });
                 return is_whole ? words.taken() : nb::none();
             })
        .def("near",
             [](const MappedWords& self, const nb::bytes& word, unsigned max_edits, size_t most) {
                 return self.words.near(data_of(word), word.size(), max_edits, most);
             })
        .def("is_sorted", [](const MappedWords& self) { return self.words.is_sorted(); });
    m.def(
        "pack_words",
        [](Bytes text, Array<const uint64_t> ends, Array<const uint64_t> order,
           Array<uint64_t> counts, Array<const uint32_t> codes, Array<uint8_t> out,
           Array<uint64_t> starts) {
            embits::pack_words(text.data(), ends.data(), order.data(), order.shape(0),
                               counts.data(), codes.shape(0) ? codes.data() : nullptr, out.data(),
                               starts.data());
        },
        "text"_a.noconvert(), "ends"_a.noconvert(), "order"_a.noconvert(), "counts"_a.noconvert(),
        "codes"_a.noconvert(), "out"_a.noconvert(), "starts"_a.noconvert());
}

// What the vocabulary uses.
static void bind_words(nb::module_& m) {
    bind_packed_words(m);
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
    using Numbers = Array<const uint8_t>;  // of 4 or 8 bytes each
    m.def(
        "find_words",
        [](Array<const uint8_t> text, Numbers ends, Numbers order, unsigned item,
           Array<const uint8_t> wanted, Array<const uint64_t> wanted_ends, Array<int64_t> rows) {
            nb::gil_scoped_release release;
            embits::find_words(text.data(), text.shape(0), {ends.data(), item},
                               ends.shape(0) / item, {order.data(), item}, wanted.data(),
                               wanted_ends.data(), rows.shape(0), rows.data());
        },
        "text"_a.noconvert(), "ends"_a.noconvert(), "order"_a.noconvert(), "item"_a,
        "wanted"_a.noconvert(), "wanted_ends"_a.noconvert(), "rows"_a.noconvert());
    nb::class_<HeldIndex>(m, "WordIndex")
        .def(nb::init<Numbers, Numbers, unsigned>(), "text"_a.noconvert(), "ends"_a.noconvert(),
             "item"_a)
        .def("find", [](const HeldIndex& self, Array<const uint8_t> wanted,
                        Array<const uint64_t> ends, Array<int64_t> rows) {
            nb::gil_scoped_release release;
            self.index.find(wanted.data(), ends.data(), rows.shape(0), rows.data());
        });
    // The words of rows as strings; None if one lies outside the text or is not UTF-8.
    m.def(
        "words_at",
        [](Array<const uint8_t> text, Numbers ends, unsigned item, size_t gap,
           Array<const int64_t> rows) -> nb::object {
            const embits::Numbers stops{ends.data(), item};
            StrList words(rows.shape(0));
            for (size_t i = 0; i < rows.shape(0); ++i) {
                const size_t row = static_cast<size_t>(rows(i));
                if (row >= ends.shape(0) / item) return nb::none();
                const uint64_t start = row ? stops[row - 1] + gap : 0, stop = stops[row];
                if (start > stop || stop > text.shape(0)) return nb::none();
                const char* word = reinterpret_cast<const char*>(text.data()) + start;
                if (!words.set(i, word, stop - start)) return nb::none();
            }
            return words.taken();
        },
        "text"_a.noconvert(), "ends"_a.noconvert(), "item"_a, "gap"_a, "rows"_a.noconvert());
    // Whole numbers as strings.
    m.def(
        "number_words",
        [](Array<const uint64_t> numbers) {
            StrList words(numbers.shape(0));
            for (size_t i = 0; i < numbers.shape(0); ++i) {
                char digits[20];
                char* end = std::to_chars(digits, digits + sizeof digits, numbers(i)).ptr;
                words.set(i, digits, static_cast<size_t>(end - digits));
            }
            return words.taken();
        },
        "numbers"_a.noconvert());
    // Strings as one run of UTF-8, and where each ends; None if one has a lone surrogate or is no
    // string.
    m.def(
        "words_run",
        [](nb::list words) -> nb::object {
            std::vector<uint8_t> text;
            std::vector<uint64_t> ends;
            ends.reserve(words.size());
            for (nb::handle word : words) {
                Py_ssize_t size;
                const char* data =
                    PyUnicode_Check(word.ptr()) ? PyUnicode_AsUTF8AndSize(word.ptr(), &size) : nullptr;
                if (!data) {
                    PyErr_Clear();
                    return nb::none();
                }
                text.insert(text.end(), data, data + size);
                ends.push_back(text.size());
            }
            return nb::make_tuple(released(std::move(text)), released(std::move(ends)));
        },
        "words"_a);
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
