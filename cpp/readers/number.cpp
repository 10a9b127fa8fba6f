#include "readers/number.h"

#include <cfloat>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <locale>
#include <sstream>
#include <string>

namespace embits {
namespace {

constexpr int kMaxPower = 64;
constexpr double kPowers[kMaxPower + 1] = {
    1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11, 1e12,
    1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22, 1e23, 1e24, 1e25,
    1e26, 1e27, 1e28, 1e29, 1e30, 1e31, 1e32, 1e33, 1e34, 1e35, 1e36, 1e37, 1e38,
    1e39, 1e40, 1e41, 1e42, 1e43, 1e44, 1e45, 1e46, 1e47, 1e48, 1e49, 1e50, 1e51,
    1e52, 1e53, 1e54, 1e55, 1e56, 1e57, 1e58, 1e59, 1e60, 1e61, 1e62, 1e63, 1e64};

// The digits of a number as a whole number times a power of ten.
struct Decimal {
    uint64_t digits = 0;
    long power = 0;
    long n_digits = 0;
};

bool is_digit(char c) { return static_cast<unsigned char>(c - '0') < 10; }

const char* take_digits(const char* p, const char* end, Decimal& decimal) {
    const char* first = p;
    for (; p < end && is_digit(*p); ++p)
        decimal.digits = decimal.digits * 10 + static_cast<uint64_t>(*p - '0');
    decimal.n_digits += p - first;
    return p;
}

// Digits beyond the 19 that a uint64 holds are dropped: they change the value by less than
// one part in 10^18, which the margin in to_float covers.
Decimal first_19_digits(const char* p, const char* end) {
    Decimal decimal;
    long kept = 0;
    bool fraction = false;
    for (; p < end; ++p) {
        if (*p == '.') {
            fraction = true;
        } else if (kept == 19) {
            decimal.power += fraction ? 0 : 1;
        } else {
            decimal.digits = decimal.digits * 10 + static_cast<uint64_t>(*p - '0');
            decimal.power -= fraction ? 1 : 0;
            kept += decimal.digits > 0 ? 1 : 0;  // leading zeros do not count
        }
    }
    return decimal;
}

const char* take_exponent(const char* p, const char* end, long& power) {
    const char* q = p + 1;
    bool negative = q < end && *q == '-';
    if (q < end && (*q == '-' || *q == '+')) ++q;
    const char* first = q;
    long exponent = 0;
    for (; q < end && is_digit(*q); ++q)
        if (exponent < 1000000) exponent = exponent * 10 + (*q - '0');
    power += negative ? -exponent : exponent;
    return q == first ? p : q;  // "1e" has no exponent: the e is not consumed
}

// The conversion of the standard library, in the "C" locale. It takes about a microsecond and is
// needed about once in ten million numbers.
Number convert_slowly(const char* begin, const char* end, float& value) {
    std::istringstream stream(std::string(begin, end));
    stream.imbue(std::locale::classic());
    stream >> value;
    // Out of range gives the largest float or inf. A fail at a tiny value is only an underflow.
    return stream.fail() && std::fabs(value) >= FLT_MAX ? Number::not_finite : Number::ok;
}

// Why this is correctly rounded. `digits` becomes a double (error <= 1/2 ulp), the power of ten
// is exact or a literal (<= 1/2 ulp), the one product or quotient adds 1/2 ulp, and dropped
// digits less than 1/100: the double is within 3 ulp of the true value. A float32 is chosen by
// which side of the midpoint of two floats the value lies on; midpoints are doubles whose low 29
// bits are 100...0. So a double more than 3 ulp away from such a pattern is on the same side as
// the true value, and rounding it gives the float nearest to the true value. Closer than 8 ulp,
// below the normal floats (where midpoints look different) or for wild exponents, convert slowly.
bool to_float(const Decimal& decimal, float& value) {
    if (decimal.digits == 0) {
        value = 0.0f;
        return true;
    }
    if (decimal.power < -kMaxPower || decimal.power > kMaxPower) return false;
    double x = static_cast<double>(decimal.digits);
    x = decimal.power < 0 ? x / kPowers[-decimal.power] : x * kPowers[decimal.power];
    uint64_t bits;
    std::memcpy(&bits, &x, sizeof bits);
    uint64_t low = bits & 0x1fffffffu;
    if (low - (0x10000000u - 8u) <= 16u) return false;
    if (x < FLT_MIN || x > FLT_MAX) return false;
    value = static_cast<float>(x);
    return true;
}

bool field_ends(const char* p, const char* end) { return p == end || is_separator(*p); }

bool is_word(const char* p, const char* end, const char* word) {
    for (; *word != '\0'; ++p, ++word)
        if (p == end || (*p | 0x20) != *word) return false;
    return field_ends(p, end);
}

}  // namespace

Number parse_number(const char* begin, const char* end, const char*& stop, float& value) {
    const char* p = begin;
    bool negative = p < end && *p == '-';
    if (p < end && (*p == '-' || *p == '+')) ++p;
    const char* first = p;
    Decimal decimal;
    p = take_digits(p, end, decimal);
    if (p < end && *p == '.') {
        const char* fraction = p + 1;
        p = take_digits(fraction, end, decimal);
        decimal.power = -static_cast<long>(p - fraction);
    }
    if (decimal.n_digits == 0) {
        bool special = is_word(first, end, "nan") || is_word(first, end, "inf") ||
                       is_word(first, end, "infinity");
        return special ? Number::not_finite : Number::not_a_number;
    }
    if (decimal.n_digits > 19) decimal = first_19_digits(first, p);
    if (p < end && (*p == 'e' || *p == 'E')) p = take_exponent(p, end, decimal.power);
    if (!field_ends(p, end)) return Number::not_a_number;
    stop = p;
    if (!to_float(decimal, value)) {
        Number answer = convert_slowly(first, p, value);
        if (answer != Number::ok) return answer;
    }
    if (negative) value = -value;
    return Number::ok;
}

}  // namespace embits
