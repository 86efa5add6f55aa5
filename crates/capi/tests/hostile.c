/* Wrong arguments of every kind, bad items among good ones, and several threads: KEY ENCRYPTED-KEY */
#include <pthread.h>
#include <string.h>

#include "batch_modexp.h"
#include "check.h"

static uint8_t pem[16384];
static size_t pem_len;
static bme_engine *engine;
static bme_key *key;
static bme_public_key *public_key;

static void read_file(const char *path) {
  FILE *file = fopen(path, "rb");
  CHECK(file != NULL);
  pem_len = fread(pem, 1, sizeof pem, file);
  fclose(file);
}

static void keys(const char *path, const char *encrypted) {
  const uint8_t n[128] = {0x80}, e[1] = {3}, one[1] = {1};
  bme_key *other = (bme_key *)pem;
  bme_public_key *other_public = NULL;
  CHECK(bme_engine_new(NULL) == BME_ERROR_ARGUMENT);
  CHECK(bme_engine_new(&engine) == BME_OK);
  read_file(encrypted);
  CHECK(bme_key_from_pem(pem, pem_len, (const uint8_t *)"wrong", 5, &other) == BME_ERROR_KEY && other == NULL);
  CHECK(bme_key_from_pem(pem, pem_len, (const uint8_t *)"correct horse", 13, &other) == BME_OK);
  bme_key_free(other);
  read_file(path);
  CHECK(bme_key_from_pem(NULL, 5, NULL, 0, &other) == BME_ERROR_ARGUMENT && other == NULL);
  CHECK(bme_key_from_pem(pem, (size_t)-1, NULL, 0, &other) == BME_ERROR_ARGUMENT);
  CHECK(bme_key_from_pem(pem, pem_len, NULL, 0, NULL) == BME_ERROR_ARGUMENT);
  CHECK(bme_key_from_pem(pem, pem_len / 2, NULL, 0, &other) == BME_ERROR_KEY);
  CHECK(bme_key_from_der(pem, pem_len, &other) == BME_ERROR_KEY);
  CHECK(strlen(bme_last_error()) > 0);
  CHECK(bme_key_from_pem(pem, pem_len, NULL, 0, &key) == BME_OK);
  CHECK(bme_key_public(NULL, &public_key) == BME_ERROR_ARGUMENT);
  CHECK(bme_key_public(key, &public_key) == BME_OK);
  CHECK(bme_key_size(key) == 256 && bme_public_key_size(public_key) == 256);
  CHECK(bme_key_size(NULL) == 0 && bme_public_key_size(NULL) == 0);
  CHECK(bme_public_key_from_pem(pem, pem_len, &other_public) == BME_ERROR_KEY);
  CHECK(bme_public_key_from_der(pem, pem_len, &other_public) == BME_ERROR_KEY);
  CHECK(bme_public_key_from_numbers(n, 128, e, 1, &other_public) == BME_ERROR_KEY);
  CHECK(bme_public_key_from_numbers(n, 128, one, 1, &other_public) == BME_ERROR_KEY);
  CHECK(bme_public_key_from_numbers(n, 0, e, 0, &other_public) == BME_ERROR_KEY && other_public == NULL);
  bme_key_free(NULL);
  bme_public_key_free(NULL);
  bme_engine_free(NULL);
}

static void signatures(void) {
  uint8_t octets[256];
  bme_sign_item items[3];
  bme_verify_item signed_items[4];
  const int32_t scheme = BME_PSS_SHA256;
  memset(items, 0, sizeof items);
  memset(signed_items, 0, sizeof signed_items);
  items[1].key = key;
  items[1].message = (const uint8_t *)"message";
  items[1].message_len = 7;
  items[1].signature = octets;
  items[1].signature_len = 256;
  items[2] = items[1];
  items[2].signature_len--;
  CHECK(bme_sign(engine, 4, items, 3) == BME_ERROR_ARGUMENT);
  CHECK(bme_sign(engine, 8, items, 3) == BME_ERROR_ARGUMENT);
  CHECK(bme_sign(engine, -1, items, 3) == BME_ERROR_ARGUMENT);
  CHECK(bme_sign(engine, scheme, items, (size_t)-1) == BME_ERROR_ARGUMENT);
  CHECK(bme_sign(engine, scheme, NULL, 3) == BME_ERROR_ARGUMENT);
  CHECK(bme_sign(NULL, scheme, items, 3) == BME_ERROR_ARGUMENT);
  CHECK(bme_sign(engine, scheme, NULL, 0) == BME_OK);
  CHECK(bme_sign(engine, scheme, items, 3) == BME_OK);
  CHECK(items[0].status == BME_ERROR_ARGUMENT && items[2].status == BME_ERROR_ARGUMENT);
  CHECK(items[1].status == BME_OK);

  signed_items[1].key = public_key;
  signed_items[1].message = (const uint8_t *)"message";
  signed_items[1].message_len = 7;
  signed_items[1].signature = octets;
  signed_items[1].signature_len = 256;
  signed_items[2] = signed_items[3] = signed_items[1];
  signed_items[2].message_len = 6;
  signed_items[3].signature_len = 255;
  CHECK(bme_verify(NULL, scheme, signed_items, 4) == BME_ERROR_ARGUMENT);
  CHECK(bme_verify(engine, scheme, NULL, 4) == BME_ERROR_ARGUMENT);
  CHECK(bme_verify(engine, scheme, signed_items, (size_t)-1) == BME_ERROR_ARGUMENT);
  CHECK(bme_verify(engine, scheme, signed_items, 4) == BME_OK);
  CHECK(signed_items[0].status == BME_ERROR_ARGUMENT && signed_items[1].status == BME_OK);
  CHECK(signed_items[2].status == BME_ERROR_SIGNATURE && signed_items[3].status == BME_ERROR_SIGNATURE);
}

