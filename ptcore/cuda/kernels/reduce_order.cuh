// The least and the greatest value of ordered types.
#pragma once
#include "base.cuh"

namespace {

template <class T> struct ends {
    static constexpr bool is_signed = T(-1) < T(0);
    static PT_DEVICE_MEMBER T least() {
        return is_signed ? T(uint64_t(1) << (8 * sizeof(T) - 1)) : T(0);
    }
    static PT_DEVICE_MEMBER T greatest() { return T(~least()); }
};
template <> struct ends<bool> {
    static PT_DEVICE_MEMBER bool least() { return false; }
    static PT_DEVICE_MEMBER bool greatest() { return true; }
};
template <> struct ends<float> {
    static PT_DEVICE_MEMBER float least() { return -pt::infinity<float>(); }
    static PT_DEVICE_MEMBER float greatest() { return pt::infinity<float>(); }
};
template <> struct ends<double> {
    static PT_DEVICE_MEMBER double least() { return -pt::infinity<double>(); }
    static PT_DEVICE_MEMBER double greatest() { return pt::infinity<double>(); }
};
template <class T> PT_DEVICE T least() { return ends<T>::least(); }
template <class T> PT_DEVICE T greatest() { return ends<T>::greatest(); }

}  // namespace
