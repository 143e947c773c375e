/* Kernels: functions of modules, by their names. */

#ifndef TESSERA_SIM_CUDA_MODULES_H
#define TESSERA_SIM_CUDA_MODULES_H

#include "cuda.h"

typedef struct module *CUmodule;

/* `spin*` takes as many nanoseconds as its first parameter says; `trap*` is what no context outlives. */
struct function {
    uint32_t magic;
    enum { ORDINARY, SPIN, TRAP } nature;
    CUmodule module;
    char *name;
    struct function *next;
};

#define FUNCTION_MAGIC 0x66756e63
#define ORDINARY_NS 2000

#endif
