// Codes in one array, or in several pieces that follow each other. A piece may be stored in the order
// of cells, apart from that of its rows; see cells.h.
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
        const uint32_t* order = nullptr;  // the row of each stored code, counted from `start`
        const uint32_t* cells = nullptr;  // where each cell starts, and the end of the last one
    };

    CodeRows(const uint8_t* codes) : codes_(codes) {}  // one array; a pointer is enough
    // Pieces in row order, none of them empty, and a last entry that starts where they end. They
    // stay the caller's.
    explicit CodeRows(const std::vector<Piece>& pieces)
        : codes_(pieces.front().codes),
          pieces_(pieces.size() > 2 ? pieces.data() : nullptr), first_(pieces.data()),
          end_(pieces.data() + pieces.size()) {
        for (const Piece& piece : pieces) is_ordered_ |= piece.order != nullptr;
    }

    bool is_one_array() const { return !pieces_; }

    // The pieces, if this was made of pieces: [first_piece(), last_piece()).
    const Piece* first_piece() const { return first_; }
    const Piece* last_piece() const { return end_ - 1; }

    // Whether codes are stored in another order than rows.
    bool is_ordered() const { return is_ordered_; }
    // The row of a stored code.
    int64_t row_of(size_t place) const {
        if (!is_ordered_) return static_cast<int64_t>(place);
        const Piece* piece = pieces_ ? piece_of(place) : first_;
        const size_t inside = place - piece->start;
        return static_cast<int64_t>(piece->start + (piece->order ? piece->order[inside] : inside));
    }

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
    const Piece* first_ = nullptr;
    const Piece* end_ = nullptr;
    bool is_ordered_ = false;
};

}  // namespace embits
