// Virtual memory: addresses that are reserved, pieces of memory, and which of them lies behind
// which addresses.
//
// A piece is nothing but a number of bytes until it is mapped: what it held is lost when it is
// unmapped. Where nothing is mapped, or nobody was given access, an address cannot be touched, and
// a kernel that does so fails by name.
#include "standin.hpp"

#include <sys/mman.h>

namespace standin {

namespace {

const uint64_t UNIT = 2 << 20;          // of all sizes and addresses

struct Piece {
    int device;
    uint64_t bytes;
    bool mapped = false, released = false;
};
struct Mapping {
    uint64_t bytes, piece;
    int device;
    bool access;
};
auto &ranges = *new std::map<uint64_t, uint64_t>;       // bytes by start
auto &pieces = *new std::map<uint64_t, Piece>;          // by handle
auto &mappings = *new std::map<uint64_t, Mapping>;      // by start
uint64_t last_piece;

struct Location {       // CUmemLocation, and what begins CUmemAllocationProp
    int type, id;
};
struct Wanted {
    int type, handles;
    Location location;
};
struct Access {
    Location location;
    int flags;
};

// The entry of a map of starts that an address lies in, or end.
template <class Map, class Size> typename Map::iterator holder(Map &map, uint64_t address,
                                                               Size size) {
    auto after = map.upper_bound(address);
    if (after == map.begin()) return map.end();
    auto found = std::prev(after);
    return address - found->first < size(found->second) ? found : map.end();
}
std::map<uint64_t, Mapping>::iterator mapping_of(uint64_t address) {
    return holder(mappings, address, [](const Mapping &m) { return m.bytes; });
}
std::map<uint64_t, uint64_t>::iterator range_at(uint64_t address) {
    return holder(ranges, address, [](uint64_t bytes) { return bytes; });
}

void drop_piece(uint64_t number) {
    auto found = pieces.find(number);
    if (found->second.mapped || !found->second.released) return;
    state->device[found->second.device].used -= found->second.bytes;
    pieces.erase(found);
}

// Whether mappings tile the addresses without a gap; `each` is called for them.
template <class F> bool tiled(uint64_t address, uint64_t bytes, F &&each) {
    uint64_t at = address;
    for (auto m = mappings.find(address);
         m != mappings.end() && m->first == at && at < address + bytes; ++m)
        at += m->second.bytes;
    if (at != address + bytes) return false;
    for (auto m = mappings.find(address); m != mappings.end() && m->first < address + bytes;)
        each(m++);
    return true;
}

void unmap_piece(std::map<uint64_t, Mapping>::iterator m) {
    unmap_pages(m->first, m->second.bytes);
    const uint64_t number = m->second.piece;
    mappings.erase(m);
    pieces[number].mapped = false;
    drop_piece(number);
}

}  // namespace

int device_behind(uint64_t address) {
    auto m = mapping_of(address);
    return m == mappings.end() ? -1 : m->second.device;
}

void protect_mapped(int device, bool open) {
    for (auto &m : mappings)
        if (m.second.device == device)
            mprotect((void *)m.first, m.second.bytes,
                     open && m.second.access ? PROT_READ | PROT_WRITE : PROT_NONE);
}

// All that is mapped around an address without a gap.
Range mapped_range(uint64_t address) {
    Range r;
    auto m = mapping_of(address);
    if (m == mappings.end()) return r;
    r.kind = DEVICE;
    r.device = m->second.device;
    r.id = (uint64_t)1 << 63 | m->second.piece;
    auto first = m, last = std::next(m);
    while (first != mappings.begin() &&
           std::prev(first)->first + std::prev(first)->second.bytes == first->first)
        --first;
    while (last != mappings.end() &&
           std::prev(last)->first + std::prev(last)->second.bytes == last->first)
        ++last;
    r.start = first->first;
    r.bytes = std::prev(last)->first + std::prev(last)->second.bytes - r.start;
    return r;
}

std::string describe_reserved(uint64_t address) {
    auto m = mapping_of(address);
    if (m != mappings.end())
        return ", mapped memory of device " + std::to_string(m->second.device) +
               (m->second.access ? " which this kernel's device may not touch"
                                 : " that nobody was given access to");
    return range_at(address) == ranges.end()
               ? ""
               : ", a reserved address behind which no memory is mapped";
}

void reset_mapped(int device) {
    for (auto m = mappings.begin(); m != mappings.end();)
        if (m->second.device == device) unmap_piece(m++);
        else ++m;
    for (auto p = pieces.begin(); p != pieces.end();)
        if (p->second.device == device) p = pieces.erase(p);
        else ++p;
}

#define VIRTUAL_CALL(name) \
    STANDIN_CALL(name, CONTEXT); \
    if (const int status = refused()) return status

STANDIN_API int cuMemGetAllocationGranularity(size_t *bytes, const Wanted *wanted, int) {
    STANDIN_CALL("cuMemGetAllocationGranularity", INITIALISED);
    if (!bytes || !wanted) return INVALID_VALUE;
    *bytes = UNIT;
    return OK;
}

STANDIN_API int cuMemAddressReserve(uint64_t *address, size_t bytes, size_t, uint64_t, uint64_t) {
    VIRTUAL_CALL("cuMemAddressReserve");
    if (!address || !bytes || bytes % UNIT) return INVALID_VALUE;
    void *p =
        mmap(nullptr, bytes + UNIT, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED) return OUT_OF_MEMORY;
    const uint64_t low = (uint64_t)p, start = (low + UNIT - 1) / UNIT * UNIT;
    if (start > low) munmap(p, start - low);
    if (start + bytes < low + bytes + UNIT) munmap((void *)(start + bytes), low + UNIT - start);
    ranges[start] = bytes;
    *address = start;
    return OK;
}

STANDIN_API int cuMemAddressFree(uint64_t address, size_t bytes) {
    VIRTUAL_CALL("cuMemAddressFree");
    auto found = ranges.find(address);
    auto inside = mappings.lower_bound(address);
    if (found == ranges.end() || found->second != bytes ||
        (inside != mappings.end() && inside->first < address + bytes))
        return INVALID_VALUE;
    munmap((void *)address, bytes);
    ranges.erase(found);
    return OK;
}

STANDIN_API int cuMemCreate(uint64_t *handle, size_t bytes, const Wanted *wanted, uint64_t) {
    VIRTUAL_CALL("cuMemCreate");
    if (!handle || !wanted || !bytes || bytes % UNIT || wanted->type != 1 ||
        wanted->location.type != 1)
        return INVALID_VALUE;
    if (wanted->location.id < 0 || wanted->location.id >= state->devices) return INVALID_DEVICE;
    Device &d = state->device[wanted->location.id];
    if (bytes > d.total || d.used > d.total - bytes) return OUT_OF_MEMORY;
    d.used += bytes;
    pieces[*handle = ++last_piece] = {wanted->location.id, bytes};
    state->counters.pieces++;
    return OK;
}

STANDIN_API int cuMemRelease(uint64_t handle) {
    VIRTUAL_CALL("cuMemRelease");
    auto found = pieces.find(handle);
    if (found == pieces.end() || found->second.released) return INVALID_VALUE;
    found->second.released = true;
    state->counters.pieces_released++;
    drop_piece(handle);
    return OK;
}

STANDIN_API int cuMemMap(uint64_t address, size_t bytes, size_t offset, uint64_t handle, uint64_t) {
    VIRTUAL_CALL("cuMemMap");
    auto piece = pieces.find(handle);
    auto range = range_at(address);
    auto after = mappings.lower_bound(address);
    if (piece == pieces.end() || piece->second.mapped || piece->second.released || offset ||
        bytes != piece->second.bytes || range == ranges.end() || address % UNIT ||
        bytes > range->second - (address - range->first) || mapping_of(address) != mappings.end() ||
        (after != mappings.end() && after->first < address + bytes))
        return INVALID_VALUE;
    if (!map_junk(address, bytes)) return OUT_OF_MEMORY;
    mprotect((void *)address, bytes, PROT_NONE);
    mappings[address] = {bytes, handle, piece->second.device, false};
    piece->second.mapped = true;
    return OK;
}

STANDIN_API int cuMemSetAccess(uint64_t address, size_t bytes, const Access *access, size_t n) {
    VIRTUAL_CALL("cuMemSetAccess");
    if (!access || n != 1 || access->location.type != 1) return INVALID_VALUE;
    return tiled(address, bytes, [&](std::map<uint64_t, Mapping>::iterator m) {
        if (m->second.device == access->location.id) m->second.access = access->flags == 3;
        protect_mapped(m->second.device, is_open(m->second.device));
    }) ? OK : INVALID_VALUE;
}

// Waits for nothing: work that comes later and touches the addresses fails.
STANDIN_API int cuMemUnmap(uint64_t address, size_t bytes) {
    VIRTUAL_CALL("cuMemUnmap");
    return tiled(address, bytes, unmap_piece) ? OK : INVALID_VALUE;
}

}  // namespace standin
