/* Which moments of late a tenant has paid for: its streams and processes use the card at the same time, and learn of
   the end of their work in any order, but no moment is paid twice.

   A tape that goes round: a word has a bit for each of its slots of time, and a mark that says in which round it was
   written. It changes in one step. */
#include "tenancy.h"

#define SLOT_NS (50 * MICROSECOND)
#define SLOTS 48                /* in a word; the other bits are its mark */
#define MARK(round) (((uint64_t)(round) & 0xffff) << SLOTS)

static uint64_t bits(int64_t from, int64_t to) {
    return (((uint64_t)1 << (to - from)) - 1) << from;
}

/* Returns how many of the slots were not yet paid for. */
static int pay_slots(_Atomic uint64_t *word, uint64_t mark, uint64_t slots) {
    uint64_t before = atomic_load(word), paid, after;
    do {
        paid = before >> SLOTS == mark >> SLOTS ? before & bits(0, SLOTS) : 0;
        after = mark | paid | slots;
    } while (!atomic_compare_exchange_weak(word, &before, after));
    return __builtin_popcountll(slots & ~paid);
}

/* Ends are put to the nearest slot, so intervals that follow each other leave no gap and count nothing twice. */
int64_t budget_unpaid(tenancy_t *tenancy, int64_t from, int64_t to) {
    int64_t slot = (from + SLOT_NS / 2) / SLOT_NS, end = (to + SLOT_NS / 2) / SLOT_NS, unpaid = 0;
    if (end - slot > (int64_t)PAID_WORDS * SLOTS)       /* a kernel longer than the tape */
        return to - from;
    while (slot < end) {
        int64_t place = slot / SLOTS, last = (place + 1) * SLOTS < end ? (place + 1) * SLOTS : end;
        uint64_t wanted = bits(slot - place * SLOTS, last - place * SLOTS);
        unpaid += pay_slots(&tenancy->own->paid[place % PAID_WORDS], MARK(place / PAID_WORDS + 1), wanted);
        slot = last;
    }
    return unpaid * SLOT_NS;
}
