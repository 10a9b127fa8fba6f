// Words of a file of version 2: sorted, front-coded and Huffman-coded (docs/file-format.md).
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace embits {

struct Bytes {
    const uint8_t* data;
    size_t size;
};

// Whole numbers of `width` bits, one after another, the lowest bit first.
class PackedNumbers {
public:
    PackedNumbers(Bytes bytes, unsigned width) : bytes_(bytes), width_(width) {}
    uint64_t operator[](size_t i) const;  // 0 beyond the end
    size_t size() const { return width_ ? 8 * bytes_.size / width_ : 0; }

private:
    Bytes bytes_;
    unsigned width_;
};

// A canonical prefix code: how many symbols have 1 to 15 bits, and the symbols in order. No code may
// have more symbols than its lengths leave room for.
struct PrefixCode {
    static constexpr unsigned kMaxLength = 15, kShortBits = 8;

    explicit PrefixCode(const uint8_t*& data);
    int long_symbol(unsigned bits, unsigned& length) const;

    const uint8_t* counts;
    const uint8_t* symbols;
    uint16_t short_codes[1 << kShortBits] = {};  // length * 256 + symbol of codes up to 8 bits
};

enum Alphabet { kShared, kSize, kByte };
constexpr int kContinued = 254;  // this symbol of a number: add 254, and the next symbol

class WordReader;
class WordFinder;

// The arrays may come from a damaged file: nothing is read beyond their ends, and every loop ends.
class PackedWords {
public:
    static constexpr int64_t kAbsent = -1, kDamaged = -2;
    static constexpr size_t kBlock = 32;  // words that are coded together
    static constexpr size_t kStep = 31;   // each kStep-th place has a link

    // `codes` has three codes, which must lie in it. Without rows, rows are in the order of words.
    PackedWords(Bytes text, Bytes codes, Bytes starts, Bytes rows, Bytes links, size_t n);

    // The row of each of n words, kAbsent or kDamaged. Words are looked for in ascending order.
    void find(const uint8_t* text, const uint64_t* ends, size_t n, int64_t* rows) const;
    int64_t first_place(const uint8_t* word, size_t size) const;  // of the words not below it
    int64_t place(uint64_t row) const;
    bool word(uint64_t place, std::string& out) const;  // false if damaged
    size_t size() const { return n_; }

    // The bytes of the word of each row go to `ends`. With `text`, which has room for the words,
    // `ends` says where each ends, and they are written. False if damaged.
    bool unpack(uint64_t* ends, uint8_t* text) const;
    // Calls visit(row, word) for each word in order, until it is false; false if damaged.
    bool each(const std::function<bool(uint64_t, const std::string&)>& visit) const;
    // As `near_spellings`.
    std::vector<size_t> near(const uint8_t* word, size_t size, unsigned max_edits,
                             size_t most) const;
    // Whether words ascend strictly, blocks start where `starts` says, and nothing follows.
    bool is_sorted() const;

private:
    friend class WordReader;
    friend class WordFinder;
    uint64_t row(size_t place) const { return has_rows_ ? rows_[place] : place; }

    Bytes text_;
    PackedNumbers starts_, rows_, links_;
    bool has_rows_;
    size_t n_;
    PrefixCode codes_[3];
};

// Writes the words, `order` being that of `word_order`, with codes[alphabet * 256 + symbol] = code *
// 16 + its length; `out` is zero and has room. starts[i] is the first bit of block i. Without codes,
// counts the symbols instead: counts[alphabet * 256 + symbol].
void pack_words(const uint8_t* text, const uint64_t* ends, const uint64_t* order, size_t n,
                uint64_t* counts, const uint32_t* codes, uint8_t* out, uint64_t* starts);

}  // namespace embits
