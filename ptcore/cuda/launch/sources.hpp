// The texts that programs are made of, by the names they are included by; the build writes them
// into the library.
#pragma once

namespace pt_cuda {

struct Source {
    const char *name, *text;
};
extern const Source sources[];      // ends with a name of NULL

}  // namespace pt_cuda
