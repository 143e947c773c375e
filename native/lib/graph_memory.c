/* Memory of graphs: allocations that are nodes of a graph, recorded or added. The driver takes them at the first launch
   or upload of what was made of the graph, keeps them for the next, and says how much it has for all graphs of a card.
   So a launch that has not got its memory yet is charged with what its nodes need before it goes to the driver, and
   with what the driver has taken after it. While a graph is recorded nothing is asked and nothing charged. */
#define _GNU_SOURCE
#include "memory.h"

#include <pthread.h>
#include <stdlib.h>

#define GRAPH_MEMORY_USED 0
#define GRAPH_MEMORY_RESERVED 2
#define MOST_NEEDS 8             /* cards that one graph has memory of */
#define TRIES 2

/* What a launch of the graph needs of one card. */
typedef struct need {
    CUgraphExec graph;
    int card;
    uint64_t sum, most;         /* graph_needs.c */
    uint64_t ahead;             /* charged for a launch that the driver has not answered yet */
    uint64_t age;               /* `trims` when it last got its memory; 0 before */
    struct need *next;
} need_t;

static struct {
    pthread_mutex_t mutex;
    need_t *first;
    _Atomic uint64_t trims;     /* and one: how often what was kept may have been let go of */
    CUdevice device[MOST_CARDS];
    int is_used[MOST_CARDS];
    uint64_t charged[MOST_CARDS];
} graphs = {.mutex = PTHREAD_MUTEX_INITIALIZER, .trims = 1};

static _Atomic int needs_known; /* launches of other graphs go past all of this */

void forget_graph_memory(void) {
    pthread_mutex_init(&graphs.mutex, NULL);
    for (need_t *need = graphs.first, *next; need; need = next) {
        next = need->next;
        free(need);
    }
    graphs.first = NULL;
    for (int card = 0; card < MOST_CARDS; card++)
        graphs.charged[card] = 0, graphs.is_used[card] = 0;
    atomic_store(&needs_known, 0);
}

/* ---- what the driver has -------------------------------------------------------------------------------------- */

static uint64_t ask(int card, int attribute) {
    uint64_t bytes = 0;
    if (real.cuDeviceGetGraphMemAttribute == NULL ||
        real.cuDeviceGetGraphMemAttribute(graphs.device[card], attribute, &bytes) != CUDA_SUCCESS)
        return 0;
    return bytes;
}

/* With the mutex. `ahead` was charged before. */
static void settle(int card, uint64_t ahead) {
    uint64_t now = ask(card, GRAPH_MEMORY_RESERVED), before = graphs.charged[card] + ahead;
    graphs.charged[card] = now;
    if (now > before)
        region_add(card, now - before);
    else
        region_give_back(card, before - now);
}

void settle_graph_memory(int card) {
    if (!atomic_load_explicit(&needs_known, memory_order_relaxed))
        return;
    pthread_mutex_lock(&graphs.mutex);
    if (graphs.is_used[card])
        settle(card, 0);
    pthread_mutex_unlock(&graphs.mutex);
}

/* With the mutex. What is in use stays with its graph. */
static CUresult trim(CUdevice device, int card) {
    int is_counted = card != NO_CARD && graphs.is_used[card];
    uint64_t before = is_counted ? ask(card, GRAPH_MEMORY_RESERVED) : 0;
    CUresult result = CALL(cuDeviceGraphMemTrim, device);
    if (is_counted)
        settle(card, 0);
    if (is_counted && graphs.charged[card] < before)
        graphs.trims++;
    return result;
}

int trim_graph_memory(int card) {
    if (!atomic_load_explicit(&needs_known, memory_order_relaxed))
        return 0;
    pthread_mutex_lock(&graphs.mutex);
    uint64_t before = graphs.charged[card];
    if (before)
        trim(graphs.device[card], card);
    uint64_t after = graphs.charged[card];
    pthread_mutex_unlock(&graphs.mutex);
    return after < before;
}