static void powers(void) {
  /* 2^10 mod 1001, an even modulus, and 7^0 mod 1. */
  const uint8_t bases[6] = {0, 2, 0, 3, 0, 7}, exponents[3] = {10, 10, 0};
  const uint8_t moduli[6] = {3, 0xe9, 3, 0xe8, 0, 1};
  uint8_t out[6] = {9, 9, 9, 9, 9, 9};
  const uint8_t expected[6] = {0, 23, 9, 9, 0, 0};
  int32_t statuses[3];
  const size_t most = (size_t)-1;
  CHECK(bme_pow(engine, 3, 0, 1, bases, exponents, moduli, out, statuses) == BME_ERROR_ARGUMENT);
  CHECK(bme_pow(engine, 3, 2, 0, bases, exponents, moduli, out, statuses) == BME_ERROR_ARGUMENT);
  CHECK(bme_pow(engine, 3, 2049, 1, bases, exponents, moduli, out, statuses) == BME_ERROR_ARGUMENT);
  CHECK(bme_pow(engine, most, 2, 1, bases, exponents, moduli, out, statuses) == BME_ERROR_ARGUMENT);
  CHECK(bme_pow(engine, most / 2, 2, 1, bases, exponents, moduli, out, statuses) == BME_ERROR_ARGUMENT);
  CHECK(bme_pow(NULL, 3, 2, 1, bases, exponents, moduli, out, statuses) == BME_ERROR_ARGUMENT);
  CHECK(bme_pow(engine, 3, 2, 1, NULL, exponents, moduli, out, statuses) == BME_ERROR_ARGUMENT);
  CHECK(bme_pow(engine, 3, 2, 1, bases, NULL, moduli, out, statuses) == BME_ERROR_ARGUMENT);
  CHECK(bme_pow(engine, 3, 2, 1, bases, exponents, NULL, out, statuses) == BME_ERROR_ARGUMENT);
  CHECK(bme_pow(engine, 3, 2, 1, bases, exponents, moduli, NULL, statuses) == BME_ERROR_ARGUMENT);
  CHECK(bme_pow(engine, 3, 2, 1, bases, exponents, moduli, out, NULL) == BME_ERROR_ARGUMENT);
  CHECK(bme_pow(engine, 0, 2, 1, NULL, NULL, NULL, NULL, NULL) == BME_OK);
  CHECK(bme_pow(engine, 3, 2, 1, bases, exponents, moduli, out, statuses) == BME_OK);
  CHECK(statuses[0] == BME_OK && statuses[1] == BME_ERROR_ARGUMENT && statuses[2] == BME_OK);
  CHECK(memcmp(out, expected, 6) == 0);
}

static void *work(void *unused) {
  int i;
  for (i = 0; i < 5; i++) {
    signatures();
    powers();
  }
  return unused;
}

int main(int argc, char **argv) {
  pthread_t threads[4];
  int i;
  CHECK(argc == 3);
  keys(argv[1], argv[2]);
  for (i = 0; i < 4; i++) CHECK(pthread_create(&threads[i], NULL, work, NULL) == 0);
  for (i = 0; i < 4; i++) CHECK(pthread_join(threads[i], NULL) == 0);
  bme_key_free(key);
  bme_public_key_free(public_key);
  bme_engine_free(engine);
  return 0;
}
