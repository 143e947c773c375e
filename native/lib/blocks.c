/* What this process has of its cards, by address or handle. Sixteen tables with a lock each, open addressing, no holes:
   an entry that leaves lets the next ones move up. Tables grow by mapping, never through the program's allocator. */
#define _GNU_SOURCE
#include "memory.h"

#include <pthread.h>
#include <sys/mman.h>

#define TABLES 16
#define FIRST_ROOM 256

typedef struct {
    pthread_mutex_t mutex;
    block_t *blocks;            /* uses == 0 is a free place */
    size_t room, count;         /* room is a power of two */
} table_t;

#define EMPTY {.mutex = PTHREAD_MUTEX_INITIALIZER}
#define FOUR_EMPTY EMPTY, EMPTY, EMPTY, EMPTY
static table_t tables[TABLES] = {FOUR_EMPTY, FOUR_EMPTY, FOUR_EMPTY, FOUR_EMPTY};

static uint64_t hash_of(uint64_t key) {
    key = (key ^ (key >> 32)) * 0x9E3779B97F4A7C15u;
    return key ^ (key >> 29);
}

static table_t *table_of(uint64_t key) {
    return &tables[hash_of(key) % TABLES];
}

static size_t home_of(const table_t *table, uint64_t key) {
    return (hash_of(key) / TABLES) & (table->room - 1);
}

/* Its place, or the free place where it would go. The table has room. */
static size_t place_of(const table_t *table, kind_t kind, uint64_t key) {
    size_t place = home_of(table, key);
    while (table->blocks[place].uses && (table->blocks[place].key != key || table->blocks[place].kind != kind))
        place = (place + 1) & (table->room - 1);
    return place;
}

static int grow(table_t *table) {
    table_t larger = {.room = table->room ? 2 * table->room : FIRST_ROOM, .count = table->count};
    const size_t bytes = larger.room * sizeof(block_t);
    larger.blocks = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (larger.blocks == MAP_FAILED)
        return -1;
    for (size_t place = 0; place < table->room; place++) {
        const block_t *block = &table->blocks[place];
        if (block->uses)
            larger.blocks[place_of(&larger, block->kind, block->key)] = *block;
    }
    if (table->blocks)
        munmap(table->blocks, table->room * sizeof(block_t));
    table->blocks = larger.blocks;
    table->room = larger.room;
    return 0;
}

static void remove_at(table_t *table, size_t place) {
    const size_t mask = table->room - 1;
    for (size_t next = (place + 1) & mask; table->blocks[next].uses; next = (next + 1) & mask) {
        size_t home = home_of(table, table->blocks[next].key);
        if (((next - home) & mask) < ((next - place) & mask))
            continue;           /* it would come before its home */
        table->blocks[place] = table->blocks[next];
        place = next;
    }
    table->blocks[place].uses = 0;
    table->count--;
}

int blocks_put(block_t block) {
    table_t *table = table_of(block.key);
    pthread_mutex_lock(&table->mutex);
    int result = table->count * 4 >= table->room * 3 ? grow(table) : 0;
    if (result == 0) {
        size_t place = place_of(table, block.kind, block.key);
        table->count += table->blocks[place].uses == 0;
        table->blocks[place] = block;
    }
    pthread_mutex_unlock(&table->mutex);
    return result;
}

int blocks_drop(kind_t kind, uint64_t key, block_t *block) {
    table_t *table = table_of(key);
    int is_last = 0;
    pthread_mutex_lock(&table->mutex);
    size_t place = table->room ? place_of(table, kind, key) : 0;
    if (table->room && table->blocks[place].uses) {
        is_last = table->blocks[place].uses == 1;
        if (is_last) {
            *block = table->blocks[place];
            remove_at(table, place);
        } else {
            table->blocks[place].uses--;
        }
    }
    pthread_mutex_unlock(&table->mutex);
    return is_last;
}

int blocks_hold(kind_t kind, uint64_t key) {
    table_t *table = table_of(key);
    pthread_mutex_lock(&table->mutex);
    size_t place = table->room ? place_of(table, kind, key) : 0;
    int is_there = table->room && table->blocks[place].uses;
    if (is_there)
        table->blocks[place].uses++;
    pthread_mutex_unlock(&table->mutex);
    return is_there;
}

void blocks_mark_exported(kind_t kind, uint64_t key) {
    table_t *table = table_of(key);
    pthread_mutex_lock(&table->mutex);
    size_t place = table->room ? place_of(table, kind, key) : 0;
    if (table->room && table->blocks[place].uses)
        table->blocks[place].is_exported = 1;
    pthread_mutex_unlock(&table->mutex);
}

static int dies_with(const block_t *block, uint64_t owner) {
    return block->uses && block->owner == owner && block->kind != HANDLE && block->kind != MAPPING &&
           block->kind != CONTEXT;
}

void blocks_forget_owned(uint64_t owner, void (*gone)(const block_t *)) {
    for (table_t *table = tables; table < tables + TABLES; table++) {
        pthread_mutex_lock(&table->mutex);
        for (size_t place = 0; place < table->room;) {
            if (!dies_with(&table->blocks[place], owner)) {
                place++;
                continue;
            }
            block_t block = table->blocks[place];
            remove_at(table, place);
            gone(&block);
        }
        pthread_mutex_unlock(&table->mutex);
    }
}

void blocks_forget_all(void) {
    for (table_t *table = tables; table < tables + TABLES; table++) {
        pthread_mutex_init(&table->mutex, NULL);
        if (table->room)
            munmap(table->blocks, table->room * sizeof(block_t));
        table->blocks = NULL;
        table->room = table->count = 0;
    }
}
