/* Ends the program unless a condition holds. */
#ifndef CHECK_H
#define CHECK_H

#include <stdio.h>
#include <stdlib.h>

#define CHECK(c)                                                                        \
  if (!(c)) {                                                                           \
    fprintf(stderr, "%s:%d: %s (%s)\n", __FILE__, __LINE__, #c, bme_last_error());      \
    exit(1);                                                                            \
  }

#endif
