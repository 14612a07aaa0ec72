// PT_T as T, and as R the type of its real numbers (the parts of a complex number).
#pragma once
#include "ptcore/complex.h"
#include "base.cuh"

namespace {

typedef PT_T T;
template <class X> struct parts { typedef X real; };
template <> struct parts<complex64> { typedef float real; };
template <> struct parts<complex128> { typedef double real; };
typedef parts<T>::real R;

}  // namespace
