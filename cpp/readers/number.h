// One decimal number of a text file, correctly rounded to float32.
#pragma once

namespace embits {

enum class Number { ok, not_a_number, not_finite };

inline bool is_separator(char c) { return c == ' ' || c == '\t'; }

// Reads the field that starts at `begin` and ends at a separator or at `end`.
// `stop` is set to the end of the field when the answer is `ok`.
// `not_finite` means nan, inf, or a number too large for a float32.
Number parse_number(const char* begin, const char* end, const char*& stop, float& value);

}  // namespace embits
