/* What befell cards: lines of the file `faults`, a UUID and a number of the driver's (XID). The simulated driver writes
   there when a kernel does what it must not, and so may anybody who wants a card to have failed. */

#ifndef TESSERA_SIM_FAULTS_H
#define TESSERA_SIM_FAULTS_H

#include "machine.h"

void faults_tell(const card_t *card, int xid);

/* How much has been told so far, for who wants to hear only of what comes. */
off_t faults_end(void);

/* The next one after `seen`, which is moved on. Returns the number and writes which card it is, or returns 0 when there
   is nothing new. Cards that this process was not given are passed over. */
int faults_next(off_t *seen, const card_t **card);

#endif
