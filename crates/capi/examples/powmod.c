/* Computes a batch of 2048-bit powers. Each line of the input has base, exponent and modulus, in
 * 512 hexadecimal digits each; each line of the output has a power. At most 1024 lines are read.
 * Option: --gpus, to compute on GPUs if that is faster. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "batch_modexp.h"

enum { COUNT = 1024, WIDTH = 256 };

static uint8_t bases[COUNT * WIDTH], exponents[COUNT * WIDTH], moduli[COUNT * WIDTH], powers[COUNT * WIDTH];
static int32_t statuses[COUNT];

static int read_number(uint8_t *octets) {
  char text[2 * WIDTH + 1];
  size_t i;
  unsigned octet;
  if (scanf("%512s", text) != 1 || strlen(text) != 2 * WIDTH) return 0;
  for (i = 0; i < WIDTH; i++) {
    if (sscanf(text + 2 * i, "%2x", &octet) != 1) return 0;
    octets[i] = (uint8_t)octet;
  }
  return 1;
}

int main(int argc, char **argv) {
  const int gpus = argc > 1 && strcmp(argv[1], "--gpus") == 0;
  bme_engine *engine;
  size_t count = 0, i, j;
  while (count < COUNT && read_number(bases + count * WIDTH) && read_number(exponents + count * WIDTH) &&
         read_number(moduli + count * WIDTH)) {
    count++;
  }
  if ((gpus ? bme_engine_new_gpus(0, NULL, 0, &engine) : bme_engine_new(0, &engine)) != BME_OK ||
      bme_pow(engine, count, WIDTH, WIDTH, bases, exponents, moduli, powers, statuses) != BME_OK) {
    fprintf(stderr, "%s\n", bme_last_error());
    return 1;
  }
  for (i = 0; i < count; i++) {
    if (statuses[i] != BME_OK) {
      printf("even modulus\n");
      continue;
    }
    for (j = 0; j < WIDTH; j++) printf("%02x", powers[i * WIDTH + j]);
    printf("\n");
  }
  bme_engine_free(engine);
  return 0;
}
