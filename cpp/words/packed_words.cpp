#include "words/packed_words.h"

#include <algorithm>
#include <cstring>
#include <string_view>

#include "words/words.h"

namespace embits {
namespace {

unsigned bit_length(uint64_t number) {
    unsigned bits = 0;
    for (; number; number >>= 1) ++bits;
    return bits;
}

std::string_view as_text(const uint8_t* text, size_t size) {
    return {reinterpret_cast<const char*>(text), size};
}

}  // namespace

uint64_t PackedNumbers::operator[](size_t i) const {
    const uint64_t first = uint64_t{i} * width_, last = first + width_;
    if (last > 8 * uint64_t{bytes_.size}) return 0;
    const uint64_t at = first / 8;
    uint64_t number = 0;
    if (at + 8 <= bytes_.size) {
        std::memcpy(&number, bytes_.data + at, 8);
    } else {
        for (uint64_t end = bytes_.size; end-- > at;) number = number << 8 | bytes_.data[end];
    }
    return number >> first % 8 & ((uint64_t{1} << width_) - 1);
}

// Takes a code off the front of `data`.
PrefixCode::PrefixCode(const uint8_t*& data) : counts(data), symbols(data + kMaxLength) {
    unsigned next = 0, index = 0;
    for (unsigned length = 1; length <= kMaxLength; ++length, next <<= 1) {
        for (unsigned i = 0; i < counts[length - 1]; ++i, ++next, ++index) {
            if (length > kShortBits) continue;
            const unsigned spare = kShortBits - length;
            std::fill_n(short_codes + (next << spare), 1 << spare, length << 8 | symbols[index]);
        }
    }
    data = symbols + index;
}

// Canonical codes of one length are consecutive numbers, so the counts suffice to decode.
int PrefixCode::long_symbol(unsigned bits, unsigned& length) const {
    unsigned first = 0, index = 0;
    for (length = 1; length <= kMaxLength; ++length) {
        const unsigned count = counts[length - 1], code = bits >> (kMaxLength - length);
        if (code - first < count) return symbols[index + code - first];
        index += count;
        first = (first + count) << 1;
    }
    return -1;
}

// Decodes words one after another. `word` holds the last one.
class WordReader {
public:
    WordReader(const PackedWords& words, size_t block)
        : words_(words), end_(8 * uint64_t{words.text_.size}) {
        start(block);
    }

    void start(size_t block) { at_ = std::min(words_.starts_[block], end_); }

    // Reads the next word; the first word of a block shares nothing with the one before.
    bool next(bool is_first);

    // Whether the first word of the block is above another one; decodes no more than it needs.
    bool first_is_above(std::string_view other, bool& is_damaged) {
        const int64_t size = number(kSize);
        for (int64_t i = 0; i < size; ++i) {
            const int byte = symbol(kByte);
            is_damaged |= byte < 0;
            if (byte < 0 || i == static_cast<int64_t>(other.size())) return true;
            const int expected = static_cast<uint8_t>(other[i]);
            if (byte != expected) return byte > expected;
        }
        is_damaged |= size < 0;
        return false;
    }

    uint64_t at() const { return at_; }
    std::string word;

private:
    int64_t number(Alphabet alphabet) {
        int64_t sum = 0;
        int next;
        do {
            next = symbol(alphabet);
            sum += next;
        } while (next == kContinued);
        return next < 0 ? -1 : sum;
    }

    int symbol(Alphabet alphabet) {
        const PrefixCode& code = words_.codes_[alphabet];
        const unsigned bits = peek();
        const uint16_t known = code.short_codes[bits >> (PrefixCode::kMaxLength - PrefixCode::kShortBits)];
        unsigned length = known >> 8;
        int symbol = known & 255;
        if (!length) symbol = code.long_symbol(bits, length);
        if (length > end_ - at_) return -1;
        at_ += length;
        return symbol;
    }

    // The next 15 bits; zeros follow the last one.
    unsigned peek() const {
        const uint64_t at = at_ / 8, left = words_.text_.size - at;
        const uint8_t* next = words_.text_.data + at;
        unsigned bits;
        if (left >= 3) {
            bits = next[0] << 16 | next[1] << 8 | next[2];
        } else {
            bits = (left > 0 ? next[0] << 16 : 0) | (left > 1 ? next[1] << 8 : 0);
        }
        return bits >> (24 - PrefixCode::kMaxLength - at_ % 8) & ((1 << PrefixCode::kMaxLength) - 1);
    }

    const PackedWords& words_;
    uint64_t end_, at_;  // in bits
};

bool WordReader::next(bool is_first) {
    const int64_t shared = is_first ? 0 : number(kShared), size = number(kSize);
    if (shared < 0 || size < 0 || static_cast<uint64_t>(shared) > word.size()) return false;
    // Each byte takes a bit at least.
    if (static_cast<uint64_t>(size) > end_ - at_) return false;
    word.resize(shared + size);
    for (char* out = &word[shared]; out != word.data() + word.size(); ++out) {
        const int byte = symbol(kByte);
        if (byte < 0) return false;
        *out = static_cast<char>(byte);
    }
    return true;
}

PackedWords::PackedWords(Bytes text, Bytes codes, Bytes starts, Bytes rows, Bytes links, size_t n)
    : text_(text),
      starts_(starts, bit_length(8 * uint64_t{text.size})),
      rows_(rows, bit_length(n ? n - 1 : 0)),
      links_(links, bit_length(n ? n - 1 : 0)),
      has_rows_(rows.size > 0),
      n_(n),
      codes_{PrefixCode(codes.data), PrefixCode(codes.data), PrefixCode(codes.data)} {}

// Looks words up. One at or above the word before is looked for from there on, so that words in
// ascending order take one pass.
class WordFinder {
public:
    explicit WordFinder(const PackedWords& words) : words_(words), reader_(words, 0) {}

