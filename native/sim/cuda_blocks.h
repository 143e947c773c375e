/* Blocks: device memory with an address. The address is space of this process, not backed until somebody copies into
   it, so that a card of 80 GB costs nothing to fill. What counts against the card is counted in `machine`. */

#ifndef TESSERA_SIM_CUDA_BLOCKS_H
#define TESSERA_SIM_CUDA_BLOCKS_H

#include "cuda_queue.h"

typedef enum { OF_CARD, MANAGED, OF_POOL, OF_GRAPH, IMPORTED } source_t;

typedef struct block {
    CUdeviceptr begin;
    size_t asked, mapped;
    source_t source;
    CUcontext context;
    CUmemoryPool pool;          /* if it is of one */
    const card_t *card;
    int file;                   /* that backs it, since it was shared; -1 before */
    int uses;                   /* of graphs that have it, if it is of one */
    int is_live;                /* as long as memory of a graph is allocated */
    struct block *next;
} block_t;

/* Memory of the context's card, charged by where it comes from: pages of the card, a pool, or nothing for what somebody
   else is charged with. Backed by the file, or by nothing yet where it is -1. */
CUresult make_block_of(source_t source, CUdeviceptr *pointer, size_t bytes, CUmemoryPool pool, int file);

/* With the driver locked, as the next one: the block that has the address, or NULL. */
block_t *find_block(CUdeviceptr address);

/* The end of a block, and of its address space. */
void remove_block(block_t *block);

/* At once, or when the stream has come so far. Memory of a graph may be allocated again by its next launch. */
CUresult free_block_at(CUdeviceptr pointer);
CUresult free_block_in(CUdeviceptr pointer, stream_t *stream);

/* Free everything that was allocated in the context; what came from pools stays. With the driver locked. */
void free_blocks_of(CUcontext context);

/* Whether all of it is in one block, or mapped. */
int is_device_memory(CUdeviceptr pointer, size_t bytes);
int is_mapped(CUdeviceptr pointer, size_t bytes);

/* ---- cuda_sharing.c ---- */

/* A file that lies in memory and vanishes with its last descriptor. Returns the descriptor, or -1. */
int make_memory_file(const char *name, size_t bytes);

/* ---- cuda_graph_memory.c: memory that graphs allocate when they run ---- */

/* Charge what the nodes of a graph allocate and free, in their order. Returns SUCCESS, or what stands in the way of a
   launch, with nothing charged. */
CUresult take_graph_memory(CUgraph graph, const card_t *card, int frees_first);

/* The memory that a launch would need is there from now on, and no node has run. */
CUresult back_graph_memory(CUgraph graph, const card_t *card);

/* With the driver locked: the block is not allocated any more. */
void end_graph_block(block_t *block);

/* A node that refers to the memory comes or goes. */
void hold_graph_block(CUdeviceptr pointer);
void drop_graph_block(CUdeviceptr pointer);

CUresult capture_alloc(stream_t *stream, CUdeviceptr *pointer, size_t bytes);
CUresult capture_free(stream_t *stream, CUdeviceptr pointer);
void forget_graph_memory(void);

#endif
