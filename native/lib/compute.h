/* What the parts that keep a container to its share of GPU time share with each other.

   GPU time is measured by events around segments of launches (segments.c), predicted from what kernels took before
   (costs.c), paid from a budget that all processes of the container have in common (tenants.c), and spent in turns
   where several tenants could each fill the card (turns.c). Whoever has no share to keep to goes past all of it. */

#ifndef TESSERA_COMPUTE_H
#define TESSERA_COMPUTE_H

#include "tenancy.h"

#include <pthread.h>

#define SEGMENT_NS (500 * MICROSECOND)
#define MOST_LAUNCHES 256        /* in a segment; less where its stream has less room, but so many at least */
#define LEAST_LAUNCHES 32
#define PATIENCE_NS (50 * MILLISECOND)          /* with work under way that does not end */
#define LIMITS_NS (10 * MILLISECOND)            /* after which they are read again */
#define SHORTEST_NAP_NS (10 * MICROSECOND)
#define LONGEST_NAP_NS (2 * MILLISECOND)

/* ---- costs.c: what a launch takes ---- */

typedef struct {
    uint64_t key;               /* of the kernel and its size, or of the graph */
    double ns;
    uint32_t seen;              /* 0: never measured, `ns` is a guess */
    uint8_t is_collective;      /* waits on the card for other ranks */
    uint8_t is_awaited;         /* the first launch of it is under way */
} cost_t;

/* A kernel in a segment, and what it was held to take then. */
typedef struct {
    cost_t *cost;
    double ns;
} part_t;

/* Of a kernel with this much to do, or a graph, or a copy. Never NULL; beyond the table's room they share one. */
struct gate;
typedef enum { A_KERNEL, NO_KERNEL } launched_t;
cost_t *cost_of(struct gate *gate, launched_t kind, const void *what, uint64_t size);

/* Launches of these kernels took `ratio` times what was expected. `is_disturbed`: others used the card at the same
   time, so it is at most that. */
void costs_learn(const part_t *parts, int count, double ratio, int is_disturbed);

/* ---- segments.c, lanes.c, depth.c: launches that are measured together, stream by stream ---- */

#define MOST_PARTS 8
#define LANE_SEGMENTS 32
#define LANE_MARKS 8

typedef struct {
    CUevent begin, end;
    int64_t opened_ns, closed_ns;       /* of the host, before the events were recorded */
    int64_t opened_by_ns, closed_by_ns; /* and after: a busy host may have taken its time in between */
    int64_t expected_ns;
    int launches, room;         /* those it has, and may have */
    int passed;                 /* launches before it that no segment has */
    part_t parts[MOST_PARTS];
    int part_count;
    uint8_t is_measured, is_first, is_sampled;  /* has events; has a launch of unknown cost; was held back before */
    uint8_t is_cut;             /* closed while a launch of it was on its way: that may have come after its end */
    uint8_t has_company;        /* the tenant had work on other streams or in other processes at the same time */
} segment_t;

/* An event behind launches that no segment has. */
typedef struct {
    CUevent event;
    int launches;
} mark_t;

/* The clock of a context's events, and how it maps to the host's. */
typedef struct {
    CUcontext context;
    CUevent newest;             /* the last event that was seen done */
    double newest_ns, lag_ns;   /* on the host's scale; the least by which an event came after its recording */
    int64_t looked_ns;
} timeline_t;

typedef struct lane {
    CUstream stream;
    pthread_t thread;           /* that made it; it has a default stream of its own */
    timeline_t *timeline;       /* NULL: the lane is free */
    struct gate *gate;
    segment_t segments[LANE_SEGMENTS];
    unsigned int head, tail;    /* the open one, if any, is at head */
    int is_open;
    int pending;                /* launches whose end was not seen yet */
    int passed;                 /* of them, those that went by since the last segment */
    int unmarked;               /* of these, those that no mark is behind */
    mark_t marks[LANE_MARKS];
    unsigned int newest_mark, oldest_mark;
    _Atomic int launching;      /* threads between asking here and launching */
    int64_t left_ns, until_ns;  /* the open segment takes launches as long as both last */
    int64_t in_flight_ns;       /* what the gate has under way here */
    int64_t used_ns;            /* last, for finding one to give to another stream */
} lane_t;

