/* The C library's dlsym and dlvsym, read from its own tables.

   Any lookup by name would find ours, which stand in front. So the loaded objects are walked and the hash table of the
   C library (since 2.34) or of its libdl (before) is searched as the loader would. No other function is called on the
   way: sanitizers and tracers look for theirs before those that they replace can be called. */
#define _GNU_SOURCE
#include "tessera.h"

#include <link.h>

static int begins_with(const char *text, const char *beginning) {
    while (*beginning != '\0' && *text == *beginning)
        text++, beginning++;
    return *beginning == '\0';
}

static int is_same(const char *one, const char *other) {
    while (*one != '\0' && *one == *other)
        one++, other++;
    return *one == *other;
}

static int is_c_library(const char *path) {
    const char *name = path;
    for (; *path != '\0'; path++)
        if (*path == '/')
            name = path + 1;
    return begins_with(name, "libc.so") || begins_with(name, "libc-2") || begins_with(name, "libdl.so") ||
           begins_with(name, "libdl-2");
}

static uint32_t hash_of(const char *name) {
    uint32_t hash = 5381;
    for (; *name != '\0'; name++)
        hash = hash * 33 + (unsigned char)*name;
    return hash;
}

static const ElfW(Sym) *look_up(const uint32_t *table, const ElfW(Sym) *symbols, const char *strings,
                                const char *name) {
    const uint32_t bucket_count = table[0], first = table[1], bloom_words = table[2];
    const uint32_t *buckets = table + 4 + bloom_words * (sizeof(ElfW(Addr)) / sizeof(uint32_t));
    const uint32_t *chain = buckets + bucket_count;
    const uint32_t hash = hash_of(name);
    uint32_t symbol = buckets[hash % bucket_count];
    if (symbol < first)
        return NULL;
    for (;; symbol++) {
        uint32_t one = chain[symbol - first];
        if ((one | 1) == (hash | 1) && symbols[symbol].st_value != 0 &&
            is_same(strings + symbols[symbol].st_name, name))
            return &symbols[symbol];
        if (one & 1)
            return NULL;
    }
}

/* The loader has made addresses of what the file has as offsets. */
static void *find_in(const struct link_map *object, const char *name) {
    const uint32_t *table = NULL;
    const ElfW(Sym) *symbols = NULL;
    const char *strings = NULL;
    for (const ElfW(Dyn) *entry = object->l_ld; entry->d_tag != DT_NULL; entry++) {
        if (entry->d_tag == DT_GNU_HASH)
            table = (const uint32_t *)entry->d_un.d_ptr;
        else if (entry->d_tag == DT_SYMTAB)
            symbols = (const ElfW(Sym) *)entry->d_un.d_ptr;
        else if (entry->d_tag == DT_STRTAB)
            strings = (const char *)entry->d_un.d_ptr;
    }
    const ElfW(Sym) *symbol = table && symbols && strings ? look_up(table, symbols, strings, name) : NULL;
    return symbol ? (void *)(object->l_addr + symbol->st_value) : NULL;
}

static void *find(const char *name) {
    void *found = NULL;
    for (const struct link_map *object = _r_debug.r_map; object && found == NULL; object = object->l_next)
        if (is_c_library(object->l_name))
            found = find_in(object, name);
    return found;
}

dlsym_t *real_dlsym(void) {
    static _Atomic(dlsym_t *) known;
    dlsym_t *found = atomic_load_explicit(&known, memory_order_relaxed);
    if (found == NULL) {
        found = (dlsym_t *)(uintptr_t)find("dlsym");
        atomic_store_explicit(&known, found, memory_order_relaxed);
    }
    return found;
}

dlvsym_t *real_dlvsym(void) {
    static _Atomic(dlvsym_t *) known;
    dlvsym_t *found = atomic_load_explicit(&known, memory_order_relaxed);
    if (found == NULL) {
        found = (dlvsym_t *)(uintptr_t)find("dlvsym");
        atomic_store_explicit(&known, found, memory_order_relaxed);
    }
    return found;
}
