/* Functions whose results OpenSSL and Python check. Standard input and output have the octets:
 *
 *   encrypt | decrypt KEY.pem SCHEME MGF-HASH LABEL
 *   sign | verify KEY.pem SCHEME [SIGNATURE]    the scheme is that of bme_sign, of a message or a digest
 *   numbers PARTS NUMBER...                     signs a digest with a key of n, e, d, p, q, dP, dQ, qInv in hexadecimal
 *   generate BITS                               two keys, of which the second is written
 *   public KEY.pem                              SubjectPublicKeyInfo
 *   multiply                                    a, b and moduli of 512 hexadecimal digits */
#include <string.h>

#include "batch_modexp.h"
#include "check.h"

enum { WIDTH = 256, MOST = 1024 };

static uint8_t input[65536], output[65536];
static size_t input_len;
static bme_engine *engine;

static size_t read_file(const char *path, uint8_t *octets, size_t size) {
  FILE *file = fopen(path, "rb");
  size_t len;
  CHECK(file != NULL);
  len = fread(octets, 1, size, file);
  fclose(file);
  return len;
}

static bme_key *private_key(const char *path) {
  static uint8_t pem[16384];
  bme_key *key;
  CHECK(bme_key_from_pem(pem, read_file(path, pem, sizeof pem), NULL, 0, &key) == BME_OK);
  return key;
}

static bme_public_key *public_key(const char *path) {
  static uint8_t pem[16384];
  bme_public_key *key;
  CHECK(bme_public_key_from_pem(pem, read_file(path, pem, sizeof pem), &key) == BME_OK);
  return key;
}

static void encryption(char **argv, int is_encrypting) {
  bme_encryption scheme;
  memset(&scheme, 0, sizeof scheme);
  scheme.size = sizeof scheme;
  scheme.scheme = atoi(argv[1]);
  scheme.mgf_hash = atoi(argv[2]);
  scheme.label = (const uint8_t *)argv[3];
  scheme.label_len = strlen(argv[3]);
  if (is_encrypting) {
    bme_public_key *key = public_key(argv[0]);
    bme_encrypt_item item;
    memset(&item, 0, sizeof item);
    item.key = key;
    item.message = input;
    item.message_len = input_len;
    item.ciphertext = output;
    item.ciphertext_len = bme_public_key_size(key);
    CHECK(bme_encrypt(engine, &scheme, &item, 1, sizeof item) == BME_OK && item.status == BME_OK);
    fwrite(output, 1, item.ciphertext_len, stdout);
    bme_public_key_free(key);
  } else {
    bme_key *key = private_key(argv[0]);
    bme_decrypt_item item;
    memset(&item, 0, sizeof item);
    item.key = key;
    item.ciphertext = input;
    item.ciphertext_len = input_len;
    item.message = input; /* in place */
    item.message_capacity = sizeof input;
    CHECK(bme_decrypt(engine, &scheme, &item, 1, sizeof item) == BME_OK);
    if (item.status == BME_OK) fwrite(input, 1, item.message_len, stdout);
    fprintf(stderr, "%d\n", (int)item.status);
    bme_key_free(key);
  }
}

static void sign(bme_key *key, int32_t scheme) {
  bme_sign_item item;
  memset(&item, 0, sizeof item);
  item.key = key;
  item.message = input;
  item.message_len = input_len;
  item.signature = output;
  item.signature_len = bme_key_size(key);
  CHECK(bme_sign(engine, scheme, &item, 1, sizeof item) == BME_OK && item.status == BME_OK);
  fwrite(output, 1, item.signature_len, stdout);
  bme_key_free(key);
}

static void verify(char **argv) {
  static uint8_t signature[2048];
  bme_public_key *key = public_key(argv[0]);
  bme_verify_item item;
  memset(&item, 0, sizeof item);
  item.key = key;
  item.message = input;
  item.message_len = input_len;
  item.signature = signature;
  item.signature_len = read_file(argv[2], signature, sizeof signature);
  CHECK(bme_verify(engine, atoi(argv[1]), &item, 1, sizeof item) == BME_OK);
  printf("%d\n", (int)item.status);
  bme_public_key_free(key);
}

