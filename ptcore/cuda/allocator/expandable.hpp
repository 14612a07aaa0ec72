// The addresses of an expandable segment: more are reserved than the device has memory, and memory
// is mapped to the first of them, in pieces, as it is needed. Private to block_allocator.cpp.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "block_allocator.hpp"

namespace pt_cuda {

class Range {
public:
    // Pieces of about `piece` bytes.
    Range(const DriverMemory &driver, int device, size_t piece)
        : driver(driver), device(device), size_of_piece(piece) {}
    Range(const Range &) = delete;
    Range &operator=(const Range &) = delete;
    // Its destructor gives nothing back: at exit the driver may be gone before.
    int close() {
        const int failed = shrink(pieces.size());
        const int status = room ? driver.unreserve(device, data, room) : DRIVER_OK;
        room = 0;
        return status == DRIVER_OK ? failed : status;
    }
    struct Close {
        void operator()(Range *range) const {
            range->close();
            delete range;
        }
    };

    int reserve() {
        size_t free, total, unit;
        int status = driver.info(device, &free, &total);
        if (status == DRIVER_OK) status = driver.granularity(device, &unit);
        if (status != DRIVER_OK) return status;
        const auto up = [](size_t n, size_t to) { return (n + to - 1) / to * to; };
        size_of_piece = up(size_of_piece, unit);
        const size_t wanted = up(total + total / 8, size_of_piece);
        void *found = nullptr;
        status = driver.reserve(device, wanted, &found);
        if (status != DRIVER_OK) return status;
        data = static_cast<char *>(found);
        room = wanted;
        return DRIVER_OK;
    }
    // Maps memory to the next `nbytes` (whole pieces): to all of them or, with the driver's status,
    // to none. May take memory of the host (std::bad_alloc), before anything changes.
    int grow(size_t nbytes) {
        const size_t before = pieces.size(), more = nbytes / size_of_piece;
        if (nbytes > room - size()) return DRIVER_OUT_OF_MEMORY;
        pieces.reserve(before + more);
        for (size_t i = 0; i < more; ++i) {
            uint64_t handle;
            const int status = driver.map(device, data + size(), size_of_piece, &handle);
            if (status != DRIVER_OK) {
                shrink(pieces.size() - before);
                return status;
            }
            pieces.push_back(handle);
        }
        return DRIVER_OK;
    }
    // Unmaps the last n pieces, which nothing uses any more.
    int shrink(size_t n) {
        int failed = DRIVER_OK;
        for (; n; --n) {
            const uint64_t handle = pieces.back();
            pieces.pop_back();
            const int status = driver.unmap(device, data + size(), size_of_piece, handle);
            if (status != DRIVER_OK) failed = status;
        }
        return failed;
    }

    size_t count() const { return pieces.size(); }
    size_t size() const { return pieces.size() * size_of_piece; }
    size_t piece() const { return size_of_piece; }
    char *begin() const { return data; }

private:
    const DriverMemory &driver;
    const int device;
    size_t size_of_piece, room = 0;
    char *data = nullptr;
    std::vector<uint64_t> pieces;       // handles of the memory
};

}  // namespace pt_cuda
