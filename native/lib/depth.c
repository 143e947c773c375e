/* How deep streams are: how many launches each has whose end nobody has seen. What is measured ends with its segment.
   Behind what goes by unmeasured there is a mark now and then, because a stream that always has work left would never
   be known to have room again. */
#define _GNU_SOURCE
#include "compute.h"

#define DEEPEST (3 * MOST_LAUNCHES)     /* a driver takes 960 launches and more */
#define LAUNCHES_A_MARK 128

/* Other streams may be captured meanwhile, with the guard set. */
static int may_ask(const lane_t *lane) {
    return !captures_open || !stream_is_capturing(lane->stream);
}

static void collect_marks(lane_t *lane) {
    for (; lane->oldest_mark != lane->newest_mark; lane->oldest_mark++) {
        const mark_t *mark = &lane->marks[lane->oldest_mark % LANE_MARKS];
        if (real.cuEventQuery(mark->event) == CUDA_ERROR_NOT_READY)
            return;
        lane->pending -= mark->launches;
        lane->passed -= mark->launches;
    }
}

static void set_mark(lane_t *lane) {
    mark_t *mark = &lane->marks[lane->newest_mark % LANE_MARKS];
    if (lane->pending > DEEPEST || lane->newest_mark - lane->oldest_mark == LANE_MARKS || lane->timeline == NULL)
        return;
    if (mark->event == NULL && real.cuEventCreate(&mark->event, EVENT_WITHOUT_TIME) != CUDA_SUCCESS) {
        mark->event = NULL;
        return;
    }
    if (real.cuEventRecord(mark->event, lane->stream) != CUDA_SUCCESS)
        return;
    mark->launches = lane->unmarked;
    lane->unmarked = 0;
    lane->newest_mark++;
}

/* Whatever is marked or not, a stream that has nothing left has nothing pending. */
static void look_whether_all_is_over(lane_t *lane) {
    if (real.cuStreamQuery == NULL || real.cuStreamQuery(lane->stream) != CUDA_SUCCESS)
        return;
    lane->pending -= lane->passed;
    lane->passed = lane->unmarked = 0;
    lane->oldest_mark = lane->newest_mark;
}

int lane_has_room(lane_t *lane, int launches) {
    if (lane->passed && lane->pending + launches > DEEPEST && may_ask(lane)) {
        collect_marks(lane);
        if (lane->pending + launches > DEEPEST)
            look_whether_all_is_over(lane);
    }
    return lane->pending + launches <= DEEPEST && lane->head - lane->tail < LANE_SEGMENTS - 1;
}

int lane_room(const lane_t *lane) {
    int left = DEEPEST - lane->pending;
    return left < MOST_LAUNCHES ? left : MOST_LAUNCHES;
}

void lane_pass(lane_t *lane) {
    if (lane->unmarked >= LAUNCHES_A_MARK && may_ask(lane)) {
        capture_guard_t guard = captures_guard();
        collect_marks(lane);
        set_mark(lane);
        captures_unguard(guard);
    }
    lane->pending++;
    lane->passed++;
    lane->unmarked++;
}

void lane_hand_passed_to(lane_t *lane, segment_t *segment) {
    if (may_ask(lane))
        collect_marks(lane);
    segment->passed = lane->passed;
    lane->passed = lane->unmarked = 0;
    lane->oldest_mark = lane->newest_mark;
}

void lane_take_passed_from(lane_t *lane, segment_t *segment) {
    lane->passed += segment->passed;
    lane->unmarked += segment->passed;
    segment->passed = 0;
}

void marks_destroy(lane_t *lane) {
    for (mark_t *mark = lane->marks; mark < lane->marks + LANE_MARKS; mark++)
        if (mark->event) {
            real.cuEventDestroy_v2(mark->event);
            mark->event = NULL;
        }
    lane->oldest_mark = lane->newest_mark;
}
