// The place in the stream of random numbers at which a kernel draws: given by value or, in a graph,
// read from memory.
#pragma once
#include "base.cuh"
#include "ptcore/draws.h"

namespace {

struct StreamPlace { uint64_t seed, offset; };

template <class Args> PT_DEVICE StreamPlace stream_place(const Args &a) {
    return a.base ? StreamPlace{a.base[0], a.base[1] + a.offset} : StreamPlace{a.seed, a.offset};
}

}  // namespace