CUresult cuDeviceGraphMemTrim(CUdevice device) {
    int card = card_of_device(device);
    pthread_mutex_lock(&graphs.mutex);
    CUresult result = trim(device, card);
    pthread_mutex_unlock(&graphs.mutex);
    return result;
}

/* ---- what a graph needs --------------------------------------------------------------------------------------- */

/* With the mutex. Where the process has no memory to remember it, it is charged when the driver has taken it. */
static void remember(CUgraphExec graph, const graph_need_t *wish) {
    int card = card_of_device(wish->device);
    need_t *need = card == NO_CARD ? NULL : malloc(sizeof *need);
    if (need == NULL)
        return;
    *need = (need_t){.graph = graph, .card = card, .sum = wish->sum, .most = wish->most, .next = graphs.first};
    graphs.first = need;
    graphs.device[card] = wish->device;
    graphs.is_used[card] = 1;
    atomic_store(&needs_known, 1);
}

static void forget_needs(CUgraphExec graph) {
    for (need_t **link = &graphs.first; *link;) {
        need_t *need = *link;
        if (need->graph != graph) {
            link = &need->next;
            continue;
        }
        *link = need->next;
        free(need);
    }
}

static CUresult learn_needs(CUresult result, const CUgraphExec *made, CUgraph graph) {
    graph_need_t needs[MOST_NEEDS];
    int count = result == CUDA_SUCCESS ? count_graph_needs(graph, needs, MOST_NEEDS) : 0;
    if (result != CUDA_SUCCESS || (count == 0 && !atomic_load(&needs_known)))
        return result;
    pthread_mutex_lock(&graphs.mutex);
    forget_needs(*made);
    for (int one = 0; one < count; one++)
        remember(*made, &needs[one]);
    pthread_mutex_unlock(&graphs.mutex);
    return result;
}

#define INSTANTIATE(name, parameters, ...)                                                                             \
    CUresult name parameters {                                                                                         \
        return learn_needs(CALL(name, __VA_ARGS__), made, graph);                                                      \
    }

INSTANTIATE(cuGraphInstantiate, (CUgraphExec *made, CUgraph graph, CUgraphNode *failed, char *log, size_t room),
            made, graph, failed, log, room)
INSTANTIATE(cuGraphInstantiate_v2, (CUgraphExec *made, CUgraph graph, CUgraphNode *failed, char *log, size_t room),
            made, graph, failed, log, room)
INSTANTIATE(cuGraphInstantiateWithFlags, (CUgraphExec *made, CUgraph graph, unsigned long long flags), made, graph,
            flags)
CUresult cuGraphExecDestroy(CUgraphExec graph) {
    if (atomic_load(&needs_known)) {
        pthread_mutex_lock(&graphs.mutex);
        forget_needs(graph);
        pthread_mutex_unlock(&graphs.mutex);
    }
    return CALL(cuGraphExecDestroy, graph);
}

/* ---- launches ------------------------------------------------------------------------------------------------- */

/* What of it the driver must take anew. A graph that has run since the last trim has all that it needs. */
static uint64_t missing_for(const need_t *need, uint64_t bytes) {
    if (need->age == graphs.trims)
        return 0;
    uint64_t reserved = ask(need->card, GRAPH_MEMORY_RESERVED), used = ask(need->card, GRAPH_MEMORY_USED);
    uint64_t spare = reserved > used ? reserved - used : 0;
    return bytes > spare ? bytes - spare : 0;
}

/* The graph's first need, or its next. A need lives as long as its graph, and nobody ends a graph that is launched. */
static need_t *next_need(need_t *before, CUgraphExec graph) {
    pthread_mutex_lock(&graphs.mutex);
    need_t *need = before ? before->next : graphs.first;
    while (need && need->graph != graph)
        need = need->next;
    pthread_mutex_unlock(&graphs.mutex);
    return need;
}

