/* Mistakes that AddressSanitizer must report in the other tests, here made on purpose:
 *
 *   leak KEY.pem    a queue with its engine and its key are not freed
 *   write KEY.pem   the library writes a signature to a place that is too short
 *   read KEY.pem    the library reads a digest that ends too early
 */
#include <string.h>

#include "batch_modexp.h"
#include "check.h"

static void make(const char *path, bme_engine **engine, bme_key **key) {
  static uint8_t pem[16384];
  FILE *file = fopen(path, "rb");
  CHECK(file != NULL);
  CHECK(bme_key_from_pem(pem, fread(pem, 1, sizeof pem, file), NULL, 0, key) == BME_OK);
  fclose(file);
  CHECK(bme_engine_new(1, engine) == BME_OK);
}

static void leak(const char *path) {
  bme_engine *engine;
  bme_queue *queue;
  bme_key *key;
  make(path, &engine, &key);
  CHECK(bme_queue_new(engine, NULL, &queue) == BME_OK);
}

static void sign(const char *path, size_t digest_len, size_t signature_len) {
  bme_sign_item item;
  bme_engine *engine;
  bme_key *key;
  make(path, &engine, &key);
  memset(&item, 0, sizeof item);
  item.key = key;
  item.message = (uint8_t *)calloc(digest_len, 1);
  item.message_len = 32;
  item.signature = (uint8_t *)malloc(signature_len);
  item.signature_len = 256;
  bme_sign(engine, BME_PKCS1V15 | BME_SHA256 | BME_PREHASHED, &item, 1, sizeof item);
}

int main(int argc, char **argv) {
  CHECK(argc == 3);
  if (strcmp(argv[1], "leak") == 0) leak(argv[2]);
  if (strcmp(argv[1], "write") == 0) sign(argv[2], 32, 255);
  if (strcmp(argv[1], "read") == 0) sign(argv[2], 31, 256);
  return 0;
}
