/* Modules and libraries: programs for the card, as PTX text. Every entry in the text is a kernel, known by its name. A
   module takes memory that no allocation shows, as on a card. */
#define _GNU_SOURCE
#include "cuda_modules.h"
#include "cuda_graphs.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MODULE_BYTES ((uint64_t)2 << 20)
#define ELF_MAGIC "\177ELF"
#define FATBIN_MAGIC 0xBA55ED50u
#define ENTRY ".entry"
#define LARGEST_FILE ((size_t)16 << 20)
#define MOST_THREADS_PER_BLOCK 1024
#define THREADS_PER_MULTIPROCESSOR 2048
#define REGISTERS 32

struct module {
    const card_t *card;
    CUcontext context;
    CUfunction functions;
};

static void free_module(CUmodule module) {
    while (module->functions) {
        CUfunction function = module->functions;
        module->functions = function->next;
        function->magic = 0;
        free(function->name);
        free(function);
    }
    free(module);
}

static int begins_with(const char *text, const char *beginning) {
    return strncmp(text, beginning, strlen(beginning)) == 0;
}

static int add_function(CUmodule module, const char *name, size_t length) {
    CUfunction function = calloc(1, sizeof *function);
    if (function == NULL || (function->name = strndup(name, length)) == NULL) {
        free(function);
        return -1;
    }
    function->magic = FUNCTION_MAGIC;
    function->module = module;
    function->nature = begins_with(name, "spin") ? SPIN : begins_with(name, "trap") ? TRAP : ORDINARY;
    function->next = module->functions;
    module->functions = function;
    return 0;
}

static int is_of_name(char letter) {
    return isalnum((unsigned char)letter) || letter == '_' || letter == '$';
}

/* Comments are passed over, because they may mention anything. */
static int read_functions(CUmodule module, const char *text) {
    while (*text) {
        if (begins_with(text, "//")) {
            text += strcspn(text, "\n");
        } else if (begins_with(text, "/*")) {
            const char *end = strstr(text, "*/");
            text = end ? end : text + strlen(text) - 1;
        } else if (begins_with(text, ENTRY)) {
            const char *name = text + strlen(ENTRY);
            size_t length = 0;
            while (isspace((unsigned char)*name))
                name++;
            while (is_of_name(name[length]))
                length++;
            if (add_function(module, name, length))
                return -1;
            text = name + length - 1;
        }
        text++;
    }
    return 0;
}

/* What a card would run must be PTX here: nobody could say what a binary has in it. */
static CUresult check_image(const char *image) {
    uint32_t magic;
    if (image == NULL)
        return INVALID_VALUE;
    if (begins_with(image, ELF_MAGIC))
        return NO_BINARY_FOR_GPU;
    if (strlen(image) >= sizeof magic) {
        memcpy(&magic, image, sizeof magic);
        if (magic == FATBIN_MAGIC)
            return NO_BINARY_FOR_GPU;
    }
    return strstr(image, ".version") ? SUCCESS : INVALID_IMAGE;
}

API CUresult cuModuleLoadData(CUmodule *module, const void *image) {
    CUcontext context;
    CUresult result = check_context(&context);
    if (result == SUCCESS)
        result = module ? check_image(image) : INVALID_VALUE;
    if (result != SUCCESS)
        return result;
    CUmodule made = calloc(1, sizeof *made);
    if (made == NULL)
        return OUT_OF_MEMORY;
    made->card = context->card;
    made->context = context;
    if (read_functions(made, image) || machine_take(made->card, MODULE_BYTES)) {
        free_module(made);
        return OUT_OF_MEMORY;
    }
    *module = made;
    return SUCCESS;
}

API CUresult cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned int count, int *options, void **values) {
    (void)count, (void)options, (void)values;
    return cuModuleLoadData(module, image);
}

API CUresult cuModuleLoadFatBinary(CUmodule *module, const void *image) {
    (void)module, (void)image;
    return NO_BINARY_FOR_GPU;
}

