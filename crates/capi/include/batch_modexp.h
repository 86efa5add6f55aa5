/* Batches of RSA signatures and of modular exponentiations, constant-time in all that is secret. */
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
#define BME_ERROR_SIGNATURE 5 /* the signature of an item is not valid */

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
typedef struct bme_key bme_key;               /* an RSA private key */
typedef struct bme_public_key bme_public_key; /* an RSA public key */

/* Message of the last error on this thread; valid until the next error on this thread. */
const char *bme_last_error(void);

/* Makes an engine for this processor, with a thread for each core; free it with bme_engine_free. */
int32_t bme_engine_new(bme_engine **out);

/* Frees an engine that no call uses; NULL is allowed. */
void bme_engine_free(bme_engine *engine);

/* --- Keys. All functions that make one write NULL to *out if they fail. --- */

/* Reads a private key in PEM. With a password (not NULL) the key is encrypted PKCS#8; without,
 * PKCS#8 or PKCS#1. The caller wipes text and password, and frees the key with bme_key_free. */
int32_t bme_key_from_pem(const uint8_t *pem, size_t pem_len, const uint8_t *password,
                         size_t password_len, bme_key **out);

/* Reads a private key in DER, PKCS#8 or PKCS#1. */
int32_t bme_key_from_der(const uint8_t *der, size_t der_len, bme_key **out);

/* Length of the modulus in octets, which is that of a signature; 0 for NULL. */
size_t bme_key_size(const bme_key *key);

/* Wipes and frees a key that no call uses; NULL is allowed. */
void bme_key_free(bme_key *key);

/* The public key of a private one. Free it with bme_public_key_free, as those of the functions below. */
int32_t bme_key_public(const bme_key *key, bme_public_key **out);

/* Reads a public key in PEM: SubjectPublicKeyInfo, PKCS#1, or that of a certificate, which is not verified. */
int32_t bme_public_key_from_pem(const uint8_t *pem, size_t pem_len, bme_public_key **out);

/* Reads a SubjectPublicKeyInfo in DER. */
int32_t bme_public_key_from_der(const uint8_t *der, size_t der_len, bme_public_key **out);

/* Makes a public key of numbers, big-endian: n odd, of 1024 to 16,384 bits; e odd, from 3 to 2^64 - 1. */
int32_t bme_public_key_from_numbers(const uint8_t *n, size_t n_len, const uint8_t *e, size_t e_len,
                                    bme_public_key **out);

/* Length of the modulus in octets; 0 for NULL. */
size_t bme_public_key_size(const bme_public_key *key);

/* Frees a public key that no call uses; NULL is allowed. */
void bme_public_key_free(bme_public_key *key);

/* --- Signatures --- */

/* One message to sign. The caller owns all that it points to. */
typedef struct bme_sign_item {
  const bme_key *key;
  const uint8_t *message; /* may be NULL if message_len is 0 */
  size_t message_len;     /* octets */
  uint8_t *signature;     /* written if status is BME_OK */
  size_t signature_len;   /* octets; equal to bme_key_size(key) */
  int32_t status;         /* set by bme_sign if it returns BME_OK */
} bme_sign_item;

/* Hashes and signs a batch. A bad item fails alone, by its status. Other errors fail the call,
 * and no signature is written. No memory may be named by two items as a place to write to. */
int32_t bme_sign(const bme_engine *engine, int32_t scheme, bme_sign_item *items, size_t count);

/* One signature to verify. The caller owns all that it points to. */
typedef struct bme_verify_item {
  const bme_public_key *key;
  const uint8_t *message; /* may be NULL if message_len is 0 */
  size_t message_len;     /* octets */
  const uint8_t *signature;
  size_t signature_len; /* octets; a wrong length is a signature that is not valid */
  int32_t status;       /* set by bme_verify if it returns BME_OK: BME_OK for a valid signature */
} bme_verify_item;

/* Hashes and verifies a batch. BME_OK says that all items have a status, not that all are valid. */
int32_t bme_verify(const bme_engine *engine, int32_t scheme, bme_verify_item *items, size_t count);

/* --- Numbers --- */

/* powers[i] = bases[i]^exponents[i] mod moduli[i], for count items. Numbers are big-endian and lie one
 * after the other: bases, moduli and powers of `width` octets each, exponents of `exponent_width`; both
 * are 1 to 2048. Moduli are odd; bases may be larger than they are. The time depends on count, on the
 * two widths, and on which moduli equal the one before them, which take less, and on nothing else. statuses[i] is BME_OK, or BME_ERROR_ARGUMENT for an even modulus, whose power is
 * left as it was. */
int32_t bme_pow(const bme_engine *engine, size_t count, size_t width, size_t exponent_width,
                const uint8_t *bases, const uint8_t *exponents, const uint8_t *moduli,
                uint8_t *powers, int32_t *statuses);

#ifdef __cplusplus
}
#endif

#endif
