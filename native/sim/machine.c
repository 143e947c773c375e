#define _GNU_SOURCE
#include "machine.h"
#include "selecting.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define DIRECTORY_VARIABLE "TESSERA_SIM"
#define CONTAINER_VARIABLE "NVIDIA_VISIBLE_DEVICES"
#define LEDGER_BYTE 0           /* locked while somebody counts */
#define SLOT_BYTE(slot) (1 + (slot))
#define NO_SLOT (-1)

/* One process. All zero is a slot that nobody has, so a new file needs no set-up. Each figure is written by its owner
   alone and in one store: who dies half-way leaves a state that is true. */
typedef struct {
    _Atomic int32_t pid;
    _Atomic uint64_t bytes[MACHINE_MOST_CARDS];
} slot_t;

static struct {
    pthread_mutex_t mutex;
    int is_open;
    char directory[PATH_MAX];
    int file;
    int own;                    /* the slot of this process, or NO_SLOT before it needs one */
    int numbers;                /* the file `processes`, or -1 */
    slot_t *slots;
    card_t cards[MACHINE_MOST_CARDS];
    int card_count;
    int seen[MACHINE_MOST_CARDS];
    int seen_count;
} machine = {.mutex = PTHREAD_MUTEX_INITIALIZER, .file = -1, .numbers = -1};

static int complain(const char *what, const char *where) {
    fprintf(stderr, "simulated driver: %s: %s\n", where, what);
    return -1;
}

static int lock_byte(int command, short type, off_t byte) {
    struct flock wish = {.l_type = type, .l_whence = SEEK_SET, .l_start = byte, .l_len = 1};
    int result;
    do {
        result = fcntl(machine.file, command, &wish);
    } while (result == -1 && errno == EINTR && command == F_OFD_SETLKW);
    return command == F_OFD_GETLK && result == 0 ? wish.l_type != F_UNLCK : result;
}

static void lock_ledger(void) {
    pthread_mutex_lock(&machine.mutex);
    lock_byte(F_OFD_SETLKW, F_WRLCK, LEDGER_BYTE);
}

static void unlock_ledger(void) {
    lock_byte(F_OFD_SETLK, F_UNLCK, LEDGER_BYTE);
    pthread_mutex_unlock(&machine.mutex);
}

/* A child has neither the contexts nor the memory of its parent, and must not keep the parent's slot alive. */
static void forget_in_child(void) {
    if (machine.is_open) {
        munmap(machine.slots, MACHINE_MOST_PROCESSES * sizeof(slot_t));
        close(machine.file);
    }
    if (machine.numbers != -1)
        close(machine.numbers);
    pthread_mutex_init(&machine.mutex, NULL);
    machine.is_open = 0;
    machine.file = machine.numbers = -1;
}

/* A card is a line of seven fields with tabs between them:
   uuid, name, memory MiB, context MiB, compute capability, multiprocessors, NUMA node. */
static int read_card(char *line, card_t *card) {
    char *fields[7], *rest = line;
    for (int field = 0; field < 7; field++) {
        fields[field] = strsep(&rest, "\t\n");
        if (fields[field] == NULL || *fields[field] == '\0')
            return -1;
    }
    unsigned long memory_mib = strtoul(fields[2], NULL, 10), context_mib = strtoul(fields[3], NULL, 10);
    if (memory_mib == 0 || sscanf(fields[4], "%d.%d", &card->compute_major, &card->compute_minor) != 2)
        return -1;
    snprintf(card->uuid, sizeof card->uuid, "%s", fields[0]);
    snprintf(card->name, sizeof card->name, "%s", fields[1]);
    card->memory_bytes = (uint64_t)memory_mib << 20;
    card->context_bytes = (uint64_t)context_mib << 20;
    card->multiprocessors = atoi(fields[5]);
    card->numa = atoi(fields[6]);
    return 0;
}

static int read_cards(const char *path) {
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return complain("cannot be read; it describes the simulated cards", path);
    char line[512];
    int result = 0;
    machine.card_count = 0;
    while (result == 0 && fgets(line, sizeof line, file)) {
        card_t *card = &machine.cards[machine.card_count];
        if (machine.card_count == MACHINE_MOST_CARDS)
            result = complain("has more cards than can be simulated", path);
        else if (read_card(line, card))
            result = complain("has a line that is no card: expected uuid, name, memory, context, compute, units, NUMA",
                              path);
        else
            card->index = machine.card_count++;
    }
    fclose(file);
    return result;
}

/* A lock of the old kind, which belongs to the process: whoever asks who has it is told the holder's number as the
   asker knows it, whatever namespaces lie between them. So the node learns who is on its cards, as a driver knows it.
   In a file of its own, because such locks are gone as soon as a process closes any descriptor of their file. */
static void show_number(int slot) {
    struct flock wish = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = slot, .l_len = 1};
    machine.numbers = machine_open_shared("processes");
    if (machine.numbers != -1)
        fcntl(machine.numbers, F_SETLK, &wish);
}

/* With the ledger locked. Who only looks has none, so that there are as many as processes on cards. */
static int claim_slot(void) {
    if (machine.own != NO_SLOT)
        return 0;
    for (int slot = 0; slot < MACHINE_MOST_PROCESSES; slot++) {
        if (lock_byte(F_OFD_SETLK, F_WRLCK, SLOT_BYTE(slot)) == -1)
            continue;           /* somebody lives there */
        memset(&machine.slots[slot], 0, sizeof(slot_t));
        machine.slots[slot].pid = getpid();
        machine.own = slot;
        show_number(slot);
        return 0;
    }
    return complain("has no room for another process", machine.directory);
}

