/* What the parts that keep a container to its share of memory share with each other.

   Whatever takes memory is charged first (memory.c) and remembered by its address or handle (blocks.c). What the driver
   takes by itself is found and charged too (upkeep.c). What is over the limit is refused, or lies in the host's memory
   where the tile may have that. */

#ifndef TESSERA_MEMORY_H
#define TESSERA_MEMORY_H

#include "tessera.h"

/* ---- blocks.c: what this process has, in constant time ---- */

typedef enum { POINTER, ARRAY, HANDLE, MAPPING, CONTEXT, SPILLED } kind_t;

/* `owner` is the context that a block dies with, or the handle behind a mapping. */
typedef struct {
    uint64_t key, bytes, owner;
    uint32_t uses;
    int8_t card;
    uint8_t kind;
    uint8_t is_exported;        /* another process may have it, too */
} block_t;

/* One in use once, by this process alone. */
static inline block_t block_of(uint64_t key, uint64_t bytes, uint64_t owner, int card, kind_t kind) {
    return (block_t){.key = key, .bytes = bytes, .owner = owner, .uses = 1, .card = (int8_t)card, .kind = (uint8_t)kind};
}

/* Returns 0, or -1 where there is no memory to remember it. */
int blocks_put(block_t block);

/* One use less. Returns 1 when it was the last: the block is forgotten and written to `block`, with the one use that it
   needs to be put back. Otherwise 0. */
int blocks_drop(kind_t kind, uint64_t key, block_t *block);

/* One use more. Returns 0 if there is no such block. */
int blocks_hold(kind_t kind, uint64_t key);

/* Whether there is such a block or not. */
void blocks_mark_exported(kind_t kind, uint64_t key);

/* Forget all blocks of the owner, except its own, and call `gone` with each. */
void blocks_forget_owned(uint64_t owner, void (*gone)(const block_t *));
void blocks_forget_all(void);

/* ---- memory.c ---- */

/* Charge pages of the card, after what pools do not use was let go of. Returns 0, or CUDA_ERROR_OUT_OF_MEMORY with
   nothing charged. */
CUresult reserve_pages(int card, uint64_t bytes);

/* The same, where there is another way: returns -1 and no refusal is counted. */
int try_reserve_pages(int card, uint64_t bytes);

/* Give back what a block was charged with. */
void give_back_block(int card, uint64_t bytes);

/* An allocation: charged before the driver is asked (0, or CUDA_ERROR_OUT_OF_MEMORY and nothing charged), and
   remembered under its key or given back when the driver has answered. Both return the code for the program. */
typedef struct {
    int card;
    uint64_t bytes;
    int is_refused, is_spilled;
} charge_t;
CUresult begin_charge(charge_t *charge, int card, uint64_t bytes);
CUresult end_charge(const charge_t *charge, CUresult result, kind_t kind, uint64_t key);

/* A free, of a block that was dropped before the driver was asked, because another thread may get the address at once.
   Gives it back, or remembers it again where the driver refused. Returns the driver's code. */
CUresult end_free(int was_known, const block_t *block, CUresult result);
void forget_small_blocks(void);

/* ---- pools.c ---- */

/* Let go of what the pools and graphs of this process keep unused, and count what streams have freed. Returns whether
   anything came back. */
int trim_pools(int card);

/* Count again what pools and graphs have, because the driver lets go by itself. */
void settle_pools(int card);
void forget_pools(void);

/* ---- leaving.c ---- */

/* As end_free, where the stream frees the block when it has come so far. */
CUresult end_free_in(CUstream stream, int was_known, const block_t *block, CUresult result);

/* Give back what streams have freed by now. Returns how many blocks that were. */
int settle_leaving(int card);
void bury_leaving(CUcontext context);
void forget_leaving(void);

/* ---- graph_needs.c ---- */

/* What a graph needs of a card: all that its nodes allocate, and the most of that at once. */
typedef struct {
    CUdevice device;
    uint64_t sum, most, now;
} graph_need_t;

/* Returns of how many cards; at most `room` of them are written. */
int count_graph_needs(CUgraph graph, graph_need_t *needs, int room);

/* ---- graph_memory.c ---- */

/* Around a launch of the graph or an upload. The first returns 0, or CUDA_ERROR_OUT_OF_MEMORY where the memory of its
   nodes would go over the limit; the second returns the driver's code. */
CUresult begin_graph_launch(CUgraphExec graph);
CUresult end_graph_launch(CUgraphExec graph, CUresult result);

int trim_graph_memory(int card);
void settle_graph_memory(int card);
void forget_graph_memory(void);

/* ---- spill.c ---- */

/* Memory of the host in place of the card's. Returns 0, or CUDA_ERROR_OUT_OF_MEMORY where the tile may not have it. */
CUresult spill(CUdeviceptr *pointer, int card, uint64_t bytes);

/* Returns 1 where the address is the host's memory, which is forgotten and must be freed as `block`. */
int drop_spilled(CUdeviceptr pointer, block_t *block);
CUresult free_spilled(const block_t *block);
CUresult free_spilled_after(const block_t *block, CUstream stream);

/* What stands in the region for the host's part of the card. */
int card_of_spill(int card);
void forget_spilled(void);

/* ---- exports.c ---- */

/* Of memory by handle that nothing here uses any more: its charge stays as long as a file of it is open. */
void give_back_handle(const block_t *block);

/* Give back what was charged for files that are closed by now. Returns how many blocks that were. */
int settle_exports(void);

/* Memory that was charged for its file alone is in use again, by this handle. Returns whether it was. */
int take_back_exported(int descriptor, CUmemGenericAllocationHandle handle);
void forget_exports(void);

/* ---- refusal.c ---- */

/* Count it, and end the container where the tile says so. Returns CUDA_ERROR_OUT_OF_MEMORY. */
CUresult refuse(int card, uint64_t bytes);

/* ---- upkeep.c: what the driver takes for itself ---- */

/* Before an allocation and before anybody is told: compare with what NVML says, if that is due. */
void upkeep_keep_up(int card, uint64_t limit);

/* The driver may just have taken something: the next request looks. */
void upkeep_expect_growth(int card);

/* Before a refusal. Returns 0 where it was done just now. */
int upkeep_look_again(int card);

/* What was left of the limit after the last allocation. */
void upkeep_note_left(int card, uint64_t left);

/* A context of the card has come, or gone; whether there is one that was seen to come. */
void upkeep_begin(int card);
void upkeep_end(int card);
int upkeep_has_context(int card);

/* Before code is loaded. Returns 0, or CUDA_ERROR_OUT_OF_MEMORY where there is no room for any. */
CUresult upkeep_begin_code(int card);

/* Before the heap of kernels gets a size, of which the driver takes nothing yet. As the former; `before` is its size. */
CUresult upkeep_promise(int card, uint64_t bytes, uint64_t *before);

/* After code was loaded: it is looked what that took, before the next allocation at the latest. */
void upkeep_end_code(int card);

/* Memory that is charged, and that nobody can be asked about any more: it is found out when it is gone. */
void upkeep_take_over(int card, uint64_t bytes);

/* Memory of another process was let go of, which this one may have been charged with. */
void upkeep_end_import(int card);

/* Memory is paid for that may not be there. */
void upkeep_doubt(int card);
void forget_upkeep(void);

/* ---- utilisation.c ---- */

void forget_utilisation(void);

/* ---- contexts.c ---- */

/* Charge the calling thread's context, if nobody saw it come: before memory is taken in it, and before anybody is told. */
void adopt_context(int card);
void forget_contexts(void);

#endif
