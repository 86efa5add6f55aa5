/* Wrong arguments of every kind, bad items among good ones, and several threads: KEY ENCRYPTED-KEY */
#include <dirent.h>
#include <pthread.h>
#include <string.h>

#include "batch_modexp.h"
#include "check.h"

static uint8_t pem[16384];
static size_t pem_len;
static bme_engine *engine;
static bme_key *key, *small_key;
static bme_public_key *public_key, *small_public_key;

static void read_file(const char *path) {
  FILE *file = fopen(path, "rb");
  CHECK(file != NULL);
  pem_len = fread(pem, 1, sizeof pem, file);
  fclose(file);
}

/* The threads of the process. */
static int tasks(void) {
  DIR *folder = opendir("/proc/self/task");
  int count = 0;
  CHECK(folder != NULL);
  while (readdir(folder) != NULL) count++;
  closedir(folder);
  return count;
}

static void threads_of_engines(void) {
  const int none = tasks();
  bme_engine *two, *five;
  int with_two;
  CHECK(bme_engine_new(2, &two) == BME_OK);
  with_two = tasks();
  CHECK(bme_engine_new(5, &five) == BME_OK);
  CHECK(tasks() - with_two == with_two - none + 3);
  bme_engine_free(two);
  bme_engine_free(five);
}

static void gpus(void) {
  const uint32_t none = 1000000;
  CHECK(bme_engine_new_gpus(0, NULL, 0, NULL) == BME_ERROR_ARGUMENT);
  CHECK(bme_engine_new_gpus(0, NULL, 1, &engine) == BME_ERROR_ARGUMENT && engine == NULL);
  CHECK(bme_engine_new_gpus(1025, NULL, 0, &engine) == BME_ERROR_ARGUMENT);
  engine = (bme_engine *)pem;
  CHECK(bme_engine_new_gpus(0, &none, 1, &engine) == BME_ERROR_OPERATION && engine == NULL);
  CHECK(strstr(bme_last_error(), "no GPU can be used: ") != NULL);
}