static int open_shared(const char *path) {
    int file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (file == -1)
        return complain(strerror(errno), path);
    fchmod(file, 0666);         /* containers run as anybody; refused to all but the owner, which is enough */
    return file;
}

static int join_memory(const char *path) {
    const size_t size = MACHINE_MOST_PROCESSES * sizeof(slot_t);
    machine.file = open_shared(path);
    if (machine.file == -1)
        return -1;
    if (ftruncate(machine.file, size) == -1)
        return complain(strerror(errno), path);
    machine.slots = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, machine.file, 0);
    if (machine.slots == MAP_FAILED)
        return complain(strerror(errno), path);
    machine.own = NO_SLOT;
    return 0;
}

static int open_directory(const char *directory) {
    char path[PATH_MAX + sizeof "/memory"];
    snprintf(machine.directory, sizeof machine.directory, "%s", directory);
    snprintf(path, sizeof path, "%s/cards", machine.directory);
    if (read_cards(path))
        return -1;
    machine.seen_count = select_for_container(getenv(CONTAINER_VARIABLE), machine.cards, machine.card_count,
                                              machine.seen);
    snprintf(path, sizeof path, "%s/memory", machine.directory);
    if (join_memory(path) == 0)
        return 0;
    if (machine.file != -1)
        close(machine.file);
    machine.file = -1;
    return -1;
}

static pthread_once_t fork_handler_once = PTHREAD_ONCE_INIT;

static void install_fork_handler(void) {
    pthread_atfork(NULL, NULL, forget_in_child);
}

int machine_open(void) {
    const char *directory = getenv(DIRECTORY_VARIABLE);
    pthread_once(&fork_handler_once, install_fork_handler);
    pthread_mutex_lock(&machine.mutex);
    int result = 0;
    if (!machine.is_open) {
        result = directory ? open_directory(directory)
                           : complain("is not set; it names the directory of the simulated cards", DIRECTORY_VARIABLE);
        machine.is_open = result == 0;
    }
    pthread_mutex_unlock(&machine.mutex);
    return result;
}

int machine_card_count(void) {
    return machine.seen_count;
}

const card_t *machine_card(int position) {
    return position >= 0 && position < machine.seen_count ? &machine.cards[machine.seen[position]] : NULL;
}

int machine_all_cards(void) {
    return machine.card_count;
}

const card_t *machine_any_card(int index) {
    return &machine.cards[index];
}

int machine_open_shared(const char *name) {
    char path[PATH_MAX];
    if (snprintf(path, sizeof path, "%s/%s", machine.directory, name) >= (int)sizeof path)
        return complain("is too long a name", name);
    return open_shared(path);
}

int machine_slot(void) {
    if (machine.own == NO_SLOT) {
        lock_ledger();
        claim_slot();
        unlock_ledger();
    }
    return machine.own;
}

int machine_slot_lives(int slot) {
    return slot == machine.own || lock_byte(F_OFD_GETLK, F_WRLCK, SLOT_BYTE(slot)) != 0;
}

/* Let go of what the dead have left. Asked only where somebody holds something, and with the ledger locked. */
static void bury_the_dead(void) {
    for (int slot = 0; slot < MACHINE_MOST_PROCESSES; slot++) {
        slot_t *other = &machine.slots[slot];
        if (slot != machine.own && other->pid != 0 && !lock_byte(F_OFD_GETLK, F_WRLCK, SLOT_BYTE(slot)))
            memset(other, 0, sizeof *other);
    }
}

static uint64_t sum_of(const card_t *card) {
    uint64_t sum = 0;
    for (int slot = 0; slot < MACHINE_MOST_PROCESSES; slot++)
        sum += machine.slots[slot].bytes[card->index];
    return sum;
}

static int fits(const card_t *card, uint64_t bytes) {
    uint64_t used = sum_of(card);
    return bytes <= card->memory_bytes && used <= card->memory_bytes - bytes;
}

int machine_take(const card_t *card, uint64_t bytes) {
    lock_ledger();
    if (!fits(card, bytes))
        bury_the_dead();
    int result = claim_slot() == 0 && fits(card, bytes) ? 0 : -1;
    if (result == 0)
        machine.slots[machine.own].bytes[card->index] += bytes;
    unlock_ledger();
    return result;
}

void machine_give_back(const card_t *card, uint64_t bytes) {
    machine.slots[machine.own].bytes[card->index] -= bytes;
}

uint64_t machine_used(const card_t *card) {
    lock_ledger();
    bury_the_dead();
    uint64_t used = sum_of(card);
    unlock_ledger();
    return used;
}

int machine_tenants(const card_t *card, tenant_t *tenants, int room) {
    int count = 0;
    lock_ledger();
    bury_the_dead();
    for (int slot = 0; slot < MACHINE_MOST_PROCESSES; slot++) {
        const slot_t *other = &machine.slots[slot];
        if (other->bytes[card->index] == 0)
            continue;
        if (count < room)
            tenants[count] = (tenant_t){slot, other->pid, other->bytes[card->index]};
        count++;
    }
    unlock_ledger();
    return count;
}
