/* How a graph is to be made ready, as both drivers know it: the one that is simulated, and what stands before a real one. */

#ifndef TESSERA_GRAPH_TYPES_H
#define TESSERA_GRAPH_TYPES_H

#define UPLOAD_WITH_IT 2ull

typedef struct {
    unsigned long long flags;
    void *upload;               /* the stream */
    void *failed;
    int result;
} CUDA_GRAPH_INSTANTIATE_PARAMS;

#endif
