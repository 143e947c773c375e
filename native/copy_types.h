/* Copies of planes and boxes, as both drivers know them: the one that is simulated, and what stands before a real one. */

#ifndef TESSERA_COPY_TYPES_H
#define TESSERA_COPY_TYPES_H

#include <stddef.h>

enum { MEMORY_OF_HOST = 1, MEMORY_OF_CARD, MEMORY_IN_ARRAY, MEMORY_ANYWHERE };

typedef struct {
    size_t x, y;
    int memory;
    void *host;
    unsigned long long device;
    void *array;
    size_t pitch;
} copy_plane_t;

typedef struct {
    copy_plane_t from, to;
    size_t width, height;
} CUDA_MEMCPY2D;

typedef struct {
    size_t x, y, z, level;
    int memory;
    void *host;
    unsigned long long device;
    void *array, *reserved;
    size_t pitch, height;
} copy_box_t;

typedef struct {
    copy_box_t from, to;
    size_t width, height, depth;
} CUDA_MEMCPY3D;

#endif