/* Octets of a hexadecimal number; the caller frees them. */
static bme_octets octets(const char *text) {
  const size_t digits = strlen(text);
  uint8_t *data = (uint8_t *)malloc(digits + 1);
  bme_octets number;
  unsigned octet;
  size_t i;
  CHECK(data != NULL && digits % 2 == 0);
  for (i = 0; i < digits / 2; i++) {
    CHECK(sscanf(text + 2 * i, "%2x", &octet) == 1);
    data[i] = (uint8_t)octet;
  }
  number.data = data;
  number.len = digits / 2;
  return number;
}

static void numbers(int parts, char **texts) {
  bme_key_numbers key_numbers;
  bme_octets *const all[8] = {&key_numbers.n, &key_numbers.e, &key_numbers.d, &key_numbers.p,
                              &key_numbers.q, &key_numbers.dp, &key_numbers.dq, &key_numbers.qinv};
  bme_key *key;
  int i;
  memset(&key_numbers, 0, sizeof key_numbers);
  key_numbers.size = sizeof key_numbers;
  for (i = 0; i < parts; i++) *all[i] = octets(texts[i]);
  CHECK(bme_key_from_numbers(&key_numbers, &key) == BME_OK);
  for (i = 0; i < parts; i++) free((void *)all[i]->data);
  sign(key, BME_PKCS1V15 | BME_SHA256 | BME_PREHASHED);
}

static void generate(uint32_t bits) {
  size_t lens[2];
  bme_key *key;
  int i;
  CHECK(bme_generate_keys(engine, bits, 2, output, BME_PKCS8_SIZE(bits), lens) == BME_OK);
  for (i = 0; i < 2; i++) {
    CHECK(bme_key_from_der(output + (size_t)i * BME_PKCS8_SIZE(bits), lens[i], &key) == BME_OK);
    CHECK(bme_key_size(key) == bits / 8);
    bme_key_free(key);
  }
  fwrite(output + BME_PKCS8_SIZE(bits), 1, lens[1], stdout);
}

static int read_number(uint8_t *place) {
  char text[2 * WIDTH + 1];
  unsigned octet;
  size_t i;
  if (scanf("%512s", text) != 1) return 0;
  for (i = 0; i < WIDTH; i++) {
    CHECK(sscanf(text + 2 * i, "%2x", &octet) == 1);
    place[i] = (uint8_t)octet;
  }
  return 1;
}

static void multiply(void) {
  static uint8_t a[MOST * WIDTH], b[MOST * WIDTH], moduli[MOST * WIDTH];
  static int32_t statuses[MOST];
  size_t count = 0, i, j;
  while (count < MOST && read_number(a + count * WIDTH)) {
    CHECK(read_number(b + count * WIDTH) && read_number(moduli + count * WIDTH));
    count++;
  }
  /* In place. */
  CHECK(count > 0 && bme_mul(engine, count, WIDTH, a, b, moduli, a, statuses) == BME_OK);
  for (i = 0; i < count; i++) {
    for (j = 0; statuses[i] == BME_OK && j < WIDTH; j++) printf("%02x", a[i * WIDTH + j]);
    printf("%s\n", statuses[i] == BME_OK ? "" : "even modulus");
  }
}

int main(int argc, char **argv) {
  const char *command = argc > 1 ? argv[1] : "";
  CHECK(bme_engine_new(1, &engine) == BME_OK);
  if (strcmp(command, "multiply") == 0) {
    multiply();
  } else if (strcmp(command, "generate") == 0 && argc == 3) {
    generate((uint32_t)atoi(argv[2]));
  } else {
    input_len = fread(input, 1, sizeof input, stdin);
    if (strcmp(command, "encrypt") == 0 && argc == 6) encryption(argv + 2, 1);
    else if (strcmp(command, "decrypt") == 0 && argc == 6) encryption(argv + 2, 0);
    else if (strcmp(command, "sign") == 0 && argc == 4) sign(private_key(argv[2]), atoi(argv[3]));
    else if (strcmp(command, "verify") == 0 && argc == 5) verify(argv + 2);
    else if (strcmp(command, "numbers") == 0 && argc > 4) numbers(argc - 2, argv + 2);
    else if (strcmp(command, "public") == 0 && argc == 3) {
      bme_key *key = private_key(argv[2]);
      bme_public_key *public_half;
      const uint8_t *der;
      size_t len;
      CHECK(bme_key_public(key, &public_half) == BME_OK);
      der = bme_public_key_der(public_half, &len);
      fwrite(der, 1, len, stdout);
      bme_public_key_free(public_half);
      bme_key_free(key);
    } else {
      CHECK(!"a known command");
    }
  }
  bme_engine_free(engine);
  return 0;
}
