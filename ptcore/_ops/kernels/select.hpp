// Choosing an ISA level at import: the best level that both the build and the CPU have, or the
// level named by PTCORE_CPU_CAPABILITY (base, v3, v4), but never more than the CPU has.
#pragma once
#include <cstring>

#include "plan/chain.h"
#include "plan/plan.h"
#include "cpu.hpp"
#include "select.h"

struct pt_loop_family {
    const pt_elementwise *entries;
    const int *ids;
};
struct pt_level {
    const char *name;
    const pt_loop_family *loops;
    const pt_kernel_entry *const *kernels;
    const pt_loop (*casts)[PT_NDTYPES];
    const pt_chain_table *chains;
};

static const char *chosen_level = "base";
static int built_levels = 0;

static inline bool cpu_has(const char *name) {
    if (std::strcmp(name, "base") == 0) return true;
    static const int level = pt_cpu::level();
    return level >= (std::strcmp(name, "v3") == 0 ? 3 : 4);
}

static inline void merge(pt_elementwise *into, const pt_elementwise *from) {
    into->name = from->name;
    into->nin = from->nin;
    into->cost = from->cost;
    into->powers = from->powers;
    for (int d = 0; d < PT_NDTYPES; d++) {
        if (from->loop[d]) into->loop[d] = from->loop[d];
        if (from->vs[d]) into->vs[d] = from->vs[d];
        if (from->sv[d]) into->sv[d] = from->sv[d];
    }
}

// Levels are listed in rising order; the entries of a higher level replace those of a lower one.
static int select_level(const pt_level *levels, pt_elementwise *merged, const char *wanted,
                        pt_enter_kernels enter) {
    while (levels[built_levels].name) built_levels++;
    for (const pt_level *level = levels; level->name; level++) {
        if (!cpu_has(level->name)) break;
        for (const pt_loop_family *f = level->loops; f->entries; f++)
            for (int k = 0; f->entries[k].name; k++) merge(&merged[f->ids[k]], &f->entries[k]);
        for (int k = 0; level->kernels[k]; k++) {
            if (enter(level->kernels[k], 0) < 0) return -1;
            pt_plan_meet(level->kernels[k]);
        }
        pt_casts = level->casts;
        pt_chains = level->chains;
        chosen_level = level->name;
        if (wanted && std::strcmp(wanted, level->name) == 0) break;
    }
    return 0;
}

// The tables of kernels compiled at one level, which the CPU may
// lack; NULL for an unknown level.
static inline const pt_kernel_entry *const *kernels_of(const pt_level *levels, const char *name) {
    for (; levels->name; levels++)
        if (std::strcmp(levels->name, name) == 0) return levels->kernels;
    return nullptr;
}

extern "C" const char *pt_chosen_level(void) { return chosen_level; }
extern "C" int pt_built_levels(void) { return built_levels; }
