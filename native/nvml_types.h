/* What NVML tells of use, as both libraries know it: the one that is simulated, and the one that stands before it. */

#ifndef TESSERA_NVML_TYPES_H
#define TESSERA_NVML_TYPES_H

typedef struct {
    unsigned long long total, free, used;
} nvmlMemory_t;

typedef struct {
    unsigned int version;
    unsigned long long total, reserved, free, used;
} nvmlMemory_v2_t;

typedef struct {
    unsigned int pid;
    unsigned long long used;
    unsigned int gpu_instance, compute_instance;
} nvmlProcessInfo_t;

typedef struct {
    unsigned int pid;
    unsigned long long used;
} nvmlProcessInfo_v1_t;

typedef struct {
    unsigned int gpu, memory;
} nvmlUtilization_t;

typedef struct {
    unsigned int pid;
    unsigned long long at_us;
    unsigned int processors, memory, encoder, decoder;
} nvmlProcessUtilizationSample_t;

#endif
