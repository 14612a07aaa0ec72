/* See _source_line.h. The one file that sees CPython's internal headers. */
#define PY_SSIZE_T_CLEAN
#define Py_BUILD_CORE_MODULE \
    1      /* it shows the internal headers; symbols are still imported, not exported */
#include "_source_line.h"
#include <string.h>

#if PT_HAS_FRAMES
#if PY_VERSION_HEX >= 0x030E0000
#include "internal/pycore_interpframe.h"
#else
#include "internal/pycore_frame.h"
#endif

#if PY_VERSION_HEX >= 0x030D0000
#define CURRENT_FRAME(state) ((state)->current_frame)
#define CODE_OF(frame) _PyFrame_GetCode(frame)
#else
#define CURRENT_FRAME(state) ((state)->cframe->current_frame)
#define CODE_OF(frame) ((frame)->f_code)
#endif
#endif

static PyObject *package;           /* the package's folder and a separator */
static const char made[] = "<ptcore ";

void pt_set_package(PyObject *prefix) {
    Py_INCREF(prefix);
    Py_XSETREF(package, prefix);
}

/* A name with wider characters than the folder's is not a file of the package,
 * whose own names are ASCII. */
int pt_is_package(PyObject *name) {
    Py_ssize_t n;
    int kind = (int)PyUnicode_KIND(name);
    const char *data = (const char *)PyUnicode_DATA(name);
    if (kind == PyUnicode_1BYTE_KIND && *data == '<')
        return strncmp(data, made, sizeof made - 1) == 0;
    if (package == NULL || (int)PyUnicode_KIND(package) != kind)
        return 0;
    n = PyUnicode_GET_LENGTH(package);
    return PyUnicode_GET_LENGTH(name) >= n &&
           memcmp(data, PyUnicode_DATA(package), (size_t)(n * kind)) == 0;
}

int pt_line_of(PyObject *code, int instruction) {
    return PyCode_Addr2Line((PyCodeObject *)code, instruction);
}

PyObject *pt_user_code(int *instruction) {
#if PT_HAS_FRAMES
    PyThreadState *state = PyThreadState_Get();
    struct _PyInterpreterFrame *frame = CURRENT_FRAME(state);
    for (; frame != NULL; frame = frame->previous) {
        PyCodeObject *code;
        if (_PyFrame_IsIncomplete(frame))   /* incomplete, or one of the interpreter's own */
            continue;
        code = CODE_OF(frame);
        if (!pt_is_package(code->co_filename)) {
            *instruction = _PyInterpreterFrame_LASTI(frame) * (int)sizeof(_Py_CODEUNIT);
            return (PyObject *)code;
        }
    }
#endif
    return NULL;
}
