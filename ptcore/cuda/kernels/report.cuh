// Reports a bad index or number in a kernel's data to the host (launch/fault.h).
#pragma once
#include "base.cuh"
#include "fault.h"

namespace {

// Keeps the first fault since the host last looked; `found` becomes 1 when all of it is written.
PT_DEVICE void report(Fault *fault, int op, int64_t index, int64_t dim, int64_t size) {
    if (atomicCAS(reinterpret_cast<unsigned *>(&fault->found), 0u, 2u) != 0u) return;
    fault->op = op;
    fault->index = index;
    fault->dim = dim;
    fault->size = size;
    __threadfence_system();
    atomicExch(reinterpret_cast<unsigned *>(&fault->found), 1u);
}

// `kind` says what the number should be.
PT_DEVICE void report_number(Fault *fault, int op, double number, int kind) {
    report(fault, op, (int64_t)pt::to_bits(number), kind, 0);
}

}  // namespace
