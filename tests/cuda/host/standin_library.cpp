// Libraries and kernels: a "cubin" is a shared object of the host's that base.cuh and shim.h made
// of a kernel program.
#include "standin.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <set>
#include <sys/mman.h>
#include <unistd.h>

namespace standin {

namespace {

struct Library;

struct Kernel {
    Library *library;
    std::string name;
    void (*entry)(const void *);
    int threads, barriers, bytes;
    int dynamic_limit = 49152;
};

struct Library {
    void *handle = nullptr;
    int descriptor = -1;
    char *statics = nullptr, *base = nullptr;
    std::vector<char> image;            // kept where races are checked, for the lines
    size_t static_bytes = 0;
    std::vector<std::string> names;
    std::map<std::string, std::unique_ptr<Kernel>> kernels;
    ~Library() {
        if (handle) dlclose(handle);
        if (descriptor >= 0) close(descriptor);
    }
};
auto &libraries = *new std::map<void *, std::shared_ptr<Library>>;
auto &kernels = *new std::set<void *>;

#if defined(__x86_64__)
const int MACHINE = EM_X86_64;
#elif defined(__aarch64__)
const int MACHINE = EM_AARCH64;
#else
const int MACHINE = -1;
#endif

// The bytes of an ELF image, whose headers say where it ends; 0 if it is none for this machine.
size_t image_bytes(const char *image) {
    Elf64_Ehdr head;
    if (memcmp(image, ELFMAG, SELFMAG)) return 0;
    memcpy(&head, image, sizeof head);
    if (head.e_ident[EI_CLASS] != ELFCLASS64 || head.e_type != ET_DYN) return 0;
    if (MACHINE >= 0 && head.e_machine != MACHINE) return 0;
    size_t end = head.e_shoff + (size_t)head.e_shnum * head.e_shentsize;
    for (int i = 0; i < head.e_phnum; i++) {
        Elf64_Phdr p;
        memcpy(&p, image + head.e_phoff + (size_t)i * head.e_phentsize, sizeof p);
        end = std::max(end, (size_t)(p.p_offset + p.p_filesz));
    }
    return end;
}

bool write_all(int fd, const char *p, size_t n) {
    while (n) {
        const ssize_t w = write(fd, p, n);
        if (w <= 0) return false;
        p += w;
        n -= (size_t)w;
    }
    return true;
}

// dlopen knows files by name, so that each image needs a name that no earlier one had.
void *open_image(const char *image, size_t n, int *descriptor) {
    const char *folder = getenv("TMPDIR");
    std::string path = std::string(folder && *folder ? folder : "/tmp") + "/standin-XXXXXX";
    void *handle = nullptr;
    int fd = mkstemp(&path[0]);
    if (fd >= 0) {
        if (write_all(fd, image, n)) handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
        close(fd);
        if (!getenv("PTCORE_STANDIN_KEEP")) unlink(path.c_str());
    }
    if (!handle &&
        (fd = memfd_create("standin", MFD_CLOEXEC)) >= 0) {    // files there may not be executed
        path = "/proc/self/fd/" + std::to_string(fd);
        if (write_all(fd, image, n)) handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
        *descriptor = fd;
    }
    return handle;
}

// Names that have name_threads and name_size beside them; and the .bss, which holds the __shared__
// variables.
void inspect(Library &l, const char *image) {
    link_map *map = nullptr;
    dlinfo(l.handle, RTLD_DI_LINKMAP, &map);
    l.base = (char *)map->l_addr;
    Elf64_Ehdr head;
    memcpy(&head, image, sizeof head);
    for (int i = 0; i < head.e_phnum; i++) {
        Elf64_Phdr p;
        memcpy(&p, image + head.e_phoff + (size_t)i * head.e_phentsize, sizeof p);
        if (p.p_type != PT_LOAD || !(p.p_flags & PF_W) || p.p_memsz <= p.p_filesz) continue;
        l.statics = (char *)(map->l_addr + p.p_vaddr + p.p_filesz);
        l.static_bytes = p.p_memsz - p.p_filesz;
    }
    // Up to a few words are the compiler's own. Under AddressSanitizer red zones lie between the
    // variables.
    if (l.static_bytes <= 16 || dlsym(RTLD_DEFAULT, "__asan_init")) l.static_bytes = 0;
    for (int i = 0; i < head.e_shnum; i++) {
        Elf64_Shdr s, strings;
        memcpy(&s, image + head.e_shoff + (size_t)i * head.e_shentsize, sizeof s);
        if (s.sh_type != SHT_DYNSYM) continue;
        memcpy(&strings, image + head.e_shoff + (size_t)s.sh_link * head.e_shentsize,
               sizeof strings);
        for (size_t k = 0; k < s.sh_size / sizeof(Elf64_Sym); k++) {
            Elf64_Sym symbol;
            memcpy(&symbol, image + s.sh_offset + k * sizeof symbol, sizeof symbol);
            const std::string name = image + strings.sh_offset + symbol.st_name;
            const size_t n = name.size();
            if (symbol.st_shndx != SHN_UNDEF && n > 9 && name.compare(n - 9, 9, "_barriers") == 0)
                l.names.push_back(name.substr(0, n - 9));
        }
    }
    std::sort(l.names.begin(), l.names.end());
}

int load(void **out, const void *image) {
    if (!out || !image) return INVALID_VALUE;
    const size_t n = image_bytes((const char *)image);
    if (!n) return INVALID_IMAGE;
    auto l = std::make_shared<Library>();
    l->handle = open_image((const char *)image, n, &l->descriptor);
    if (!l->handle) {
        const char *why = dlerror();
        report(std::string("a program cannot be loaded: ") + (why ? why : "?"));
        return INVALID_IMAGE;
    }
    auto bind = (void (*)(pt_host_state *))dlsym(l->handle, "pt_host_bind");
    if (!bind) return INVALID_IMAGE;
    bind(host_state());
    inspect(*l, (const char *)image);
    if (dlsym(l->handle, "pt_host_races"))
        l->image.assign((const char *)image, (const char *)image + n);
    state->counters.libraries++;
    *out = l.get();
    libraries[l.get()] = l;
    return OK;
}

// "file.cuh:12" by addr2line; an address in the program where there is none.
std::string line_of(const Library &l, const void *pc) {
    char path[] = "/tmp/standin-XXXXXX", text[64], line[512] = "";
    snprintf(text, sizeof text, "%#zx", (size_t)((const char *)pc - l.base));
    const int fd = mkstemp(path);
    if (fd < 0) return text;
    if (write_all(fd, l.image.data(), l.image.size()))
        if (FILE *f = popen(
                (std::string("addr2line -e ") + path + " " + text + " 2>/dev/null").c_str(), "r")) {
            if (!fgets(line, sizeof line, f)) line[0] = 0;
            pclose(f);
        }
    close(fd);
    unlink(path);
    line[strcspn(line, " \n")] = 0;
    const char *slash = strrchr(line, '/');
    return line[0] && line[0] != '?' ? slash ? slash + 1 : line : text;
}

int kernel_of(void **out, void *library, const char *name) {
    auto found = libraries.find(library);
    if (found == libraries.end()) return INVALID_HANDLE;
    if (!out || !name) return INVALID_VALUE;
    Library &l = *found->second;
    std::unique_ptr<Kernel> &k = l.kernels[name];
    if (!k) {
        if (!std::binary_search(l.names.begin(), l.names.end(), std::string(name))) {
            l.kernels.erase(name);
            return NOT_FOUND;
        }
        auto number = [&](const char *what) {
            auto f = (int (*)())dlsym(l.handle, (std::string(name) + what).c_str());
            return f ? f() : 0;
        };
        k.reset(new Kernel{&l, name, (void (*)(const void *))dlsym(l.handle, name),
                           number("_threads"), number("_barriers"), number("_size")});
        kernels.insert(k.get());
    }
    *out = k.get();
    return OK;
}

int unload(void *library, std::unique_lock<std::mutex> &lock) {
    auto found = libraries.find(library);
    if (found == libraries.end()) return INVALID_HANDLE;
    for (int i = 0; i < state->devices; i++) finish(&state->device[i].context, lock);
    for (auto &k : found->second->kernels) kernels.erase(k.second.get());
    libraries.erase(library);
    return OK;
}

struct Shape {
    unsigned gx, gy, gz, bx, by, bz, shared;
};

int launch(Call &call, void *function, const Shape &s, void *handle, void **parameters,
           void **extra) {
    if (!kernels.count(function)) return INVALID_HANDLE;
    const Kernel *k = (Kernel *)function;
    StreamRef stream = stream_of(handle, call.context);
    if (!stream || stream->context != call.context) return INVALID_HANDLE;
    if (!s.gx || !s.gy || !s.gz || !s.bx || !s.by || !s.bz) return INVALID_VALUE;
    if (s.gx > 0x7fffffffu || s.gy > 65535 || s.gz > 65535 || s.bx > 1024 || s.by > 1024 ||
        s.bz > 64)
        return INVALID_VALUE;
    if (s.bx * s.by * s.bz > (unsigned)k->threads || s.bx * s.by * s.bz > 1024)
        return INVALID_VALUE;
    if (s.shared > (unsigned)k->dynamic_limit) return INVALID_VALUE;
    const char *source = nullptr;
    if (parameters) {
        source = (const char *)parameters[0];
    } else if (extra) {
        for (int i = 0; extra[i]; i += 2)
            if (extra[i] == (void *)1) source = (const char *)extra[i + 1];
    }
    if (k->bytes && !source) return INVALID_VALUE;
    state->counters.launches++;
    uint64_t &blocks = state->blocks[k->name];
    blocks = std::max(blocks, (uint64_t)s.gx * s.gy * s.gz);
    if (state->idle) return OK;
    // Aligned as a struct of 16-byte vectors may be.
    const size_t words = ((size_t)k->bytes + 63) / 64 * 8 + 8;
    std::shared_ptr<uint64_t> room(new uint64_t[words], std::default_delete<uint64_t[]>());
    char *args = (char *)(((uintptr_t)room.get() + 63) & ~(uintptr_t)63);
    memcpy(args, source, (size_t)k->bytes);
    std::shared_ptr<Library> library = libraries[k->library];
    Work work;
    work.run = [=] {
        Launch l = {k->name.c_str(),
                    k->entry,
                    args,
                    dim3(s.gx, s.gy, s.gz),
                    dim3(s.bx, s.by, s.bz),
                    s.shared,
                    k->barriers != 0,
                    library->statics,
                    library->static_bytes,
                    !library->image.empty(),
                    library->base,
                    [&library](const void *pc) { return line_of(*library, pc); }};
        (void)room;
        return run_kernel(l);
    };
    enqueue(stream, std::move(work));
    state->launched[k->name]++;
    after_enqueue(call.lock);
    return OK;
}

}  // namespace

void drop_libraries() {
    kernels.clear();
    libraries.clear();
}

STANDIN_API int cuLibraryLoadData(void **out, const void *image, int *, void **, unsigned, int *,
                                  void **, unsigned) {
    STANDIN_CALL("cuLibraryLoadData", INITIALISED);
    return load(out, image);
}
STANDIN_API int cuLibraryUnload(void *library) {
    STANDIN_CALL("cuLibraryUnload", INITIALISED);
    return unload(library, call.lock);
}
STANDIN_API int cuLibraryGetKernel(void **out, void *library, const char *name) {
    STANDIN_CALL("cuLibraryGetKernel", INITIALISED);
    return kernel_of(out, library, name);
}
STANDIN_API int cuLibraryGetKernelCount(unsigned *n, void *library) {
    STANDIN_CALL("cuLibraryGetKernelCount", INITIALISED);
    auto found = libraries.find(library);
    if (found == libraries.end()) return INVALID_HANDLE;
    *n = (unsigned)found->second->names.size();
    return OK;
}
STANDIN_API int cuLibraryEnumerateKernels(void **out, unsigned n, void *library) {
    STANDIN_CALL("cuLibraryEnumerateKernels", INITIALISED);
    auto found = libraries.find(library);
    if (found == libraries.end()) return INVALID_HANDLE;
    const std::vector<std::string> names = found->second->names;
    for (unsigned i = 0; i < n && i < names.size(); i++)
        kernel_of(&out[i], library, names[i].c_str());
    return OK;
}
STANDIN_API int cuModuleLoadData(void **out, const void *image) {
    STANDIN_CALL("cuModuleLoadData", CONTEXT);
    return load(out, image);
}
STANDIN_API int cuModuleLoadDataEx(void **out, const void *image, unsigned, int *, void **) {
    return cuModuleLoadData(out, image);
}
STANDIN_API int cuModuleUnload(void *library) {
    STANDIN_CALL("cuModuleUnload", CONTEXT);
    return unload(library, call.lock);
}
STANDIN_API int cuModuleGetFunction(void **out, void *library, const char *name) {
    STANDIN_CALL("cuModuleGetFunction", CONTEXT);
    return kernel_of(out, library, name);
}
// A kernel's handle serves as that of its function on every device.
STANDIN_API int cuKernelGetFunction(void **out, void *kernel) {
    STANDIN_CALL("cuKernelGetFunction", CONTEXT);
    if (!kernels.count(kernel)) return INVALID_HANDLE;
    *out = kernel;
    return OK;
}
STANDIN_API int cuKernelGetName(const char **name, void *kernel) {
    STANDIN_CALL("cuKernelGetName", INITIALISED);
    if (!kernels.count(kernel)) return INVALID_HANDLE;
    *name = ((Kernel *)kernel)->name.c_str();
    return OK;
}
STANDIN_API int cuFuncGetName(const char **name, void *function) {
    return cuKernelGetName(name, function);
}

STANDIN_API int cuFuncGetAttribute(int *value, int attribute, void *function) {
    STANDIN_CALL("cuFuncGetAttribute", CONTEXT);
    if (!kernels.count(function)) return INVALID_HANDLE;
    if (!value) return INVALID_VALUE;
    const Kernel *k = (Kernel *)function;
    switch (attribute) {
    case 0: *value = k->threads; return OK;
    case 1: *value = k->barriers ? (int)k->library->static_bytes : 0; return OK;
    case 2: case 3: case 7: *value = 0; return OK;
    case 4: *value = 32; return OK;
    case 5: case 6: *value = 90; return OK;
    case 8: *value = k->dynamic_limit; return OK;
    case 9: *value = -1; return OK;
    default: return INVALID_VALUE;
    }
}

STANDIN_API int cuFuncSetAttribute(void *function, int attribute, int value) {
    STANDIN_CALL("cuFuncSetAttribute", CONTEXT);
    if (!kernels.count(function)) return INVALID_HANDLE;
    Kernel *k = (Kernel *)function;
    if (attribute == 9) return OK;
    if (attribute != 8 || value < 0 || value > 232448) return INVALID_VALUE;
    k->dynamic_limit = value;
    return OK;
}
STANDIN_API int cuKernelGetAttribute(int *value, int attribute, void *kernel, int) {
    return cuFuncGetAttribute(value, attribute, kernel);
}
STANDIN_API int cuKernelSetAttribute(int attribute, int value, void *kernel, int) {
    return cuFuncSetAttribute(kernel, attribute, value);
}
STANDIN_API int cuFuncSetCacheConfig(void *, int) { return OK; }
STANDIN_API int cuFuncLoad(void *) { return OK; }

STANDIN_API int cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, void *function,
                                                            int threads, size_t shared) {
    STANDIN_CALL("cuOccupancyMaxActiveBlocksPerMultiprocessor", CONTEXT);
    if (!kernels.count(function)) return INVALID_HANDLE;
    if (!blocks || threads <= 0) return INVALID_VALUE;
    const Kernel *k = (Kernel *)function;
    int n = std::min(32, 2048 / ((threads + 31) / 32 * 32));
    if (shared) n = std::min(n, (int)(233472 / (shared + 1024)));
    *blocks = threads > k->threads || shared > (size_t)k->dynamic_limit ? 0 : n;
    return OK;
}
STANDIN_API int cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks, void *function,
                                                                     int threads, size_t shared,
                                                                     unsigned) {
    return cuOccupancyMaxActiveBlocksPerMultiprocessor(blocks, function, threads, shared);
}
STANDIN_API int cuOccupancyMaxPotentialBlockSize(int *grid, int *block, void *function,
                                                 size_t (*)(int), size_t shared, int limit) {
    int n = 0, status;
    {
        STANDIN_CALL("cuOccupancyMaxPotentialBlockSize", CONTEXT);
        if (!kernels.count(function)) return INVALID_HANDLE;
        *block = ((Kernel *)function)->threads;
        if (limit > 0) *block = std::min(*block, limit);
    }
    status = cuOccupancyMaxActiveBlocksPerMultiprocessor(&n, function, *block, shared);
    *grid = n * 132;
    return status;
}

