// The allocators' settings as text, and the text of their failures.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "block_allocator.hpp"

namespace pt_cuda {
namespace {

constexpr size_t MIB = size_t(1) << 20;
constexpr double MAX_MIB = 1 << 24;     // 16 TiB

struct Reader {
    const char *at;
    std::string problem;

    void spaces() { while (*at == ' ' || *at == '\t') ++at; }
    bool skip(char c) {
        spaces();
        if (*at != c) return false;
        ++at;
        return true;
    }
    bool need(char c) {
        return skip(c) || fail(std::string("expected '") + c + "' at \"" + at + "\"");
    }
    bool fail(const std::string &text) {
        if (problem.empty()) problem = text;
        return false;
    }
    std::string word() {
        spaces();
        const char *start = at;
        while (*at && !std::strchr(":,[] \t", *at)) ++at;
        return std::string(start, at);
    }
    bool number(const char *name, double *value) {
        const std::string text = word();
        char *end;
        *value = std::strtod(text.c_str(), &end);
        if (text.empty() || *end || !(*value >= 0 && *value <= MAX_MIB))
            return fail(std::string(name) + ": expected a number, got \"" + text + "\"");
        return true;
    }
    bool whole(const char *name, size_t *value) {
        double x;
        if (!number(name, &x)) return false;
        *value = size_t(x);
        return double(*value) == x || fail(std::string(name) + ": expected a whole number");
    }
};

bool power_of_two(size_t n) { return n && !(n & (n - 1)); }

bool one_division(Reader &r, uint8_t *value) {
    const char *name = "roundup_power2_divisions";
    size_t n;
    if (!r.whole(name, &n)) return false;
    if (n && (!power_of_two(n) || n > 128))
        return r.fail(std::string(name) + ": must be a power of two up to 128, or 0");
    *value = uint8_t(n);
    return true;
}

// One number for all sizes, or [256:1,512:2,>:4]: sizes below 256 MiB, from there to below 512 MiB,
// all above.
bool divisions(Reader &r, uint8_t (&out)[16]) {
    const char *name = "roundup_power2_divisions";
    uint8_t value;
    if (!r.skip('[')) {
        if (!one_division(r, &value)) return false;
        std::memset(out, value, sizeof(out));
        return true;
    }
    int from = 0;
    do {
        size_t bound = 0;
        int to = 16;
        if (!r.skip('>')) {
            if (!r.whole(name, &bound)) return false;
            if (!power_of_two(bound))
                return r.fail(std::string(name) + ": bounds are powers of two, in MiB");
            for (to = 0; (size_t(1) << to) < bound; ++to) {}
            if (to > 16) to = 16;
            if (to < from) return r.fail(std::string(name) + ": bounds must rise");
        }
        if (!r.need(':') || !one_division(r, &value)) return false;
        for (; from < to; ++from) out[from] = value;
    } while (r.skip(','));
    return r.need(']');
}

bool backend_word(Reader &r, const std::string &word, Backend *out) {
    if (word == "native") *out = Backend::native;
    else if (word == "async" || word == "cudaMallocAsync") *out = Backend::async;
    else if (word == "none") *out = Backend::none;
    else return r.fail("backend: expected native, async or none, got \"" + word + "\"");
    return true;
}

bool one_setting(Reader &r, AllocatorSettings *s) {
    const std::string key = r.word();
    if (!r.need(':')) return false;
    if (key == "max_split_size_mb") {
        size_t n;
        if (!r.whole("max_split_size_mb", &n)) return false;
        if (n <= 20) return r.fail("max_split_size_mb: must be more than 20");
        s->max_split_size = n * MIB;
        return true;
    }
    if (key == "garbage_collection_threshold") {
        double x;
        if (!r.number("garbage_collection_threshold", &x)) return false;
        if (!(x > 0 && x < 1))
            return r.fail("garbage_collection_threshold: must be between 0 and 1");
        s->garbage_collection_threshold = x;
        return true;
    }
    if (key == "roundup_power2_divisions") return divisions(r, s->roundup_divisions);
    if (key == "backend") return backend_word(r, r.word(), &s->backend);
    if (key == "expandable_segments") {
        const std::string word = r.word();
        s->expandable = word == "True";
        return s->expandable || word == "False" ||
               r.fail("expandable_segments: expected True or False, got \"" + word + "\"");
    }
    return r.fail("unknown setting \"" + key +
                  "\"; known are max_split_size_mb, garbage_collection_threshold, "
                  "roundup_power2_divisions, backend and expandable_segments");
}

// 1023 bytes, 20.00 MiB
std::string size_text(size_t n) {
    char text[64];
    if (n < 1024) std::snprintf(text, sizeof(text), "%llu bytes", (unsigned long long)n);
    else if (n < MIB) std::snprintf(text, sizeof(text), "%.2f KiB", double(n) / 1024);
    else if (n < 1024 * MIB) std::snprintf(text, sizeof(text), "%.2f MiB", double(n) / MIB);
    else std::snprintf(text, sizeof(text), "%.2f GiB", double(n) / (1024.0 * MIB));
    return text;
}

}  // namespace

bool parse_settings(const char *text, AllocatorSettings *settings, char *error, size_t room) {
    Reader r{text ? text : "", {}};
    AllocatorSettings s = *settings;
    r.spaces();
    if (*r.at)
        do {
            r.spaces();
            if (!*r.at) break;          // a comma at the end
            if (!one_setting(r, &s)) break;
        } while (r.skip(','));
    r.spaces();
    if (r.problem.empty() && *r.at) r.fail(std::string("expected ',' at \"") + r.at + "\"");
    if (r.problem.empty()) *settings = s;
    else if (room) std::snprintf(error, room, "%s", r.problem.c_str());
    return r.problem.empty();
}

bool parse_backend(const char *word, AllocatorSettings *settings, char *error, size_t room) {
    Reader r{"", {}};
    if (!word || !*word || backend_word(r, word, &settings->backend)) return true;
    if (room) std::snprintf(error, room, "%s", r.problem.c_str());
    return false;
}

void failure_text(const AllocatorFailure &why, char *text, size_t room) {
    if (!room) return;
    const std::string tried = size_text(why.segment);
    if (why.device < 0) {
        std::snprintf(
            text, room,
            "CUDA could not allocate %s of pinned host memory (driver error %d); %s are in use "
            "and %s cached.",
            tried.c_str(), why.status, size_text(why.allocated).c_str(),
            size_text(why.reserved - why.allocated).c_str());
        return;
    }
    if (why.status != DRIVER_OUT_OF_MEMORY) {
        std::snprintf(text, room, "CUDA driver error %d on GPU %d while allocating %s.", why.status,
                      why.device, tried.c_str());
        return;
    }
    std::string s = "CUDA out of memory. Tried to allocate " + tried + ". GPU " +
                    std::to_string(why.device) + " has a total capacity of " +
                    size_text(why.device_total) + " of which " + size_text(why.device_free) +
                    " is free. ";
    if (why.cap != SIZE_MAX) s += size_text(why.cap) + " allowed; ";
    s += "Of the allocated memory " + size_text(why.allocated) + " is allocated by ptcore, and " +
        size_text(why.reserved - why.allocated) + " is reserved by ptcore but unallocated";
    if (why.largest_free) s += " (the largest free block has " + size_text(why.largest_free) + ")";
    s += ". If reserved but unallocated memory is large try setting "
         "PTCORE_CUDA_ALLOC_CONF=expandable_segments:True to "
         "avoid fragmentation.";
    std::snprintf(text, room, "%s", s.c_str());
}

}  // namespace pt_cuda
