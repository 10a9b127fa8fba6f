#include "readers/text_parser.h"

#include <algorithm>
#include <utility>

#include "readers/number.h"
#include "parallel.h"

namespace embits {
namespace {

// Whole lines, and what one thread parsed of them. Lines are counted from 0 within the part.
struct Part {
    const char *begin, *end;
    std::vector<float> matrix;
    std::vector<std::pair<const char*, const char*>> words;
    std::vector<int64_t> lines;
    std::vector<size_t> rows_before_bad;  // for each bad line, how many rows came before it
    Fault first_bad;
    int64_t n_lines = 0;
};

struct Line {
    const char *begin, *end;
};

Line trimmed(const char* begin, const char* end) {
    while (end > begin && (is_separator(end[-1]) || end[-1] == '\r')) --end;
    while (begin < end && is_separator(*begin)) ++begin;
    return {begin, end};
}

const char* field_end(const char* p, const char* end) {
    while (p < end && !is_separator(*p)) ++p;
    return p;
}

const char* next_field(const char* p, const char* end) {
    while (p < end && is_separator(*p)) ++p;
    return p;
}

std::string quoted(const char* begin, const char* end) {
    constexpr std::ptrdiff_t kMaxShown = 40;
    if (end - begin <= kMaxShown) return "'" + std::string(begin, end) + "'";
    return "'" + std::string(begin, begin + kMaxShown) + "...'";
}

std::string numbers(size_t n) { return std::to_string(n) + (n == 1 ? " number" : " numbers"); }

// The common line: a word without spaces and exactly `dims` numbers.
bool parse_plain(Line line, size_t dims, float* row, const char*& word_end) {
    const char* p = word_end = field_end(line.begin, line.end);
    for (size_t i = 0; i < dims; ++i) {
        p = next_field(p, line.end);
        if (parse_number(p, line.end, p, row[i]) != Number::ok) return false;
    }
    return p == line.end;
}

// Any other line, parsed from the right: either its word has spaces (". . ."), or it is bad, and a
// fault is returned.
Fault parse_from_right(Line line, size_t dims, float* row, const char*& word_end) {
    std::vector<Line> fields;
    for (const char* p = line.begin; p < line.end; p = next_field(p, line.end)) {
        const char* stop = field_end(p, line.end);
        fields.push_back({p, stop});
        p = stop;
    }
    auto parse = [](Line field, float& value) {
        const char* stop;
        return parse_number(field.begin, field.end, stop, value);
    };
    float ignored;
    if (fields.size() <= dims) {
        size_t n = 0;
        while (n < fields.size() &&
               parse(fields[fields.size() - 1 - n], ignored) != Number::not_a_number)
            ++n;
        // A line of numbers alone: the first of them is the word.
        if (n == fields.size()) n -= 1;
        return {0, numbers(n), numbers(dims)};
    }
    size_t first = fields.size() - dims;
    for (size_t i = 0; i < dims; ++i) {
        Line field = fields[first + i];
        Number answer = parse(field, row[i]);
        if (answer == Number::not_finite)
            return {0, std::string(field.begin, field.end), "a finite float32"};
        if (answer == Number::not_a_number)
            return {0, quoted(field.begin, field.end), numbers(dims) + " after the word"};
    }
    // Two or more fields are left of the numbers: a word with spaces, unless the last is a number.
    size_t n = dims;
    while (n < fields.size() - 1 &&
           parse(fields[fields.size() - 1 - n], ignored) != Number::not_a_number)
        ++n;
    if (n > dims) return {0, numbers(n), numbers(dims)};
    word_end = fields[first - 1].end;
    return {};
}

void parse_part(Part& part, size_t dims, size_t limit, bool skip_bad) {
    std::vector<float> row(dims);
    const char* next;
    for (const char* p = part.begin; p < part.end && part.lines.size() < limit; p = next) {
        const void* newline = std::memchr(p, '\n', static_cast<size_t>(part.end - p));
        const char* end = newline ? static_cast<const char*>(newline) : part.end;
        next = newline ? end + 1 : end;
        int64_t number = part.n_lines++;
        Line line = trimmed(p, end);
        if (line.begin == line.end) continue;
        const char* word_end;
        Fault fault;
        if (!parse_plain(line, dims, row.data(), word_end))
            fault = parse_from_right(line, dims, row.data(), word_end);
        if (fault) {
            fault.place = number;
            if (part.rows_before_bad.empty()) part.first_bad = std::move(fault);
            part.rows_before_bad.push_back(part.lines.size());
            if (!skip_bad) return;
            continue;
        }
        part.matrix.insert(part.matrix.end(), row.begin(), row.end());
        part.words.emplace_back(line.begin, word_end);
        part.lines.push_back(number);
    }
}

std::vector<Part> split_at_lines(const char* text, size_t size, unsigned threads) {
    std::vector<Part> parts;
    const char *begin = text, *end = text + size;
    for (unsigned t = 0; t < threads && begin < end; ++t) {
        const char* middle = begin + (end - begin) / (threads - t);
        const void* newline = std::memchr(middle, '\n', static_cast<size_t>(end - middle));
        const char* stop = newline ? static_cast<const char*>(newline) + 1 : end;
        if (t + 1 == threads) stop = end;
        parts.emplace_back();
        parts.back().begin = begin;
        parts.back().end = stop;
        begin = stop;
    }
    return parts;
}

// Bad lines after the last row within the limit are not counted.
void append(const Part& part, Rows& rows) {
    size_t n = std::min(part.lines.size(), rows.limit - rows.size());
    rows.matrix.append(part.matrix.data(), n * rows.dims);
    for (size_t i = 0; i < n; ++i) {
        rows.words.append(part.words[i].first, part.words[i].second).push_back('\n');
        rows.places.push_back(rows.next_place + part.lines[i]);
    }
    for (size_t before : part.rows_before_bad) {
        if (rows.full() && before >= n) break;
        if (rows.n_bad++ > 0) continue;
        rows.first_bad = part.first_bad;
        rows.first_bad.place += rows.next_place;
    }
    rows.next_place += part.n_lines;
}

void parse_lines(const char* text, size_t size, unsigned threads, Rows& rows) {
    std::vector<Part> parts = split_at_lines(text, size, std::max(threads, 1u));
    size_t limit = rows.limit - rows.size();
    const unsigned n_parts = static_cast<unsigned>(parts.size());
    run_parts(n_parts, n_parts,
              [&](unsigned i) { parse_part(parts[i], rows.dims, limit, rows.skip_bad); });
    size_t n_floats = rows.matrix.size();
    for (const Part& part : parts) n_floats += part.matrix.size();
    rows.matrix.reserve(n_floats);
    for (const Part& part : parts) {
        append(part, rows);
        if (rows.stopped()) return;
    }
}

}  // namespace

void parse_text(const char* block, size_t size, unsigned threads, Rows& rows) {
    constexpr size_t kMaxLine = size_t{64} << 20;
    const char *begin = block, *end = block + size;
    if (!rows.tail.empty()) {
        const void* newline = std::memchr(begin, '\n', size);
        const char* stop = newline ? static_cast<const char*>(newline) + 1 : end;
        rows.tail.append(begin, stop);
        begin = stop;
        if (newline) end_text(rows);
    }
    if (rows.stopped()) return;
    const char* last = end;
    while (last > begin && last[-1] != '\n') --last;
    parse_lines(begin, static_cast<size_t>(last - begin), threads, rows);
    rows.tail.append(last, end);
    if (rows.tail.size() > kMaxLine && !rows.stopped())
        rows.refuse({rows.next_place, "no line end in 64 MiB", "lines of text"});
}

void end_text(Rows& rows) {
    std::string line;
    line.swap(rows.tail);
    if (!rows.stopped()) parse_lines(line.data(), line.size(), 1, rows);
}

}  // namespace embits