#define COST_ROOM 1024           /* a power of two */
#define MOST_LANES 256
#define MOST_TIMELINES 64

/* A card as this process uses it. All under the mutex. */
typedef struct gate {
    pthread_mutex_t mutex;
    int card;
    tenancy_t tenancy;
    _Atomic int share;          /* in percent, 0 without a limit */
    _Atomic int is_generous;    /* others' unused time may be used */
    _Atomic int is_asked;       /* whether launches on this card must ask */
    _Atomic int64_t refreshed_ns;
    cost_t costs[COST_ROOM], other_costs;
    lane_t *lanes[MOST_LANES];
    int lane_count;
    timeline_t timelines[MOST_TIMELINES];
    int64_t in_flight_ns;
    int64_t done_ns;            /* when the last known work was done */
    _Atomic int64_t launched_ns;
    _Atomic int waiting;        /* launches that wait */
    /* Since window_ns: what the card did for this process, and what the process did itself and waited for the card. */
    int64_t window_ns;
    double window_cost, window_host, window_blocked, demand;
    int wants_sample, samples;
    int64_t sampled_ns;
    /* While it rests, launches go by. A scout is an event that tells how far the card is behind. */
    _Atomic uint64_t rest_until_ms, rest_looked_ms;     /* 0: it does not rest */
    int64_t rest_began_ns, rest_left_ns, scout_ns;
    CUevent scout;
    timeline_t *scout_timeline;
} gate_t;

/* NULL where the card has none yet; gate_of_card makes it. */
gate_t *gate_at(int card);
gate_t *gate_of_card(int card);

/* All of the following with the gate's mutex, unless it says otherwise. */
lane_t *lane_of(gate_t *gate, CUstream stream, CUcontext context);

/* End what is measured, but for launches that are on their way. */
void lanes_close_segments(gate_t *gate, int64_t t);

/* Whether an event and so many launches have room in the stream, and how many launches a segment may have there. Where
   there is no room, the event would wait for the card with the mutex held, and whoever could make the card go on might
   wait for that. In the thread that launches. */
int lane_has_room(lane_t *lane, int launches);
int lane_room(const lane_t *lane);

/* A launch goes by on the lane, and is not measured. Before it does. */
void lane_pass(lane_t *lane);

/* What went by belongs to the segment from now on, and is over with it; or belongs to none again. */
void lane_hand_passed_to(lane_t *lane, segment_t *segment);
void lane_take_passed_from(lane_t *lane, segment_t *segment);
void marks_destroy(lane_t *lane);

/* Threads must look for their lane anew. */
void lanes_forget(void);

/* Without the mutex. The stream is about to go; the context is, or may be: what is measured there ends. */
void lanes_drop_stream(CUstream stream);
void lanes_drop_context(CUcontext context);

/* Begin to measure on the lane, with room for launches of so much. */
void segment_open(lane_t *lane, int64_t t, int64_t room_ns);
void segment_add(lane_t *lane, cost_t *cost, int64_t t);
void segment_close(lane_t *lane, int64_t t);

/* Pay what is expected: of the open segment, because nobody will see its end, and of one that is under way. */
void segment_abandon(lane_t *lane);
void segment_write_off(lane_t *lane, segment_t *segment);

/* Pay for what is done. */
void segments_collect(gate_t *gate, int64_t t);
int gate_is_drained(const gate_t *gate);

/* ---- samples.c: the true time of launches that come one by one ---- */

#define SAMPLE_NS (80 * MICROSECOND)

/* Hold back what is launched on the lane from now on. Returns whether it is. */
int sample_begin(lane_t *lane, int64_t t);

/* Returns whether all of it was held until now. */
int sample_end(lane_t *lane);

/* Since when something is held; 0: nothing. */
int64_t sample_since(void);

/* Without a call to the driver, from any thread and without the mutex. */
void sample_let_go(void);
void sample_forget_context(CUcontext context);

