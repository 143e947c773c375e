/* What the parts of the simulated libnvidia-ml.so.1 share. Names of types and functions are NVML's own. */

#ifndef TESSERA_SIM_NVML_H
#define TESSERA_SIM_NVML_H

#include "machine.h"

#define API __attribute__((visibility("default")))

typedef enum {
    SUCCESS = 0,
    UNINITIALIZED = 1,
    INVALID_ARGUMENT = 2,
    NOT_SUPPORTED = 3,
    NOT_FOUND = 6,
    INSUFFICIENT_SIZE = 7,
    DRIVER_NOT_LOADED = 9,
    TIMEOUT = 10,
    UNKNOWN = 999,
} nvmlReturn_t;

typedef const card_t *nvmlDevice_t;

/* Whether the library may be asked, about this card and with somewhere to put the answer. */
nvmlReturn_t check(nvmlDevice_t device, const void *out);
nvmlReturn_t check_begun(void);

#endif
