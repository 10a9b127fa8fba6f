// Codes in one array, or in several pieces that follow each other.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

namespace embits {

class CodeRows {
   public:
    struct Piece {
        const uint8_t* codes;
        size_t start;  // the number of its first row
    };

    CodeRows(const uint8_t* codes) : codes_(codes) {}  // one array; a pointer is enough
    // Pieces in row order, none of them empty, and a last entry that starts where they end. They
    // stay the caller's.
    explicit CodeRows(const std::vector<Piece>& pieces)
        : codes_(pieces.front().codes),
          pieces_(pieces.size() > 2 ? pieces.data() : nullptr),
          end_(pieces.data() + pieces.size()) {}

    bool is_one_array() const { return !pieces_; }

    // The codes of rows [row, row + size), side by side: in place, or copied to `to` where they
    // are of several pieces. `left`, the rows that can be read there, is lowered if need be.
    const uint8_t* block(size_t row, size_t size, size_t width, uint8_t* to, size_t& left) const;

    // Copies the codes of rows[0] ... rows[size - 1], which ascend; `left` numbers can be read.
    void gather(size_t width, const int64_t* rows, size_t size, size_t left, uint8_t* to) const;

   private:
    // The piece of a row.
    const Piece* piece_of(size_t row) const;

    const uint8_t* codes_;
    const Piece* pieces_ = nullptr;
    const Piece* end_ = nullptr;
};

}  // namespace embits
