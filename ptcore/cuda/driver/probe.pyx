"""Whether there is an NVIDIA driver and how many devices it has, asked of the driver itself, without cuda-python."""

cdef extern from *:
    """
    #ifdef _WIN32
    #include <windows.h>
    static void *pt_open_driver(void) { return (void *)LoadLibraryA("nvcuda.dll"); }
    static void *pt_symbol(void *library, const char *name) { return (void *)GetProcAddress((HMODULE)library, name); }
    #else
    #include <dlfcn.h>
    static void *pt_open_driver(void) { return dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL); }
    static void *pt_symbol(void *library, const char *name) { return dlsym(library, name); }
    #endif
    /* Devices, or the negative CUresult of what failed; -1000: there is no driver. The library stays open. */
    static int pt_probe_cuda(void) {
        void *library = pt_open_driver();
        if (!library) return -1000;
        int (*init)(unsigned) = (int (*)(unsigned))pt_symbol(library, "cuInit");
        int (*get_count)(int *) = (int (*)(int *))pt_symbol(library, "cuDeviceGetCount");
        if (!init || !get_count) return -1000;
        int count = 0, result = init(0);
        if (!result) result = get_count(&count);
        return result ? -result : count;
    }
    """
    int pt_probe_cuda() nogil

cdef enum:
    UNKNOWN = -2000
cdef int _count = UNKNOWN


def device_count():
    """The number of devices, 0 where there is no driver or it does not start."""
    global _count
    cdef int found
    if _count < 0:                      # a driver may appear later; one that has answered stays
        with nogil:
            found = pt_probe_cuda()
        _count = found
    return _count if _count > 0 else 0
