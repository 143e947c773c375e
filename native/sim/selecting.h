/* Which cards a list of devices means: of the container (NVIDIA_VISIBLE_DEVICES) and of the process
   (CUDA_VISIBLE_DEVICES). The two read lists differently, as the container toolkit and the CUDA driver do. Pure. */

#ifndef TESSERA_SIM_SELECTING_H
#define TESSERA_SIM_SELECTING_H

#include "machine.h"

/* Indices into `cards`, written to `chosen`, in the machine's order. NULL and "all" are every card; "", "none" and
   "void" are none; otherwise indices and UUIDs with commas between them, and what names no card is passed over.
   Returns how many there are. */
int select_for_container(const char *list, const card_t *cards, int count, int *chosen);

/* Positions among the `count` cards that the container has, in the order of the list. NULL is every card. The first
   entry that names no card ends the list; a card that is named twice leaves none. UUIDs may be shortened. */
int select_for_process(const char *list, const card_t *const *cards, int count, int *chosen);

#endif
