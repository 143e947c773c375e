/* Memory that graphs allocate and free themselves. Its address is known when the node is made; the memory is taken when
   the graph is launched, in large pieces, and kept for the next launch until it is trimmed. A driver calls all of that
   used. */
#define _GNU_SOURCE
#include "cuda_blocks.h"
#include "cuda_graphs.h"

#include <string.h>

#define ON_DEVICE 1
#define PIECE ((uint64_t)32 << 20)

enum { USED_NOW, USED_MOST, RESERVED_NOW, RESERVED_MOST, ATTRIBUTES };

typedef struct {
    struct {
        int type, handle_types;
        struct {
            int type, id;
        } location;
        char more[72];
    } pool;
    const void *access;
    size_t access_count, bytes;
    CUdeviceptr pointer;
} CUDA_MEM_ALLOC_NODE_PARAMS;

/* By the card's index; guarded by the driver's lock. */
static struct {
    uint64_t allocated;         /* by nodes that have run and whose memory was not freed */
    uint64_t reserved, most;
} memory[MACHINE_MOST_CARDS];

void forget_graph_memory(void) {
    memset(memory, 0, sizeof memory);
}

/* Small blocks share pieces. */
static uint64_t charged(const block_t *block) {
    return round_up(block->asked, block->asked > PIECE / 2 ? PIECE : PAGE);
}

void end_graph_block(block_t *block) {
    memory[block->card->index].allocated -= charged(block);
    block->is_live = 0;
    if (block->uses == 0)
        remove_block(block);
}

void hold_graph_block(CUdeviceptr pointer) {
    pthread_mutex_lock(&driver.mutex);
    block_t *block = find_block(pointer);
    if (block)
        block->uses++;
    pthread_mutex_unlock(&driver.mutex);
}

void drop_graph_block(CUdeviceptr pointer) {
    pthread_mutex_lock(&driver.mutex);
    block_t *block = find_block(pointer);
    if (block && --block->uses == 0 && !block->is_live)
        remove_block(block);
    pthread_mutex_unlock(&driver.mutex);
}

/* ---- launches ------------------------------------------------------------------------------------------------- */

/* What is allocated at most while the nodes run, and what is in the end. Fails where a node would allocate what is
   allocated already, or free what is not. */
static CUresult plan(CUgraph graph, uint64_t *most, uint64_t *rest, int frees_first) {
    for (CUgraphNode node = graph->first; node; node = node->next) {
        block_t *block = is_memory(node) ? find_block(node->pointer) : NULL;
        if (block == NULL)
            continue;
        if (node->type == FREE_NODE) {
            *rest -= charged(block);
            continue;
        }
        if (block->is_live && !frees_first)
            return INVALID_VALUE;
        *rest += block->is_live ? 0 : charged(block);
        *most = *rest > *most ? *rest : *most;
    }
    return SUCCESS;
}

static void carry_out(CUgraph graph) {
    for (CUgraphNode node = graph->first; node; node = node->next)
        if (is_memory(node) && find_block(node->pointer))
            find_block(node->pointer)->is_live = node->type == ALLOC_NODE;
}

/* With the driver's lock. Memory for so much at once is there from now on. */
static CUresult reserve(const card_t *card, uint64_t most) {
    int index = card->index;
    uint64_t wanted = round_up(most, PIECE);
    uint64_t more = wanted > memory[index].reserved ? wanted - memory[index].reserved : 0;
    if (more && machine_take(card, more))
        return OUT_OF_MEMORY;
    memory[index].reserved += more;
    if (memory[index].most < memory[index].reserved)
        memory[index].most = memory[index].reserved;
    return SUCCESS;
}

CUresult take_graph_memory(CUgraph graph, const card_t *card, int frees_first) {
    int index = card->index;
    pthread_mutex_lock(&driver.mutex);
    uint64_t most = memory[index].allocated, rest = most;
    CUresult result = plan(graph, &most, &rest, frees_first);
    if (result == SUCCESS)
        result = reserve(card, most);
    if (result == SUCCESS) {
        carry_out(graph);
        memory[index].allocated = rest;
    }
    pthread_mutex_unlock(&driver.mutex);
    return result;
}

CUresult back_graph_memory(CUgraph graph, const card_t *card) {
    pthread_mutex_lock(&driver.mutex);
    uint64_t most = memory[card->index].allocated, rest = most;
    plan(graph, &most, &rest, 1);
    CUresult result = reserve(card, most);
    pthread_mutex_unlock(&driver.mutex);
    return result;
}

/* ---- nodes ---------------------------------------------------------------------------------------------------- */

