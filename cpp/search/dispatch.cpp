// Which kernels run: asked of the processor once, overridden by EMBITS_SIMD.
// The build defines EMBITS_X86 or EMBITS_ARM when it compiles the kernels for that processor.
#include <atomic>
#include <cstdlib>
#include <stdexcept>
#include <string>

#include "search/kernels.h"

#ifdef EMBITS_X86
#if defined(_MSC_VER)
#include <immintrin.h>
#include <intrin.h>
#else
#include <cpuid.h>
#endif
#endif

namespace embits {

extern const Kernels kAvx2, kAvx512, kNeon;
namespace {

#ifdef EMBITS_X86

struct Registers {
    unsigned eax, ebx, ecx, edx;
};

Registers cpuid(unsigned leaf, unsigned subleaf) {
#if defined(_MSC_VER)
    int r[4];
    __cpuidex(r, static_cast<int>(leaf), static_cast<int>(subleaf));
    return {unsigned(r[0]), unsigned(r[1]), unsigned(r[2]), unsigned(r[3])};
#else
    Registers r{};
    __cpuid_count(leaf, subleaf, r.eax, r.ebx, r.ecx, r.edx);
    return r;
#endif
}

// The register files that the operating system saves for a thread (XCR0).
unsigned saved_state() {
#if defined(_MSC_VER)
    return static_cast<unsigned>(_xgetbv(0));
#else
    unsigned low, high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return low;
#endif
}

bool has(unsigned bits, unsigned wanted) { return (bits & wanted) == wanted; }

struct Features {
    bool avx2 = false;
    bool avx512 = false;
};

Features features() {
    constexpr unsigned kFma = 1u << 12, kPopcnt = 1u << 23, kOsxsave = 1u << 27;  // leaf 1, ecx
    constexpr unsigned kAvx2Bit = 1u << 5;                                       // leaf 7, ebx
    constexpr unsigned kF = 1u << 16, kDq = 1u << 17, kBw = 1u << 30, kVl = 1u << 31;
    constexpr unsigned kVbmi = 1u << 1, kVnni = 1u << 11, kVpopcntdq = 1u << 14;  // leaf 7, ecx
    constexpr unsigned kYmmSaved = 0x06, kZmmSaved = 0xe6;

    Features found;
    if (cpuid(0, 0).eax < 7) return found;
    const Registers one = cpuid(1, 0), seven = cpuid(7, 0);
    if (!has(one.ecx, kFma | kPopcnt | kOsxsave)) return found;
    const unsigned saved = saved_state();
    found.avx2 = has(seven.ebx, kAvx2Bit) && has(saved, kYmmSaved);
    found.avx512 = found.avx2 && has(seven.ebx, kF | kDq | kBw | kVl) &&
                   has(seven.ecx, kVbmi | kVnni | kVpopcntdq) && has(saved, kZmmSaved);
    return found;
}

#endif

struct Tables {
    const Kernels* list[8] = {};
    size_t count = 0;

    Tables() {
        list[count++] = &kPortable;
#ifdef EMBITS_X86
        const Features found = features();
        if (found.avx2) list[count++] = &kAvx2;
        if (found.avx512) list[count++] = &kAvx512;
#elif defined(EMBITS_ARM)
        list[count++] = &kNeon;
#endif
    }

    const Kernels& named(const std::string& name, const char* who) const {
        std::string names;
        for (size_t i = 0; i < count; ++i) {
            if (name == list[i]->name) return *list[i];
            names += (i ? ", " : "") + std::string(list[i]->name);
        }
        throw std::invalid_argument(std::string(who) + " is '" + name +
                                    "', but this processor runs: " + names);
    }
};

const Tables& tables() {
    static const Tables filled;
    return filled;
}

std::atomic<const Kernels*> in_use{nullptr};

}  // namespace

const Kernels* const* available_kernels() { return tables().list; }

const Kernels& kernels() {
    if (const Kernels* chosen = in_use.load(std::memory_order_acquire)) return *chosen;
    const char* wanted = std::getenv("EMBITS_SIMD");
    const Kernels& chosen = wanted && *wanted ? tables().named(wanted, "EMBITS_SIMD")
                                              : *tables().list[tables().count - 1];
    in_use.store(&chosen, std::memory_order_release);
    return chosen;
}

void use_kernels(const char* name) {
    in_use.store(&tables().named(name, "simd"), std::memory_order_release);
}

}  // namespace embits
