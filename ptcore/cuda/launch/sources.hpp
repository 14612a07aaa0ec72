// The texts of which programs are made, by the names in their include lines; the build writes the
// texts into the library.
#pragma once

namespace pt_cuda {

struct Source {
    const char *name, *text;
};
extern const Source sources[];      // ends with a name of NULL

}  // namespace pt_cuda