/* ---- gate.c ---- */

extern _Atomic int gate_is_shut;
extern _Atomic uint64_t gate_looked_ms;
int gate_look_again(void);

/* Whether launches go by without asking. */
static inline int gate_is_open(void) {
    if (atomic_load_explicit(&gate_is_shut, memory_order_relaxed))
        return 0;
    if (coarse_ms() - atomic_load_explicit(&gate_looked_ms, memory_order_relaxed) < 10)
        return 1;
    return !gate_look_again();
}

/* The stream that an entry means: 0 is another one in the variants for streams of threads. */
static inline CUstream of_thread(CUstream stream) {
    return stream == NULL ? PER_THREAD_STREAM : stream;
}

static inline CUstream of_all(CUstream stream) {
    return stream;
}

/* Before a launch on the stream. Returns a lane to leave with after it, or NULL. */
lane_t *gate_enter(CUstream stream, launched_t kind, const void *what, uint64_t size);
void gate_leave(lane_t *lane);

/* What goes to the stream now takes no time of the card's processors. */
void gate_set_apart(CUstream stream);

/* The calling thread is about to wait for the card: what it has launched last ends here, and nothing is held back. */
void gate_pause(void);

/* Read anew what the tile says. Returns whether launches on the card must ask. */
int gate_refresh(gate_t *gate, int64_t t);

/* Nothing is measured from here to the next launch. */
void gates_close_segments(void);

/* ---- asking.c ---- */

/* NAP: the card has enough to do of this process. The others are waits for the share. */
typedef enum { GO, NAP, YIELD, LISTEN, HAND_OVER } answer_t;
typedef struct {
    answer_t answer;
    int64_t ns;                 /* how long to wait before asking again */
} verdict_t;
verdict_t gate_ask(gate_t *gate, const cost_t *cost, int64_t t, int64_t waited);

/* ---- waiting.c ---- */

/* Returns when a launch of this cost may go, and whether a segment is open on the lane that measures it. */
int gate_wait(lane_t *lane, const cost_t *cost, int64_t t);

/* ---- demand.c ---- */

void gate_pay(gate_t *gate, int64_t ns);

/* The calling thread has waited for the card; it is about to launch; it has waited at the gate until now. */
void gate_was_blocked(int64_t ns);
void demand_weigh(gate_t *gate, int64_t t);
void demand_skip_to(int64_t t);

/* How long the calling thread has waited for the card, and since when that is counted; from now on it is anew. */
int64_t demand_waited(int64_t t, int64_t *since);

/* A tenant above this could fill the card. */
#define HEAVY 0.65

/* ---- resting.c ---- */

/* Rest from now on, if the tenant is modest. */
void gate_rest(gate_t *gate, int64_t t);

/* Whether the gate, which rests, goes on with it for a launch of this cost. */
int gate_goes_on_resting(lane_t *lane, const cost_t *cost);

/* Whether nothing is to be looked at now: a gate without a share. Without the mutex. */
int gate_rests_for_good(const gate_t *gate);
void gate_recall_scout(gate_t *gate);

/* Limits hold that did not: what was known of the time before says nothing. */
void gate_begin_anew(gate_t *gate, int64_t t);

/* ---- timekeeper.c ---- */

void timekeeper_wake(void);

/* Whether there is somebody to let go of a sample. */
int timekeeper_runs(void);

/* ---- mps.c ---- */

extern _Atomic int mps_is_used;

/* Before cuInit. */
void mps_prepare(void);

/* ---- captures.c ---- */

extern _Atomic int captures_open;
int stream_is_capturing(CUstream stream);
void captures_drop_stream(CUstream stream);

/* Around calls of the library's own, which must break no capture of the program's. */
typedef struct {
    int mode, is_changed;
} capture_guard_t;
capture_guard_t captures_guard(void);
void captures_unguard(capture_guard_t guard);

/* ---- in a forked child ---- */

void forget_gates(void);
void forget_timekeeper(void);
void forget_sample(void);
void forget_captures(void);

#endif
