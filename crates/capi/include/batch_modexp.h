/* Batches of RSA signatures in constant time. */
#ifndef BATCH_MODEXP_H
#define BATCH_MODEXP_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Status codes. */
#define BME_OK 0
#define BME_ERROR_ARGUMENT 1  /* NULL, wrong length or unknown scheme */
#define BME_ERROR_KEY 2       /* no valid key, or a wrong password */
#define BME_ERROR_OPERATION 3 /* no random numbers, key unfit for the scheme, or failed check */
#define BME_ERROR_INTERNAL 4  /* a defect of this library */

/* Signature schemes (RFC 8017). PSS salts are as long as the digest. */
#define BME_PKCS1V15_SHA256 1
#define BME_PKCS1V15_SHA384 2
#define BME_PKCS1V15_SHA512 3
#define BME_PSS_SHA256 5
#define BME_PSS_SHA384 6
#define BME_PSS_SHA512 7

/* Engines and keys may be used by several threads at a time. The engine has threads,
 * which a child of fork() lacks: make engines after fork(). */
typedef struct bme_engine bme_engine;
typedef struct bme_key bme_key;

/* One message to sign. The caller owns all that it points to. */
typedef struct bme_sign_item {
  const bme_key *key;
  const uint8_t *message; /* may be NULL if message_len is 0 */
  size_t message_len;     /* octets */
  uint8_t *signature;     /* written if status is BME_OK */
  size_t signature_len;   /* octets; equal to bme_key_size(key) */
  int32_t status;         /* set by bme_sign if it returns BME_OK */
} bme_sign_item;

/* Message of the last error on this thread; valid until the next error on this thread. */
const char *bme_last_error(void);

/* Makes an engine for this processor; free it with bme_engine_free. */
int32_t bme_engine_new(bme_engine **out);

/* Frees an engine that no call uses; NULL is allowed. */
void bme_engine_free(bme_engine *engine);

/* Reads a private key in PEM. With a password (not NULL) the key is encrypted PKCS#8; without,
 * PKCS#8 or PKCS#1. The caller wipes text and password, and frees the key with bme_key_free. */
int32_t bme_key_from_pem(const uint8_t *pem, size_t pem_len, const uint8_t *password,
                         size_t password_len, bme_key **out);

/* Length of the modulus in octets; 0 for NULL. */
size_t bme_key_size(const bme_key *key);

/* Wipes and frees a key that no call uses; NULL is allowed. */
void bme_key_free(bme_key *key);

/* Hashes and signs a batch. A bad item fails alone, by its status. Other errors fail the call,
 * and no signature is written. */
int32_t bme_sign(const bme_engine *engine, int32_t scheme, bme_sign_item *items, size_t count);

#ifdef __cplusplus
}
#endif

#endif