static CUresult add_alloc(CUgraph graph, CUgraphNode *made, CUdeviceptr *pointer, size_t bytes) {
    CUresult result = make_block_of(OF_GRAPH, pointer, bytes, NULL, -1);
    if (result != SUCCESS)
        return result;
    *made = graph_add(graph, &(struct graph_node){.type = ALLOC_NODE, .pointer = *pointer, .bytes = bytes});
    return *made ? SUCCESS : OUT_OF_MEMORY;
}

static int is_of_graph(CUdeviceptr pointer) {
    pthread_mutex_lock(&driver.mutex);
    const block_t *block = find_block(pointer);
    int is_of_one = block && block->begin == pointer && block->source == OF_GRAPH;
    pthread_mutex_unlock(&driver.mutex);
    return is_of_one;
}

API CUresult cuGraphAddMemAllocNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *after, size_t count,
                                    CUDA_MEM_ALLOC_NODE_PARAMS *wish) {
    (void)after, (void)count;
    if (node == NULL || graph == NULL || wish == NULL || wish->pool.location.type != ON_DEVICE)
        return INVALID_VALUE;
    return add_alloc(graph, node, &wish->pointer, wish->bytes);
}

API CUresult cuGraphAddMemFreeNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *after, size_t count,
                                   CUdeviceptr pointer) {
    (void)after, (void)count;
    if (node == NULL || graph == NULL || !is_of_graph(pointer))
        return INVALID_VALUE;
    *node = graph_add(graph, &(struct graph_node){.type = FREE_NODE, .pointer = pointer});
    return *node ? SUCCESS : OUT_OF_MEMORY;
}

API CUresult cuGraphMemAllocNodeGetParams(CUgraphNode node, CUDA_MEM_ALLOC_NODE_PARAMS *found) {
    if (node == NULL || node->type != ALLOC_NODE || found == NULL)
        return INVALID_VALUE;
    *found = (CUDA_MEM_ALLOC_NODE_PARAMS){.bytes = node->bytes, .pointer = node->pointer};
    return SUCCESS;
}

API CUresult cuGraphMemFreeNodeGetParams(CUgraphNode node, CUdeviceptr *pointer) {
    if (node == NULL || node->type != FREE_NODE || pointer == NULL)
        return INVALID_VALUE;
    *pointer = node->pointer;
    return SUCCESS;
}

CUresult capture_alloc(stream_t *stream, CUdeviceptr *pointer, size_t bytes) {
    CUresult result = make_block_of(OF_GRAPH, pointer, bytes, NULL, -1);
    if (result != SUCCESS)
        return result;
    struct graph_node node = {.type = ALLOC_NODE, .pointer = *pointer, .bytes = bytes};
    pthread_mutex_lock(&queue_mutex);
    result = capture_node(stream, &node);
    pthread_mutex_unlock(&queue_mutex);
    return result;
}

CUresult capture_free(stream_t *stream, CUdeviceptr pointer) {
    struct graph_node node = {.type = FREE_NODE, .pointer = pointer};
    if (!is_of_graph(pointer))
        return INVALID_VALUE;
    pthread_mutex_lock(&queue_mutex);
    CUresult result = capture_node(stream, &node);
    pthread_mutex_unlock(&queue_mutex);
    return result;
}

/* ---- figures -------------------------------------------------------------------------------------------------- */

API CUresult cuDeviceGetGraphMemAttribute(CUdevice device, int attribute, void *value) {
    const card_t *card;
    CUresult result = value && attribute >= 0 && attribute < ATTRIBUTES ? find_card(device, &card) : INVALID_VALUE;
    if (result != SUCCESS)
        return result;
    int is_highest = attribute == USED_MOST || attribute == RESERVED_MOST;
    *(uint64_t *)value = is_highest ? memory[card->index].most : memory[card->index].reserved;
    return SUCCESS;
}

/* The highest figures begin again where they are now. */
API CUresult cuDeviceSetGraphMemAttribute(CUdevice device, int attribute, void *value) {
    const card_t *card;
    int is_highest = attribute == USED_MOST || attribute == RESERVED_MOST;
    CUresult result = value && is_highest && *(uint64_t *)value == 0 ? find_card(device, &card) : INVALID_VALUE;
    if (result == SUCCESS)
        memory[card->index].most = memory[card->index].reserved;
    return result;
}

API CUresult cuDeviceGraphMemTrim(CUdevice device) {
    const card_t *card;
    CUresult result = find_card(device, &card);
    if (result != SUCCESS)
        return result;
    pthread_mutex_lock(&driver.mutex);
    uint64_t least = round_up(memory[card->index].allocated, PIECE);
    machine_give_back(card, memory[card->index].reserved - least);
    memory[card->index].reserved = least;
    pthread_mutex_unlock(&driver.mutex);
    return SUCCESS;
}
