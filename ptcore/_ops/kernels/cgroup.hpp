/* The cgroups that limit this process, of Linux; version 1 or 2. */
#ifndef PTCORE_CGROUP_HPP
#define PTCORE_CGROUP_HPP
#if defined(__linux__)
#include <stdio.h>
#include <string.h>

#ifndef PT_CGROUP_ROOT
#define PT_CGROUP_ROOT "/sys/fs/cgroup"
#define PT_CGROUP_OF_PROCESS "/proc/self/cgroup"
#endif

namespace {

/* Whether the first line of a file of a cgroup's folder has been read into `line`. */
inline bool read_cgroup(const char *folder, const char *file, char *line, int size) {
    char path[4352];
    snprintf(path, sizeof path, "%s/%s", folder, file);
    FILE *f = fopen(path, "r");
    if (!f) return false;
    const bool ok = fgets(line, size, f) != nullptr;
    fclose(f);
    return ok;
}

/* Whether a comma-separated list has the word. */
inline bool lists(const char *list, const char *word) {
    const size_t n = strlen(word);
    for (const char *c = list; c; c = strchr(c, ',') ? strchr(c, ',') + 1 : nullptr)
        if (strncmp(c, word, n) == 0 && (c[n] == 0 || c[n] == ',')) return true;
    return false;
}

/* Calls f(folder) for every cgroup of a controller, such as "cpu" or "memory", from the process's
 * own up to the root (in a container: its own root); for some of them more than once. */
template <class F> inline void each_cgroup(const char *controller, F f) {
    char line[2048], folder[4096], first[256];
    snprintf(first, sizeof first, "%s/%s", PT_CGROUP_ROOT, controller);
    f(PT_CGROUP_ROOT);
    f(static_cast<const char *>(first));
    FILE *file = fopen(PT_CGROUP_OF_PROCESS, "r");
    if (!file) return;
    while (fgets(line, sizeof line, file)) {            /* number:controllers:path */
        line[strcspn(line, "\n")] = 0;
        char *controllers = strchr(line, ':'),
             *group = controllers ? strchr(controllers + 1, ':') : nullptr;
        if (!group) continue;
        *group++ = 0;
        controllers++;
        if (*controllers && !lists(controllers, controller)) continue;
        for (;;) {
            snprintf(folder, sizeof folder, "%s%s",
                     *controllers ? static_cast<const char *>(first) : PT_CGROUP_ROOT, group);
            f(static_cast<const char *>(folder));
            char *slash = strrchr(group, '/');
            if (!slash || slash == group) break;
            *slash = 0;
        }
    }
    fclose(file);
}

}  /* namespace */
#endif
#endif
