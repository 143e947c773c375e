#define _GNU_SOURCE
#include "selecting.h"

#include <stdlib.h>
#include <string.h>

#define LONGEST_LIST 8192
#define NO_CARD (-1)

static int index_of(const char *entry, int count) {
    char *end;
    long index = strtol(entry, &end, 10);
    return *entry != '\0' && *end == '\0' && index >= 0 && index < count ? (int)index : NO_CARD;
}

/* Copy the list, so that it can be cut. Returns 0 if it is longer than any that is meant. */
static int copy_list(char *copy, const char *list) {
    if (strlen(list) >= LONGEST_LIST)
        return 0;
    strcpy(copy, list);
    return 1;
}

static char *trim(char *entry) {
    while (*entry == ' ')
        entry++;
    size_t length = strlen(entry);
    while (length > 0 && entry[length - 1] == ' ')
        entry[--length] = '\0';
    return entry;
}

static int every(int count, int *chosen) {
    for (int position = 0; position < count; position++)
        chosen[position] = position;
    return count;
}

int select_for_container(const char *list, const card_t *cards, int count, int *chosen) {
    char copy[LONGEST_LIST], *rest = copy, *entry;
    char is_wanted[MACHINE_MOST_CARDS] = {0};
    if (list == NULL || strcmp(list, "all") == 0)
        return every(count, chosen);
    if (!copy_list(copy, list))
        return 0;
    while ((entry = strsep(&rest, ",")) != NULL) {
        entry = trim(entry);
        int index = index_of(entry, count);
        if (index != NO_CARD)
            is_wanted[index] = 1;
        for (int position = 0; position < count; position++)
            if (strcmp(entry, cards[position].uuid) == 0)
                is_wanted[position] = 1;
    }
    int found = 0;
    for (int position = 0; position < count; position++)
        if (is_wanted[position])
            chosen[found++] = position;
    return found;
}

/* The one card whose UUID begins so. */
static int position_by_uuid(const char *entry, const card_t *const *cards, int count) {
    int found = NO_CARD;
    if (strncmp(entry, "GPU-", 4) != 0)
        return NO_CARD;
    for (int position = 0; position < count; position++) {
        if (strncmp(entry, cards[position]->uuid, strlen(entry)) != 0)
            continue;
        if (found != NO_CARD)
            return NO_CARD;
        found = position;
    }
    return found;
}

int select_for_process(const char *list, const card_t *const *cards, int count, int *chosen) {
    char copy[LONGEST_LIST], *rest = copy, *entry;
    char is_taken[MACHINE_MOST_CARDS] = {0};
    int found = 0;
    if (list == NULL)
        return every(count, chosen);
    if (!copy_list(copy, list))
        return 0;
    while ((entry = strsep(&rest, ",")) != NULL) {
        entry = trim(entry);
        int position = index_of(entry, count);
        if (position == NO_CARD)
            position = position_by_uuid(entry, cards, count);
        if (position == NO_CARD)
            return found;
        if (is_taken[position])
            return 0;
        is_taken[position] = 1;
        chosen[found++] = position;
    }
    return found;
}
