/* Compares results of an engine with GPUs with those of one without: KEY.pem
 *
 * Without GPUs it says why and does nothing, unless BATCH_MODEXP_REQUIRE has "cuda". */
#include <stdlib.h>
#include <string.h>

#include "batch_modexp.h"
#include "check.h"

/* Enough to be faster on a GPU than on many cores. */
enum { COUNT = 4096, WIDTH = 256 };

static bme_engine *gpus, *cpu;
static uint8_t pem[16384], messages[COUNT][4], signatures[COUNT * WIDTH];
static uint8_t bases[COUNT * WIDTH], exponents[COUNT * WIDTH], moduli[COUNT * WIDTH];
static uint8_t powers[COUNT * WIDTH], expected[COUNT * WIDTH];
static int32_t statuses[COUNT];

static void check_signatures(const bme_key *key, const bme_public_key *public_key, int32_t scheme) {
  static bme_sign_item items[COUNT];
  static bme_verify_item verified[COUNT];
  size_t i;
  int on_gpus;
  for (i = 0; i < COUNT; i++) {
    memcpy(messages[i], &i, sizeof messages[i]);
    items[i].key = key;
    items[i].message = messages[i];
    items[i].message_len = sizeof messages[i];
    items[i].signature = signatures + i * WIDTH;
    items[i].signature_len = WIDTH;
  }
  CHECK(bme_sign(gpus, scheme, items, COUNT, sizeof *items) == BME_OK);
  for (i = 0; i < COUNT; i++) CHECK(items[i].status == BME_OK);
  /* The signature of the last message is that of another one. */
  for (i = 0; i < COUNT; i++) {
    verified[i].key = public_key;
    verified[i].message = messages[i == COUNT - 1 ? 0 : i];
    verified[i].message_len = sizeof messages[i];
    verified[i].signature = signatures + i * WIDTH;
    verified[i].signature_len = WIDTH;
  }
  for (on_gpus = 0; on_gpus < 2; on_gpus++) {
    CHECK(bme_verify(on_gpus ? gpus : cpu, scheme, verified, COUNT, sizeof *verified) == BME_OK);
    for (i = 0; i < COUNT; i++) CHECK(verified[i].status == (i == COUNT - 1 ? BME_ERROR_SIGNATURE : BME_OK));
  }
}

static void check_powers(void) {
  size_t i;
  srand(1);
  for (i = 0; i < COUNT * WIDTH; i++) {
    bases[i] = (uint8_t)(rand() >> 7);
    exponents[i] = (uint8_t)(rand() >> 7);
    moduli[i] = (uint8_t)(rand() >> 7);
  }
  for (i = 0; i < COUNT; i++) moduli[i * WIDTH + WIDTH - 1] |= 1;
  CHECK(bme_pow(gpus, COUNT, WIDTH, WIDTH, bases, exponents, moduli, powers, statuses) == BME_OK);
  CHECK(bme_pow(cpu, COUNT, WIDTH, WIDTH, bases, exponents, moduli, expected, statuses) == BME_OK);
  CHECK(memcmp(powers, expected, sizeof powers) == 0);
}

int main(int argc, char **argv) {
  const char *required = getenv("BATCH_MODEXP_REQUIRE");
  const uint32_t first = 0;
  bme_public_key *public_key;
  bme_key *key;
  FILE *file;
  CHECK(argc == 2);
  if (bme_engine_new_gpus(0, NULL, 0, &gpus) != BME_OK) {
    CHECK(required == NULL || strstr(required, "cuda") == NULL);
    fprintf(stderr, "skipped: gpus: needs cuda: %s\n", bme_last_error());
    return 0;
  }
  CHECK(bme_engine_new(0, &cpu) == BME_OK);
  file = fopen(argv[1], "rb");
  CHECK(file != NULL);
  CHECK(bme_key_from_pem(pem, fread(pem, 1, sizeof pem, file), NULL, 0, &key) == BME_OK);
  fclose(file);
  CHECK(bme_key_size(key) == WIDTH && bme_key_public(key, &public_key) == BME_OK);
  check_signatures(key, public_key, BME_PKCS1V15 | BME_SHA256);
  check_signatures(key, public_key, BME_PSS | BME_SHA256);
  check_powers();
  bme_engine_free(gpus);
  CHECK(bme_engine_new_gpus(2, &first, 1, &gpus) == BME_OK);
  check_signatures(key, public_key, BME_PSS | BME_SHA512);
  bme_key_free(key);
  bme_public_key_free(public_key);
  bme_engine_free(gpus);
  bme_engine_free(cpu);
  printf("results of GPUs agree with those of the processor\n");
  return 0;
}
