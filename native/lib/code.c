/* Code of a program, and what its kernels have to themselves. The driver puts modules and libraries on the card when
   they are loaded, or when one of their kernels is launched for the first time, and takes memory for it that nobody
   asked for. */
#define _GNU_SOURCE
#include "memory.h"

#define HEAP_OF_KERNELS 2

static CUresult begin_code(int card) {
    adopt_context(card);
    return card == NO_CARD ? CUDA_SUCCESS : upkeep_begin_code(card);
}

static CUresult end_code(int card, CUresult result) {
    if (card != NO_CARD)
        upkeep_end_code(card);
    return result;
}

/* A program may give its kernels a heap. The driver takes it when a kernel needs it, and asks nobody then. */
CUresult cuCtxSetLimit(int which, size_t bytes) {
    int card = which == HEAP_OF_KERNELS ? current_card() : NO_CARD;
    uint64_t before = 0, given;
    adopt_context(card);
    CUresult result = card == NO_CARD ? CUDA_SUCCESS : upkeep_promise(card, bytes, &before);
    if (result != CUDA_SUCCESS)
        return result;
    result = CALL(cuCtxSetLimit, which, bytes);
    if (result != CUDA_SUCCESS && card != NO_CARD)
        upkeep_promise(card, before, &given);
    return result;
}

#define LOAD(name, parameters, ...)                                                                                    \
    CUresult name parameters {                                                                                         \
        int card = current_card();                                                                                     \
        CUresult result = begin_code(card);                                                                            \
        return result == CUDA_SUCCESS ? end_code(card, CALL(name, __VA_ARGS__)) : result;                              \
    }

LOAD(cuModuleLoad, (CUmodule *module, const char *path), module, path)
LOAD(cuModuleLoadData, (CUmodule *module, const void *image), module, image)
LOAD(cuModuleLoadDataEx, (CUmodule *module, const void *image, unsigned int count, int *options, void **values), module,
     image, count, options, values)
LOAD(cuModuleLoadFatBinary, (CUmodule *module, const void *image), module, image)
LOAD(cuLibraryLoadData,
     (CUlibrary *library, const void *code, int *jit, void **jit_values, unsigned int jit_count, int *options,
      void **values, unsigned int count),
     library, code, jit, jit_values, jit_count, options, values, count)
LOAD(cuLibraryLoadFromFile,
     (CUlibrary *library, const char *path, int *jit, void **jit_values, unsigned int jit_count, int *options,
      void **values, unsigned int count),
     library, path, jit, jit_values, jit_count, options, values, count)