STANDIN_API int cuLaunchKernel(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                               unsigned by, unsigned bz, unsigned shared, void *stream,
                               void **parameters, void **extra) {
    STANDIN_CALL("cuLaunchKernel", CONTEXT);
    return launch(call, function, Shape{gx, gy, gz, bx, by, bz, shared}, stream, parameters, extra);
}
STANDIN_API int cuLaunchCooperativeKernel(void *function, unsigned gx, unsigned gy, unsigned gz,
                                          unsigned bx, unsigned by, unsigned bz, unsigned shared,
                                          void *stream, void **parameters) {
    STANDIN_CALL("cuLaunchKernel", CONTEXT);
    return launch(call, function, Shape{gx, gy, gz, bx, by, bz, shared}, stream, parameters,
                  nullptr);
}

struct LaunchConfig {           // CUlaunchConfig; its attributes are hints here
    unsigned gx, gy, gz, bx, by, bz, shared;
    void *stream;
    void *attributes;
    unsigned attribute_count;
};
STANDIN_API int cuLaunchKernelEx(const LaunchConfig *c, void *function, void **parameters,
                                 void **extra) {
    STANDIN_CALL("cuLaunchKernel", CONTEXT);
    if (!c) return INVALID_VALUE;
    return launch(call, function, Shape{c->gx, c->gy, c->gz, c->bx, c->by, c->bz, c->shared},
                  c->stream, parameters, extra);
}

}  // namespace standin
