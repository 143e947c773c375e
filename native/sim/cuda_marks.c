/* Marks: points of streams that get a time when the card has come past them. */
#define _GNU_SOURCE
#include "cuda_ops.h"

#include <stdlib.h>
#include <string.h>

/* Those that the cards have not come past, by position. */
static struct {
    mark_t *first, *last;
} open[MACHINE_MOST_CARDS];

mark_t *make_mark(const card_t *card) {
    mark_t *mark = malloc(sizeof *mark);
    if (mark)
        *mark = (mark_t){.state = AWAITED, .uses = 1, .card = card};
    return mark;
}

void drop_mark(mark_t *mark) {
    if (--mark->uses == 0)
        free(mark);
}

mark_t *queue_take_mark(mark_t *const *place) {
    pthread_mutex_lock(&queue_mutex);
    mark_t *mark = *place;
    if (mark)
        mark->uses++;
    pthread_mutex_unlock(&queue_mutex);
    return mark;
}

void queue_set_mark(mark_t **place, mark_t *mark) {
    pthread_mutex_lock(&queue_mutex);
    if (*place)
        drop_mark(*place);
    *place = mark;
    pthread_mutex_unlock(&queue_mutex);
}

static void stamp(mark_t *mark) {
    int64_t done_at = mark->point.position ? time_of(mark->card, mark->point.position) : 0;
    mark->stamp = done_at > mark->point.time ? done_at : mark->point.time;
    mark->state = STAMPED;
}

void issue_mark(mark_t *mark, point_t point) {
    int card = mark->card->index;
    mark_t *last = open[card].last, **link = &open[card].first;
    mark->point = point;
    if (point.position <= progress.done[card]) {
        stamp(mark);
        return;
    }
    mark->state = ISSUED;
    mark->uses++;
    if (last && last->point.position <= point.position)
        link = &last->next;
    while (*link && (*link)->point.position <= point.position)
        link = &(*link)->next;
    mark->next = *link;
    *link = mark;
    if (mark->next == NULL)
        open[card].last = mark;
}

int has_mark_passed(const mark_t *mark) {
    if (mark->state == ISSUED)
        wake_at(progress.now + (int64_t)(mark->point.position - progress.done[mark->card->index]));
    if (mark->state == STAMPED && mark->stamp > progress.now)
        wake_at(mark->stamp);
    return mark->state == STAMPED && mark->stamp <= progress.now;
}

void stamp_marks(int card) {
    while (open[card].first && open[card].first->point.position <= progress.done[card]) {
        mark_t *mark = open[card].first;
        open[card].first = mark->next;
        if (mark->next == NULL)
            open[card].last = NULL;
        stamp(mark);
        drop_mark(mark);
    }
}

int has_open_marks(void) {
    for (int card = 0; card < MACHINE_MOST_CARDS; card++)
        if (open[card].first)
            return 1;
    return 0;
}

void forget_marks(void) {
    memset(open, 0, sizeof open);
}