static void keys(const char *path, const char *encrypted) {
  const uint8_t n[128] = {0x80}, e[1] = {3}, one[1] = {1};
  bme_key *other = (bme_key *)pem;
  bme_public_key *other_public = NULL;
  CHECK(bme_engine_new(0, NULL) == BME_ERROR_ARGUMENT);
  CHECK(bme_engine_new((size_t)-1, &engine) == BME_ERROR_ARGUMENT && engine == NULL);
  CHECK(bme_engine_new(1025, &engine) == BME_ERROR_ARGUMENT);
  CHECK(bme_engine_new(0, &engine) == BME_OK);
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

static void key_numbers(void) {
  const uint8_t n[128] = {0x80};
  bme_octets octets;
  bme_key_numbers numbers;
  bme_key *other = (bme_key *)&numbers;
  size_t len = 7;
  memset(&numbers, 0, sizeof numbers);
  octets.data = n;
  octets.len = 128;
  CHECK(bme_key_from_numbers(NULL, &other) == BME_ERROR_ARGUMENT && other == NULL);
  CHECK(bme_key_from_numbers(&numbers, &other) == BME_ERROR_ARGUMENT);
  numbers.size = sizeof numbers;
  CHECK(bme_key_from_numbers(&numbers, NULL) == BME_ERROR_ARGUMENT);
  CHECK(bme_key_from_numbers(&numbers, &other) == BME_ERROR_KEY);
  numbers.n = numbers.e = numbers.d = octets;
  CHECK(bme_key_from_numbers(&numbers, &other) == BME_ERROR_KEY);
  numbers.dq = octets; /* without primes */
  CHECK(bme_key_from_numbers(&numbers, &other) == BME_ERROR_ARGUMENT);
  numbers.p = octets;
  CHECK(bme_key_from_numbers(&numbers, &other) == BME_ERROR_ARGUMENT);
  numbers.q = octets;
  CHECK(bme_key_from_numbers(&numbers, &other) == BME_ERROR_KEY);
  numbers.q.len = (size_t)-1;
  CHECK(bme_key_from_numbers(&numbers, &other) == BME_ERROR_ARGUMENT);
  numbers.q.data = NULL;
  CHECK(bme_key_from_numbers(&numbers, &other) == BME_ERROR_ARGUMENT && other == NULL);
  CHECK(bme_public_key_der(NULL, &len) == NULL && len == 7);
  CHECK(bme_public_key_der(public_key, NULL) == NULL);
  CHECK(bme_public_key_der(public_key, &len) != NULL && len > 256);
}

static void signatures(void) {
  /* SHA-1 is for OAEP; the others are no schemes. */
  static const int32_t unknown[] = {0, 2, BME_PSS, BME_PSS | 12, BME_PSS | BME_SHA1, BME_OAEP | BME_SHA256, 64 | BME_SHA256,
                                    BME_PSS | BME_SHA256 | 512, -1};
  uint8_t octets[256], digest[33] = {0};
  size_t i;
  bme_sign_item items[3];
  bme_verify_item signed_items[4];
  const int32_t scheme = BME_PSS | BME_SHA256;
  memset(items, 0, sizeof items);
  memset(signed_items, 0, sizeof signed_items);
  items[1].key = key;
  items[1].message = (const uint8_t *)"message";
  items[1].message_len = 7;
  items[1].signature = octets;
  items[1].signature_len = 256;
  items[2] = items[1];
  items[2].signature_len--;
  for (i = 0; i < sizeof unknown / sizeof *unknown; i++) {
    CHECK(bme_sign(engine, unknown[i], items, 3, sizeof(bme_sign_item)) == BME_ERROR_ARGUMENT);
    CHECK(bme_verify(engine, unknown[i], signed_items, 4, sizeof(bme_verify_item)) == BME_ERROR_ARGUMENT);
  }
  CHECK(bme_sign(engine, scheme, items, 3, sizeof(bme_sign_item) + 8) == BME_ERROR_ARGUMENT);
  CHECK(bme_sign(engine, scheme, items, 3, 0) == BME_ERROR_ARGUMENT);
  CHECK(bme_sign(engine, scheme, (bme_sign_item *)((char *)items + 1), 2, sizeof(bme_sign_item)) == BME_ERROR_ARGUMENT);
  CHECK(bme_sign(engine, scheme, items, (size_t)-1, sizeof(bme_sign_item)) == BME_ERROR_ARGUMENT);
  CHECK(bme_sign(engine, scheme, NULL, 3, sizeof(bme_sign_item)) == BME_ERROR_ARGUMENT);
  CHECK(bme_sign(NULL, scheme, items, 3, sizeof(bme_sign_item)) == BME_ERROR_ARGUMENT);
  CHECK(bme_sign(engine, scheme, NULL, 0, sizeof(bme_sign_item)) == BME_OK);
  CHECK(bme_sign(engine, scheme, items, 3, sizeof(bme_sign_item)) == BME_OK);
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
  CHECK(bme_verify(NULL, scheme, signed_items, 4, sizeof(bme_verify_item)) == BME_ERROR_ARGUMENT);
  CHECK(bme_verify(engine, scheme, NULL, 4, sizeof(bme_verify_item)) == BME_ERROR_ARGUMENT);
  CHECK(bme_verify(engine, scheme, signed_items, (size_t)-1, sizeof(bme_verify_item)) == BME_ERROR_ARGUMENT);
  CHECK(bme_verify(engine, scheme, signed_items, 4, sizeof(bme_verify_item)) == BME_OK);
  CHECK(signed_items[0].status == BME_ERROR_ARGUMENT && signed_items[1].status == BME_OK);
  CHECK(signed_items[2].status == BME_ERROR_SIGNATURE && signed_items[3].status == BME_ERROR_SIGNATURE);
  CHECK(bme_verify(engine, scheme, signed_items, 4, sizeof(bme_sign_item) - 1) == BME_ERROR_ARGUMENT);

  /* Digests, of which two have a wrong length. */
  for (i = 0; i < 3; i++) {
    items[i] = items[1];
    items[i].message = signed_items[i].message = digest;
    items[i].message_len = signed_items[i].message_len = 31 + i;
  }
  CHECK(bme_sign(engine, scheme | BME_PREHASHED, items, 3, sizeof(bme_sign_item)) == BME_OK);
  CHECK(items[0].status == BME_ERROR_ARGUMENT && items[1].status == BME_OK && items[2].status == BME_ERROR_ARGUMENT);
  signed_items[0] = signed_items[2] = signed_items[1];
  signed_items[0].message_len--;
  signed_items[2].message_len++;
  CHECK(bme_verify(engine, scheme | BME_PREHASHED, signed_items, 3, sizeof(bme_verify_item)) == BME_OK);
  CHECK(signed_items[0].status == BME_ERROR_ARGUMENT && signed_items[2].status == BME_ERROR_ARGUMENT);
  CHECK(signed_items[1].status == BME_OK);
}

static void encryption(void) {
  const size_t most = (size_t)-1, size = sizeof(bme_encrypt_item), decrypt_size = sizeof(bme_decrypt_item);
  uint8_t octets[256], message[300];
  bme_encryption scheme, other;
  bme_encrypt_item items[4];
  bme_decrypt_item opened[5];
  memset(&scheme, 0, sizeof scheme);
  memset(items, 0, sizeof items);
  memset(opened, 0, sizeof opened);
  memset(message, 7, sizeof message);
  scheme.size = sizeof scheme;
  scheme.scheme = BME_OAEP | BME_SHA256;
  items[1].key = public_key;
  items[1].message = message;
  items[1].message_len = 256 - 66; /* the most that OAEP takes */
  items[1].ciphertext = octets;
  items[1].ciphertext_len = 256;
  items[2] = items[3] = items[1];
  items[2].message_len++;
  items[3].ciphertext_len--;
  CHECK(bme_encrypt(engine, NULL, items, 4, size) == BME_ERROR_ARGUMENT);
  CHECK(bme_encrypt(NULL, &scheme, items, 4, size) == BME_ERROR_ARGUMENT);
  CHECK(bme_encrypt(engine, &scheme, NULL, 4, size) == BME_ERROR_ARGUMENT);
  CHECK(bme_encrypt(engine, &scheme, items, most, size) == BME_ERROR_ARGUMENT);
  CHECK(bme_encrypt(engine, &scheme, items, 4, size - 1) == BME_ERROR_ARGUMENT);
  CHECK(bme_encrypt(engine, &scheme, NULL, 0, size) == BME_OK);
  other = scheme;
  other.size--;
  CHECK(bme_encrypt(engine, &other, items, 4, size) == BME_ERROR_ARGUMENT);
  other = scheme;
  other.scheme = BME_PSS | BME_SHA256;
  CHECK(bme_encrypt(engine, &other, items, 4, size) == BME_ERROR_ARGUMENT);
  other.scheme = BME_OAEP;
  CHECK(bme_encrypt(engine, &other, items, 4, size) == BME_ERROR_ARGUMENT);
  other.scheme = BME_OAEP | BME_SHA256 | BME_PREHASHED;
  CHECK(bme_encrypt(engine, &other, items, 4, size) == BME_ERROR_ARGUMENT);
  other.scheme = BME_PKCS1V15 | BME_SHA256;
  CHECK(bme_encrypt(engine, &other, items, 4, size) == BME_ERROR_ARGUMENT);
  other = scheme;
  other.mgf_hash = 12;
  CHECK(bme_decrypt(engine, &other, opened, 5, decrypt_size) == BME_ERROR_ARGUMENT);
  other = scheme;
  other.label_len = 1;
  CHECK(bme_decrypt(engine, &other, opened, 5, decrypt_size) == BME_ERROR_ARGUMENT);
  other.label_len = most;
  other.label = message;
  CHECK(bme_decrypt(engine, &other, opened, 5, decrypt_size) == BME_ERROR_ARGUMENT);
  CHECK(bme_encrypt(engine, &scheme, items, 4, size) == BME_OK);
  CHECK(items[0].status == BME_ERROR_ARGUMENT && items[1].status == BME_OK);
  CHECK(items[2].status == BME_ERROR_ARGUMENT && items[3].status == BME_ERROR_ARGUMENT);

  opened[1].key = key;
  opened[1].ciphertext = octets;
  opened[1].ciphertext_len = 256;
  opened[1].message = message;
  opened[1].message_capacity = 256;
  opened[2] = opened[3] = opened[4] = opened[1];
  opened[2].ciphertext_len--;
  opened[3].message_capacity--;
  opened[4].ciphertext = opened[4].message = message + 40;
  memset(message, 0xff, sizeof message); /* above the modulus */
  CHECK(bme_decrypt(engine, &scheme, opened, 5, decrypt_size + 8) == BME_ERROR_ARGUMENT);
  CHECK(bme_decrypt(NULL, &scheme, opened, 5, decrypt_size) == BME_ERROR_ARGUMENT);
  CHECK(bme_decrypt(engine, NULL, opened, 5, decrypt_size) == BME_ERROR_ARGUMENT);
  CHECK(bme_decrypt(engine, &scheme, opened, most, decrypt_size) == BME_ERROR_ARGUMENT);
  CHECK(bme_decrypt(engine, &scheme, opened, 5, decrypt_size) == BME_OK);
  CHECK(opened[0].status == BME_ERROR_ARGUMENT && opened[1].status == BME_OK && opened[1].message_len == 190);
  CHECK(opened[2].status == BME_ERROR_DECRYPTION && opened[2].message_len == 0);
  CHECK(opened[3].status == BME_ERROR_ARGUMENT && opened[4].status == BME_ERROR_DECRYPTION);
  CHECK(message[0] == 7 && message[189] == 7 && message[190] == 0xff);
}

static void generation(void) {
  static uint8_t documents[2 * BME_PKCS8_SIZE(1024)];
  const size_t size = BME_PKCS8_SIZE(1024);
  size_t lens[2] = {0, 0};
  bme_key *other;
  CHECK(bme_generate_keys(NULL, 1024, 2, documents, size, lens) == BME_ERROR_ARGUMENT);
  CHECK(bme_generate_keys(engine, 1000, 2, documents, size, lens) == BME_ERROR_ARGUMENT);
  CHECK(bme_generate_keys(engine, 0xffffff80u, 2, documents, size, lens) == BME_ERROR_ARGUMENT);
  CHECK(bme_generate_keys(engine, 1024, 2, documents, size - 1, lens) == BME_ERROR_ARGUMENT);
  CHECK(bme_generate_keys(engine, 1024, (size_t)-1, documents, size, lens) == BME_ERROR_ARGUMENT);
  CHECK(bme_generate_keys(engine, 1024, 2, NULL, size, lens) == BME_ERROR_ARGUMENT);
  CHECK(bme_generate_keys(engine, 1024, 2, documents, size, NULL) == BME_ERROR_ARGUMENT);
  CHECK(bme_generate_keys(engine, 1024, 0, NULL, size, NULL) == BME_OK);
  CHECK(documents[0] == 0 && lens[0] == 0);
  CHECK(bme_generate_keys(engine, 1024, 2, documents, size, lens) == BME_OK);
  CHECK(lens[0] > size / 2 && lens[0] <= size && lens[1] > size / 2 && lens[1] <= size);
  CHECK(bme_key_from_der(documents, lens[0], &small_key) == BME_OK && bme_key_size(small_key) == 128);
  CHECK(bme_key_public(small_key, &small_public_key) == BME_OK);
  CHECK(bme_key_from_der(documents + size, lens[1], &other) == BME_OK);
  bme_key_free(other);
}

/* Keys of two sizes in a batch. The last signature is written over its message. */
static void sizes(void) {
  const bme_key *const keys[3] = {key, small_key, key};
  const bme_public_key *const public_keys[3] = {public_key, small_public_key, public_key};
  uint8_t octets[3][256] = {{1}, {2}, {3}}, message[256] = {3};
  bme_sign_item items[3];
  bme_verify_item signed_items[3];
  size_t i;
  for (i = 0; i < 3; i++) {
    items[i].key = keys[i];
    items[i].message = i == 2 ? octets[2] : message;
    items[i].message_len = 256;
    items[i].signature = octets[i];
    items[i].signature_len = bme_key_size(keys[i]);
  }
  CHECK(bme_sign(engine, BME_PKCS1V15 | BME_SHA512, items, 3, sizeof *items) == BME_OK);
  for (i = 0; i < 3; i++) {
    CHECK(items[i].status == BME_OK);
    signed_items[i].key = public_keys[i];
    signed_items[i].message = message;
    signed_items[i].message_len = 256;
    signed_items[i].signature = octets[i];
    signed_items[i].signature_len = items[i].signature_len;
  }
  CHECK(bme_verify(engine, BME_PKCS1V15 | BME_SHA512, signed_items, 3, sizeof *signed_items) == BME_OK);
  for (i = 0; i < 3; i++) CHECK(signed_items[i].status == BME_OK);
  CHECK(memcmp(octets[0], octets[2], 256) == 0);
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

static void products(void) {
  /* 1000 * 1000 mod 1001, an even modulus, and 7 * 7 mod 1. */
  uint8_t a[6] = {3, 0xe8, 0, 3, 0, 7};
  const uint8_t moduli[6] = {3, 0xe9, 3, 0xe8, 0, 1}, expected[6] = {0, 1, 0, 3, 0, 0};
  int32_t statuses[3];
  const size_t most = (size_t)-1;
  CHECK(bme_mul(engine, 3, 0, a, a, moduli, a, statuses) == BME_ERROR_ARGUMENT);
  CHECK(bme_mul(engine, 3, 2049, a, a, moduli, a, statuses) == BME_ERROR_ARGUMENT);
  CHECK(bme_mul(engine, most, 2, a, a, moduli, a, statuses) == BME_ERROR_ARGUMENT);
  CHECK(bme_mul(engine, most / 2, 2, a, a, moduli, a, statuses) == BME_ERROR_ARGUMENT);
  CHECK(bme_mul(NULL, 3, 2, a, a, moduli, a, statuses) == BME_ERROR_ARGUMENT);
  CHECK(bme_mul(engine, 3, 2, NULL, a, moduli, a, statuses) == BME_ERROR_ARGUMENT);
  CHECK(bme_mul(engine, 3, 2, a, NULL, moduli, a, statuses) == BME_ERROR_ARGUMENT);
  CHECK(bme_mul(engine, 3, 2, a, a, NULL, a, statuses) == BME_ERROR_ARGUMENT);
  CHECK(bme_mul(engine, 3, 2, a, a, moduli, NULL, statuses) == BME_ERROR_ARGUMENT);
  CHECK(bme_mul(engine, 3, 2, a, a, moduli, a, NULL) == BME_ERROR_ARGUMENT);
  CHECK(bme_mul(engine, 0, 2, NULL, NULL, NULL, NULL, NULL) == BME_OK);
  CHECK(bme_mul(engine, 3, 2, a, a, moduli, a, statuses) == BME_OK);
  CHECK(statuses[0] == BME_OK && statuses[1] == BME_ERROR_ARGUMENT && statuses[2] == BME_OK);
  CHECK(memcmp(a, expected, 6) == 0);
}

static void *work(void *unused) {
  int i;
  for (i = 0; i < 5; i++) {
    signatures();
    sizes();
    encryption();
    powers();
    products();
  }
  return unused;
}

int main(int argc, char **argv) {
  pthread_t threads[4];
  int i;
  CHECK(argc == 3);
  threads_of_engines();
  gpus();
  keys(argv[1], argv[2]);
  key_numbers();
  generation();
  for (i = 0; i < 4; i++) CHECK(pthread_create(&threads[i], NULL, work, NULL) == 0);
  for (i = 0; i < 4; i++) CHECK(pthread_join(threads[i], NULL) == 0);
  bme_key_free(key);
  bme_key_free(small_key);
  bme_public_key_free(public_key);
  bme_public_key_free(small_public_key);
  bme_engine_free(engine);
  return 0;
}
