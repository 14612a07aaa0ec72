/* Where the user's program is: the first frame outside of this package, without making a frame
 * object.
 *
 * CPython has no public function that walks its frames this cheaply. What is used of its inside
 * stands in _source_line.c, which knows each version by name; any other interpreter (a version that
 * is not named, a build without the GIL, PyPy) has no such frames, and PT_HAS_FRAMES is 0.
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
/* The code of the innermost frame that is not the package's, borrowed, and where in it; NULL: there
 * is none. */
PyObject *pt_user_code(int *instruction);
/* The line of an instruction. */
int pt_line_of(PyObject *code, int instruction);
/* Files whose names begin so are the package's; others are those of code that it makes, `<ptcore
 * ...>`. */
void pt_set_package(PyObject *prefix);
/* Whether a file's name is that of the package's code. */
int pt_is_package(PyObject *name);
#ifdef __cplusplus
}
#endif
#endif
