/* Numbers as elements of a stored dtype (PT_KIND_STORED), for kernels that else only move bytes. */
#ifndef PTCORE_STORED_HPP
#define PTCORE_STORED_HPP
#include "casts.h"
#include "common.hpp"

namespace {

/* Calls f with a number as an element of a stored dtype: an unsigned value of its bits. */
template <class F>
int with_stored(pt_call *call, int dtype, double re, double im, F &&f) {
    const double number[2] = {re, im};
    block16 element;
    char *ptr[2] = {reinterpret_cast<char *>(&element),
                    const_cast<char *>(reinterpret_cast<const char *>(number))};
    const int from = dtype == PT_COMPLEX32 ? PT_COMPLEX128 : PT_FLOAT64;
    pt_cast_loop(from, dtype)(ptr, 1, pt_cast_params(from, dtype));
    return visit_size(call, dtype, [&](auto tag) {
        PT_TYPE(tag) value;
        memcpy(&value, &element, sizeof value);
        f(value);
        return int(PT_OK);
    });
}

} // namespace
#endif
