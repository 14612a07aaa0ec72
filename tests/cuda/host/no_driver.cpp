// A driver in the place of libcuda.so.1 that finds no device and takes any module: with it cuDNN
// builds plans for a device that it is told of, and compiles their kernels.
#define API extern "C" __attribute__((visibility("default")))
#define FUNCTION(name) API int name(...) { return 0; }
#define FUNCTION_THAT_GIVES(name, x) API int name(void **value) { return *value = (void *)(x), 0; }

API int cuInit(unsigned) { return 100; }
API int cuDriverGetVersion(int *version) { return *version = 13000, 0; }
API int cuDeviceGetCount(int *count) { return *count = 0, 0; }
API int cuKernelGetAttribute(int *value, ...) { return *value = 0, 0; }
API int cuGetErrorName(int, const char **name) { return *name = "", 0; }
API int cuGetErrorString(int, const char **text) { return *text = "", 0; }
FUNCTION_THAT_GIVES(cuLibraryLoadData, 8)
FUNCTION_THAT_GIVES(cuLibraryGetKernel, 16)
FUNCTION_THAT_GIVES(cuKernelGetFunction, 24)
FUNCTION(cuCtxGetCurrent)
FUNCTION(cuCtxGetLimit)
FUNCTION(cuCtxPopCurrent)
FUNCTION(cuCtxPushCurrent)
FUNCTION(cuDeviceGet)
FUNCTION(cuKernelSetAttribute)
FUNCTION(cuLaunchCooperativeKernel)
FUNCTION(cuLaunchKernel)
FUNCTION(cuLaunchKernelEx)
FUNCTION(cuLibraryLoadFromFile)
FUNCTION(cuLibraryUnload)
FUNCTION(cuLinkAddData)
FUNCTION(cuLinkComplete)
FUNCTION(cuLinkCreate)
FUNCTION(cuLinkDestroy)
FUNCTION(cuModuleGetFunction)
FUNCTION(cuModuleLoadData)
FUNCTION(cuModuleUnload)
FUNCTION(cuOccupancyMaxPotentialClusterSize)
FUNCTION(cuStreamGetCtx)
FUNCTION(cuTensorMapEncodeIm2col)
FUNCTION(cuTensorMapEncodeTiled)