    // The place of the first word that is not below.
    int64_t first_place(std::string_view wanted, bool& is_equal) {
        const bool goes_on = has_read_ && before_ <= wanted;
        before_ = wanted;
        has_read_ = move_to_block(wanted, goes_on);
        const size_t stop = std::min(words_.n_, (block_ + 1) * PackedWords::kBlock);
        int sign = -1;
        while (has_read_ && (sign = std::string_view(reader_.word).compare(wanted)) < 0) {
            if (place_ + 1 == stop) break;
            ++place_;
            has_read_ = reader_.next(false);
        }
        is_equal = sign == 0;
        return has_read_ ? static_cast<int64_t>(place_ + (sign < 0)) : PackedWords::kDamaged;
    }

    int64_t row(std::string_view wanted) {
        bool is_equal = false;
        const int64_t place = words_.n_ ? first_place(wanted, is_equal) : 0;
        if (place < 0 || !is_equal) return place < 0 ? place : PackedWords::kAbsent;
        const uint64_t found = words_.row(place);
        return found < words_.n_ ? static_cast<int64_t>(found) : PackedWords::kDamaged;
    }

private:
    // Reads the first word of the last block that starts at or below, or stays in that block.
    bool move_to_block(std::string_view wanted, bool goes_on) {
        bool is_damaged = false;
        size_t low = goes_on ? block_ : 0;
        size_t high = (words_.n_ + PackedWords::kBlock - 1) / PackedWords::kBlock;
        // From a block on, the next one is tried first.
        for (size_t step = goes_on ? 1 : high / 2; high - low > 1; step = (high - low) / 2)
            (WordReader(words_, low + step).first_is_above(wanted, is_damaged) ? high : low) =
                low + step;
        if (is_damaged) return false;
        if (goes_on && low == block_) return true;
        block_ = low;
        place_ = low * PackedWords::kBlock;
        reader_.start(low);
        return reader_.next(true);
    }

    const PackedWords& words_;
    WordReader reader_;
    std::string_view before_;
    size_t block_ = 0, place_ = 0;  // the reader has read the word of this place
    bool has_read_ = false;
};

int64_t PackedWords::first_place(const uint8_t* word, size_t size) const {
    bool is_equal;
    return n_ ? WordFinder(*this).first_place(as_text(word, size), is_equal) : 0;
}

void PackedWords::find(const uint8_t* text, const uint64_t* ends, size_t n, int64_t* rows) const {
    std::vector<uint64_t> order(n);
    word_order(text, ends, n, order.data());
    WordFinder finder(*this);
    for (const uint64_t i : order) {
        const uint64_t start = i ? ends[i - 1] : 0;
        rows[i] = finder.row(as_text(text + start, ends[i] - start));
    }
}

// Rows are a permutation of places. From `row` its cycle leads back to the place before; the first
// link on the way is a shortcut to a place behind it.
int64_t PackedWords::place(uint64_t row) const {
    if (!has_rows_) return static_cast<int64_t>(row);
    bool has_jumped = false;
    uint64_t at = row;
    for (size_t steps = 0; steps <= n_ + 1 && at < n_; ++steps) {
        const uint64_t next = rows_[at];
        if (next == row) return static_cast<int64_t>(at);
        const bool jumps = !has_jumped && at % kStep == 0;
        has_jumped |= jumps;
        at = jumps ? links_[at / kStep] : next;
    }
    return kDamaged;
}

bool PackedWords::word(uint64_t place, std::string& out) const {
    WordReader reader(*this, place / kBlock);
    for (size_t i = 0; i <= place % kBlock; ++i)
        if (!reader.next(i == 0)) return false;
    out.swap(reader.word);
    return true;
}

bool PackedWords::each(const std::function<bool(uint64_t, const std::string&)>& visit) const {
    WordReader reader(*this, 0);
    for (size_t place = 0; place < n_; ++place) {
        const uint64_t at = row(place);
        if (at >= n_ || !reader.next(place % kBlock == 0) || !visit(at, reader.word)) return false;
    }
    return true;
}

bool PackedWords::unpack(uint64_t* ends, uint8_t* text) const {
    return each([&](uint64_t at, const std::string& word) {
        const uint64_t size = word.size();
        if (!text) {
            ends[at] = size;
            return true;
        }
        if (size != ends[at] - (at ? ends[at - 1] : 0)) return false;  // a row appears twice
        std::copy(word.begin(), word.end(), text + ends[at] - size);
        return true;
    });
}

std::vector<size_t> PackedWords::near(const uint8_t* word, size_t size, unsigned max_edits,
                                      size_t most) const {
    const Pattern pattern(word, size);
    Nearest nearest(most);
    WordReader reader(*this, 0);
    for (size_t place = 0; place < n_ && reader.next(place % kBlock == 0); ++place) {
        const size_t other = reader.word.size();
        if (other + max_edits < size || size + max_edits < other) continue;
        const unsigned edits =
            pattern.edits(reinterpret_cast<const uint8_t*>(reader.word.data()), other);
        if (edits <= max_edits && row(place) < n_) nearest.add(edits, row(place));
    }
    return nearest.rows();
}

bool PackedWords::is_sorted() const {
    std::string before;
    WordReader reader(*this, 0);
    for (size_t place = 0; place < n_; ++place) {
        if (place % kBlock == 0 && starts_[place / kBlock] != reader.at()) return false;
        if (!reader.next(place % kBlock == 0)) return false;
        if (place && std::string_view(before).compare(reader.word) >= 0) return false;
        before = reader.word;
    }
    return (reader.at() + 7) / 8 == text_.size;
}

}  // namespace embits
