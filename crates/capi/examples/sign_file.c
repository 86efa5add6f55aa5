/* Signs a file, so that `openssl dgst -sha256 -verify` accepts the signature:
 * KEY.pem FILE SIGNATURE SCHEME
 *
 * SCHEME is a number of batch_modexp.h, such as 18 for BME_PKCS1V15 | BME_SHA256. */
#include <stdio.h>
#include <stdlib.h>

#include "batch_modexp.h"

/* Reads a file as a whole; the caller frees it. */
static uint8_t *read_file(const char *path, size_t *len) {
  FILE *file = fopen(path, "rb");
  uint8_t *octets = NULL;
  long end;
  if (file != NULL && fseek(file, 0, SEEK_END) == 0 && (end = ftell(file)) >= 0) {
    rewind(file);
    octets = (uint8_t *)malloc((size_t)end + 1);
    *len = octets != NULL ? fread(octets, 1, (size_t)end, file) : 0;
  }
  if (octets == NULL) {
    perror(path);
    exit(1);
  }
  fclose(file);
  return octets;
}

static void stop_if_failed(int32_t status) {
  if (status != BME_OK) {
    fprintf(stderr, "%s\n", bme_last_error());
    exit(1);
  }
}

int main(int argc, char **argv) {
  bme_engine *engine;
  bme_key *key;
  bme_sign_item item;
  FILE *file;
  uint8_t *pem, *message;
  size_t pem_len, message_len;
  if (argc != 5) {
    fprintf(stderr, "usage: sign_file KEY.pem FILE SIGNATURE SCHEME\n"
            "SCHEME: 18 for PKCS#1 v1.5, 34 for PSS, both with SHA-256; see batch_modexp.h\n");
    return 2;
  }
  pem = read_file(argv[1], &pem_len);
  message = read_file(argv[2], &message_len);
  stop_if_failed(bme_engine_new(0, &engine));
  stop_if_failed(bme_key_from_pem(pem, pem_len, NULL, 0, &key));

  item.key = key;
  item.message = message;
  item.message_len = message_len;
  item.signature_len = bme_key_size(key);
  item.signature = (uint8_t *)malloc(item.signature_len);
  stop_if_failed(bme_sign(engine, atoi(argv[4]), &item, 1, sizeof item));
  if (item.status != BME_OK) {
    fprintf(stderr, "the file is not signed: status %d\n", (int)item.status);
    return 1;
  }
  file = fopen(argv[3], "wb");
  if (file == NULL || fwrite(item.signature, 1, item.signature_len, file) != item.signature_len ||
      fclose(file) != 0) {
    perror(argv[3]);
    return 1;
  }
  free(item.signature);
  free(pem);
  free(message);
  bme_key_free(key);
  bme_engine_free(engine);
  return 0;
}
