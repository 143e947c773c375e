/* What launches take on the card, learnt from segments of them. A guess for a new one is never trusted with company:
   the gate measures it alone first. */
#include "compute.h"

#include <stddef.h>
#include <string.h>

#define PROBES 8
#define GUESS_NS 20000.0
#define LEAST_NS 100.0
#define FIRST_ONES 4            /* of which each counts much */
#define CREEP 1.01              /* how fast a cost rises while others use the card too */

/* Collectives wait on the card for ranks that may be kept off it; those must never wait here. */
static int is_collective(const void *what) {
    const char *name = NULL;
    int is_known = (real.cuFuncGetName && real.cuFuncGetName(&name, what) == CUDA_SUCCESS) ||
                   (real.cuKernelGetName && real.cuKernelGetName(&name, what) == CUDA_SUCCESS);
    if (!is_known || name == NULL)
        return 0;
    if (strncmp(name, "_Z", 2) == 0)    /* of C++: the length of the name comes first */
        name += 2 + strspn(name + 2, "0123456789");
    return strncmp(name, "nccl", 4) == 0;
}

cost_t *cost_of(gate_t *gate, launched_t kind, const void *what, uint64_t size) {
    uint64_t key = ((uint64_t)(uintptr_t)what ^ size * 0x9e3779b97f4a7c15u) * 0xff51afd7ed558ccdu;
    key = key ? key : 1;
    for (unsigned int probe = 0; probe < PROBES; probe++) {
        cost_t *cost = &gate->costs[((key >> 40) + probe) & (COST_ROOM - 1)];
        if (cost->key == key)
            return cost;
        if (cost->key == 0) {
            *cost = (cost_t){.key = key, .ns = GUESS_NS};
            cost->is_collective = kind == A_KERNEL && is_collective(what);
            return cost;
        }
    }
    if (gate->other_costs.key == 0)
        gate->other_costs = (cost_t){.key = 1, .ns = GUESS_NS};
    return &gate->other_costs;
}

/* Of several kernels each is held to have its part in the error. What others disturbed can only be too long, so it is
   believed at once where it is shorter and hardly where it is longer. */
void costs_learn(const part_t *parts, int count, double ratio, int is_disturbed) {
    for (int one = 0; one < count; one++) {
        cost_t *cost = parts[one].cost;
        double weight = cost->seen < FIRST_ONES ? 1.0 / (cost->seen + 1) : 0.2;
        double found = cost->ns + weight * (parts[one].ns * ratio - cost->ns);
        if (is_disturbed && cost->seen && found > cost->ns * CREEP)
            found = cost->ns * CREEP;
        cost->ns = found > LEAST_NS ? found : LEAST_NS;
        cost->seen++;
        cost->is_awaited = 0;
    }
}