API CUresult cuModuleLoad(CUmodule *module, const char *path) {
    FILE *file = path ? fopen(path, "re") : NULL;
    char *image = file ? calloc(1, LARGEST_FILE) : NULL;
    CUresult result = file ? OUT_OF_MEMORY : FILE_NOT_FOUND;
    if (image && fread(image, 1, LARGEST_FILE - 1, file) > 0)
        result = cuModuleLoadData(module, image);
    free(image);
    if (file)
        fclose(file);
    return result;
}

API CUresult cuModuleUnload(CUmodule module) {
    if (module == NULL)
        return INVALID_HANDLE;
    CUresult result = check_unsafe();
    if (result != SUCCESS)
        return result;
    machine_give_back(module->card, MODULE_BYTES);
    free_module(module);
    return SUCCESS;
}

API CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name) {
    if (function == NULL || module == NULL || name == NULL)
        return module || function == NULL || name == NULL ? INVALID_VALUE : INVALID_HANDLE;
    if (module->context->fault != SUCCESS)
        return module->context->fault;
    for (CUfunction one = module->functions; one; one = one->next)
        if (strcmp(one->name, name) == 0) {
            *function = one;
            return SUCCESS;
        }
    return NOT_FOUND;
}

/* ---- libraries: modules of no context in particular; here they are loaded at once ----------------------------- */

API CUresult cuLibraryLoadData(CUmodule *library, const void *code, int *options, void **values, unsigned int count,
                               int *library_options, void **library_values, unsigned int library_count) {
    (void)options, (void)values, (void)count, (void)library_options, (void)library_values, (void)library_count;
    return cuModuleLoadData(library, code);
}

API CUresult cuLibraryLoadFromFile(CUmodule *library, const char *path, int *options, void **values, unsigned int count,
                                   int *library_options, void **library_values, unsigned int library_count) {
    (void)options, (void)values, (void)count, (void)library_options, (void)library_values, (void)library_count;
    return cuModuleLoad(library, path);
}

API CUresult cuLibraryUnload(CUmodule library) {
    return cuModuleUnload(library);
}

API CUresult cuLibraryGetKernel(CUfunction *kernel, CUmodule library, const char *name) {
    return cuModuleGetFunction(kernel, library, name);
}

API CUresult cuLibraryGetModule(CUmodule *module, CUmodule library) {
    if (module == NULL || library == NULL)
        return INVALID_VALUE;
    *module = library;
    return SUCCESS;
}

static int is_function(CUfunction function) {
    return function && function->magic == FUNCTION_MAGIC;
}

API CUresult cuKernelGetFunction(CUfunction *function, CUfunction kernel) {
    if (function == NULL || !is_function(kernel))
        return function ? INVALID_HANDLE : INVALID_VALUE;
    *function = kernel;
    return SUCCESS;
}

/* ---- functions ------------------------------------------------------------------------------------------------ */

API CUresult cuFuncGetName(const char **name, CUfunction function) {
    if (name == NULL || !is_function(function))
        return INVALID_VALUE;
    *name = function->name;
    return SUCCESS;
}

API CUresult cuKernelGetName(const char **name, CUfunction kernel) {
    return cuFuncGetName(name, kernel);
}

API CUresult cuFuncGetModule(CUmodule *module, CUfunction function) {
    if (module == NULL || !is_function(function))
        return INVALID_VALUE;
    *module = function->module;
    return SUCCESS;
}

API CUresult cuFuncGetAttribute(int *value, int attribute, CUfunction function) {
    if (value == NULL || !is_function(function))
        return INVALID_VALUE;
    *value = attribute == 0 ? MOST_THREADS_PER_BLOCK : attribute == 4 ? REGISTERS : 0;
    return SUCCESS;
}

API CUresult cuFuncSetAttribute(CUfunction function, int attribute, int value) {
    (void)attribute, (void)value;
    return is_function(function) ? SUCCESS : INVALID_HANDLE;
}

API CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, CUfunction function, int threads, size_t shared) {
    (void)shared;
    if (blocks == NULL || !is_function(function) || threads <= 0)
        return INVALID_VALUE;
    *blocks = threads > MOST_THREADS_PER_BLOCK ? 0 : THREADS_PER_MULTIPROCESSOR / threads > 32
                                                         ? 32
                                                         : THREADS_PER_MULTIPROCESSOR / threads;
    return SUCCESS;
}
