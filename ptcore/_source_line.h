/* Where the user's program is: finds the first frame outside this package,
 * without making a frame object.
 *
 * CPython has no public function that walks its frames as cheaply. Only _source_line.c uses
 * CPython's internals, version by version. Any other interpreter (an unknown version, a build
 * without the GIL, PyPy) has no such frames: PT_HAS_FRAMES is 0.
 */
#ifndef PTCORE_SOURCE_LINE_H
#define PTCORE_SOURCE_LINE_H
#include <Python.h>

#if !defined(PT_HAS_FRAMES)
#if defined(PYPY_VERSION) || defined(GRAALVM_PYTHON) || defined(Py_GIL_DISABLED)
#define PT_HAS_FRAMES 0
#elif PY_VERSION_HEX >= 0x030B0000 && PY_VERSION_HEX < 0x030F0000
#define PT_HAS_FRAMES 1
#else
#define PT_HAS_FRAMES 0
#endif
#endif

#ifdef __cplusplus
extern "C" {
#endif
/* The code object (borrowed) of the innermost frame outside the package, and the position in it;
 * NULL: there is no such frame. */
PyObject *pt_user_code(int *instruction);
/* The line number of an instruction. */
int pt_line_of(PyObject *code, int instruction);
/* Sets the prefix of the names of the package's files. (Code that the package generates has
 * names like `<ptcore ...>`.) */
void pt_set_package(PyObject *prefix);
/* Whether a file name belongs to the package's code. */
int pt_is_package(PyObject *name);
#ifdef __cplusplus
}
#endif
#endif
