// The rows that a parser makes: a growing matrix of floats, the words, and the place of each row.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string>
#include <utility>
#include <vector>

namespace embits {

// A growing array of floats. realloc moves a large one by its page table, without a copy, and NumPy
// takes it over as it is.
class FloatRun {
   public:
    FloatRun() = default;
    FloatRun(const FloatRun&) = delete;
    FloatRun& operator=(const FloatRun&) = delete;
    ~FloatRun() { std::free(data_); }

    void append(const float* values, size_t n) {
        if (n == 0) return;
        if (size_ + n > capacity_) resize(size_ + n + (size_ + n) / 2);
        std::memcpy(data_ + size_, values, n * sizeof(float));
        size_ += n;
    }
    void reserve(size_t capacity) {
        if (capacity > capacity_) resize(capacity);
    }
    size_t size() const { return size_; }

    // Returns the array, cut to its size. The caller frees it.
    float* release() {
        resize(size_ ? size_ : 1);
        float* data = data_;
        data_ = nullptr;
        size_ = capacity_ = 0;
        return data;
    }

   private:
    void resize(size_t capacity) {
        if (capacity > SIZE_MAX / sizeof(float)) throw std::bad_alloc();
        void* data = std::realloc(data_, capacity * sizeof(float));
        if (data == nullptr) throw std::bad_alloc();
        data_ = static_cast<float*>(data);
        capacity_ = capacity;
    }
    float* data_ = nullptr;
    size_t size_ = 0, capacity_ = 0;
};

// What is wrong with a row, and where.
struct Fault {
    int64_t place = -1;  // a line number or a byte offset; -1: there is no fault
    std::string found, expected;
    explicit operator bool() const { return place >= 0; }
};

struct Rows {
    Rows(size_t dims, size_t limit, bool skip_bad, int64_t place)
        : dims(dims), limit(limit), skip_bad(skip_bad), next_place(place) {}

    const size_t dims, limit;
    const bool skip_bad;   // leave bad rows out and count them, or stop at the first
    int64_t next_place;    // the line or byte offset at which the next block starts
    FloatRun matrix;
    std::string words;            // each followed by a newline, which no word holds
    std::vector<int64_t> places;  // of the rows kept
    std::string tail;             // of a text block: a line whose end is yet to come
    size_t n_bad = 0;
    Fault first_bad;
    bool lost = false;

    // For a row that cannot be skipped: it is not known where the next one starts.
    void refuse(Fault fault) {
        first_bad = std::move(fault);
        ++n_bad;
        lost = true;
    }
    bool stopped() const { return full() || lost || (n_bad > 0 && !skip_bad); }
    size_t size() const { return places.size(); }
    bool full() const { return size() >= limit; }
};

}  // namespace embits