/* Whoever makes room may let go of what this graph was to use, and then it needs more than before. */
static int try_reserve(need_t *need, uint64_t bytes) {
    for (int turn = 0; turn < TRIES; turn++) {
        pthread_mutex_lock(&graphs.mutex);
        uint64_t trims = graphs.trims, missing = missing_for(need, bytes);
        pthread_mutex_unlock(&graphs.mutex);
        if (try_reserve_pages(need->card, missing))
            continue;
        need->ahead = missing;
        if (trims == graphs.trims)
            return 0;
        need->ahead = 0;
        region_give_back(need->card, missing);
    }
    return -1;
}

static CUresult reserve(need_t *need) {
    if (try_reserve(need, need->sum) == 0 || try_reserve(need, need->most) == 0)
        return CUDA_SUCCESS;
    return refuse(need->card, need->most);
}

static void undo(CUgraphExec graph) {
    pthread_mutex_lock(&graphs.mutex);
    for (need_t *need = graphs.first; need; need = need->next)
        if (need->graph == graph) {
            region_give_back(need->card, need->ahead);
            need->ahead = 0;
        }
    pthread_mutex_unlock(&graphs.mutex);
}

CUresult begin_graph_launch(CUgraphExec graph) {
    if (!atomic_load_explicit(&needs_known, memory_order_relaxed))
        return CUDA_SUCCESS;
    CUresult result = CUDA_SUCCESS;
    for (need_t *need = next_need(NULL, graph); need && result == CUDA_SUCCESS; need = next_need(need, graph))
        result = reserve(need);
    if (result != CUDA_SUCCESS)
        undo(graph);
    return result;
}

CUresult end_graph_launch(CUgraphExec graph, CUresult result) {
    if (!atomic_load_explicit(&needs_known, memory_order_relaxed))
        return result;
    pthread_mutex_lock(&graphs.mutex);
    for (need_t *need = graphs.first; need; need = need->next)
        if (need->graph == graph) {
            settle(need->card, need->ahead);
            need->ahead = 0;
            if (result == CUDA_SUCCESS && graphs.charged[need->card] >= need->most)
                need->age = graphs.trims;
        }
    pthread_mutex_unlock(&graphs.mutex);
    return result;
}

#define UPLOAD(name)                                                                                                   \
    CUresult name(CUgraphExec graph, CUstream stream) {                                                                \
        CUresult result = begin_graph_launch(graph);                                                                   \
        return result == CUDA_SUCCESS ? end_graph_launch(graph, CALL(name, graph, stream)) : result;                   \
    }

UPLOAD(cuGraphUpload)
UPLOAD(cuGraphUpload_ptsz)

/* An upload that is to come with it is made after it, so that its memory is charged before the driver takes it. */
static int set_upload_apart(CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS *wish) {
    graph_need_t needs[MOST_NEEDS];
    if (wish == NULL || !(wish->flags & UPLOAD_WITH_IT) || count_graph_needs(graph, needs, MOST_NEEDS) == 0)
        return 0;
    wish->flags &= ~UPLOAD_WITH_IT;
    return 1;
}

typedef CUresult upload_t(CUgraphExec graph, CUstream stream);

static CUresult upload_after(CUresult result, const CUgraphExec *made, CUDA_GRAPH_INSTANTIATE_PARAMS *wish,
                             upload_t *upload) {
    wish->flags |= UPLOAD_WITH_IT;
    if (result != CUDA_SUCCESS)
        return result;
    result = upload(*made, wish->upload);
    if (result != CUDA_SUCCESS)
        cuGraphExecDestroy(*made);
    return result;
}

#define INSTANTIATE_AS_WISHED(name, upload_by)                                                                         \
    CUresult name(CUgraphExec *made, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS *wish) {                             \
        int is_apart = set_upload_apart(graph, wish);                                                                  \
        CUresult result = learn_needs(CALL(name, made, graph, wish), made, graph);                                     \
        return is_apart ? upload_after(result, made, wish, upload_by) : result;                                        \
    }

INSTANTIATE_AS_WISHED(cuGraphInstantiateWithParams, cuGraphUpload)
INSTANTIATE_AS_WISHED(cuGraphInstantiateWithParams_ptsz, cuGraphUpload_ptsz)
