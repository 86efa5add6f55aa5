/* Signs a message among bad items: KEY MESSAGE SIGNATURE SCHEME */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "batch_modexp.h"

#define CHECK(c) if (!(c)) { fprintf(stderr, "line %d: %s (%s)\n", __LINE__, #c, bme_last_error()); return 1; }

int main(int argc, char **argv) {
  static uint8_t pem[16384], signature[1024];
  bme_engine *engine;
  bme_key *key;
  bme_sign_item items[3];
  FILE *file;
  size_t len;
  int32_t scheme;
  CHECK(argc == 5);
  scheme = atoi(argv[4]);
  CHECK((file = fopen(argv[1], "rb")) != NULL);
  len = fread(pem, 1, sizeof pem, file);
  fclose(file);
  CHECK(bme_engine_new(NULL) == BME_ERROR_ARGUMENT);
  CHECK(bme_engine_new(&engine) == BME_OK);
  CHECK(bme_key_from_pem(NULL, 5, NULL, 0, &key) == BME_ERROR_ARGUMENT);
  CHECK(bme_key_from_pem(pem, len / 2, NULL, 0, &key) == BME_ERROR_KEY && key == NULL);
  CHECK(bme_key_from_pem(pem, len, NULL, 0, &key) == BME_OK);
  memset(items, 0, sizeof items);
  items[1].key = key;
  items[1].message = (const uint8_t *)argv[2];
  items[1].message_len = strlen(argv[2]);
  items[1].signature = signature;
  items[1].signature_len = bme_key_size(key);
  items[2] = items[1];
  items[2].signature_len--;
  CHECK(bme_sign(engine, 4, items, 3) == BME_ERROR_ARGUMENT);
  CHECK(bme_sign(engine, scheme, items, (size_t)-1) == BME_ERROR_ARGUMENT);
  CHECK(bme_sign(NULL, scheme, items, 3) == BME_ERROR_ARGUMENT);
  CHECK(bme_sign(engine, scheme, items, 3) == BME_OK);
  CHECK(items[0].status == BME_ERROR_ARGUMENT && items[2].status == BME_ERROR_ARGUMENT);
  CHECK(items[1].status == BME_OK);
  CHECK((file = fopen(argv[3], "wb")) != NULL);
  CHECK(fwrite(signature, 1, items[1].signature_len, file) == items[1].signature_len);
  fclose(file);
  bme_key_free(key);
  bme_engine_free(engine);
  return 0;
}
