/* Batches of RSA operations and of modular exponentiations, constant-time in all that is secret.
 * docs/c.md is the guide. */
#ifndef BATCH_MODEXP_H
#define BATCH_MODEXP_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* --- Conventions ---
 *
 * Numbers are big-endian octets. Functions that return int32_t return a status code. Those that
 * make an object write NULL to *out if they fail. Pointers may be NULL where that is said, and
 * where a length of 0 goes with them. All objects may be used by several threads at a time; they
 * are freed when no call uses them.
 *
 * Structs of parameters begin with their size, and functions for batches take the size of an
 * item: sizeof of the struct, so that later versions can tell which header a program was
 * compiled with. */

/* Status codes. */
#define BME_OK 0
#define BME_ERROR_ARGUMENT 1   /* NULL, wrong length or unknown scheme */
#define BME_ERROR_KEY 2        /* no valid key, or a wrong password */
#define BME_ERROR_OPERATION 3  /* no random numbers, threads or GPUs, unfit key, or failed check */
#define BME_ERROR_INTERNAL 4   /* a defect of this library */
#define BME_ERROR_SIGNATURE 5  /* the signature of an item is not valid */
#define BME_ERROR_DECRYPTION 6 /* the ciphertext of an item does not decrypt */
#define BME_ERROR_FULL 7       /* the queue has no space for the request */
#define BME_ERROR_CLOSED 8     /* the queue takes no more requests */
#define BME_ERROR_CANCELLED 9  /* the request was cancelled */
#define BME_ERROR_LATE 10      /* the request cannot be cancelled: it is answered */
#define BME_ERROR_FORKED 11    /* the queue belongs to the parent process */

/* Hash functions. SHA-1 is for OAEP only. */
#define BME_SHA1 1
#define BME_SHA256 2
#define BME_SHA384 3
#define BME_SHA512 4
#define BME_SHA224 5
#define BME_SHA512_224 6
#define BME_SHA512_256 7
#define BME_SHA3_224 8
#define BME_SHA3_256 9
#define BME_SHA3_384 10
#define BME_SHA3_512 11

/* Schemes (RFC 8017), to be combined with a hash function: BME_PSS | BME_SHA256. PSS salts are
 * as long as the digest. With `| BME_PREHASHED` messages are digests. */
#define BME_PKCS1V15 16
#define BME_PSS 32
#define BME_OAEP 48
#define BME_PREHASHED 256

typedef struct bme_engine bme_engine;
typedef struct bme_key bme_key;               /* an RSA private key */
typedef struct bme_public_key bme_public_key; /* an RSA public key */
typedef struct bme_queue bme_queue;

/* Octets that belong to the caller. */
typedef struct bme_octets {
  const uint8_t *data;
  size_t len;
} bme_octets;

/* Message of the last error on this thread; valid until the next error on this thread. */
const char *bme_last_error(void);

/* Makes an engine for this processor with at most 1024 threads, or, for 0, one for each core. A
 * server with a process for each core takes 1. A child of fork() has an engine's memory but not
 * its threads, and calls compute on the calling thread there. */
int32_t bme_engine_new(size_t threads, bme_engine **out);

/* Makes an engine for this processor and NVIDIA GPUs: the `count` GPUs with these numbers, from 0
 * in the order of the driver, or, for 0, all. Each batch goes to the side that should finish
 * sooner; products go to the processor. `threads` is that of bme_engine_new.
 *
 * Keys and operands reach the memory of the GPUs, which is wiped after each call. The first batch
 * for a length of keys or numbers waits up to some seconds for the driver, which compiles. A child of fork() computes without GPUs, and cannot
 * make an engine with GPUs if its parent has made one.
 *
 * BME_ERROR_OPERATION: the driver is not installed or too old, there is no such GPU, or it does
 * not start; bme_last_error says which. */
int32_t bme_engine_new_gpus(size_t threads, const uint32_t *gpus, size_t count, bme_engine **out);

/* Frees an engine that no call uses; NULL is allowed. Queues that were made from it go on. */
void bme_engine_free(bme_engine *engine);

/* --- Private keys --- */

/* Reads a private key in PEM. With a password (not NULL) the key is encrypted PKCS#8; without,
 * PKCS#8 or PKCS#1. The caller wipes text and password, and frees the key with bme_key_free. */
int32_t bme_key_from_pem(const uint8_t *pem, size_t pem_len, const uint8_t *password,
                         size_t password_len, bme_key **out);

/* Reads a private key in DER, PKCS#8 or PKCS#1. */
int32_t bme_key_from_der(const uint8_t *der, size_t der_len, bme_key **out);

/* The numbers of a private key (RFC 8017, section 3.2). What is left out is {NULL, 0}. */
typedef struct bme_key_numbers {
  size_t size; /* sizeof(bme_key_numbers) */
  bme_octets n;
  bme_octets e;
  bme_octets d;
  bme_octets p; /* may be left out together with q; operations take four times as long then */
  bme_octets q;
  bme_octets dp; /* this and the next two may be left out; not without p and q */
  bme_octets dq;
  bme_octets qinv;
} bme_key_numbers;

/* Makes a private key of numbers, which are checked. The caller wipes them. */
int32_t bme_key_from_numbers(const bme_key_numbers *numbers, bme_key **out);

/* Length of the modulus in octets, which is that of a signature; 0 for NULL. */
size_t bme_key_size(const bme_key *key);

/* Frees a key that no call uses, and wipes it when no request of a queue uses it either; NULL is
 * allowed. */
void bme_key_free(bme_key *key);

/* Enough octets for the PKCS#8 document of a generated key. */
#define BME_PKCS8_SIZE(bits) ((size_t)(bits)*9 / 16 + 128)

/* Generates `count` keys (FIPS 186-5, appendix A.1.3) with the public exponent 65537. `bits` is
 * a multiple of 128 from 1024 to 8192. Document i is PKCS#8 in DER, for bme_key_from_der; it
 * begins at documents + i * document_size and has document_lens[i] octets. document_size is at
 * least BME_PKCS8_SIZE(bits). The caller wipes the documents. */
int32_t bme_generate_keys(const bme_engine *engine, uint32_t bits, size_t count, uint8_t *documents,
                          size_t document_size, size_t *document_lens);

/* --- Public keys --- */

/* The public key of a private one. Free it with bme_public_key_free, as those of the functions
 * below. */
int32_t bme_key_public(const bme_key *key, bme_public_key **out);

/* Reads a public key in PEM: SubjectPublicKeyInfo, PKCS#1, or that of a certificate, which is
 * not verified. */
int32_t bme_public_key_from_pem(const uint8_t *pem, size_t pem_len, bme_public_key **out);

/* Reads a SubjectPublicKeyInfo in DER. */
int32_t bme_public_key_from_der(const uint8_t *der, size_t der_len, bme_public_key **out);

/* Makes a public key of numbers: n odd, of 1024 to 16,384 bits; e odd, from 3 to 2^64 - 1. */
int32_t bme_public_key_from_numbers(const uint8_t *n, size_t n_len, const uint8_t *e, size_t e_len,
                                    bme_public_key **out);

/* Length of the modulus in octets; 0 for NULL. */
size_t bme_public_key_size(const bme_public_key *key);

/* The SubjectPublicKeyInfo in DER, of *len octets, which is valid until the key is freed; NULL
 * for NULL. */
const uint8_t *bme_public_key_der(const bme_public_key *key, size_t *len);

/* Frees a public key that no call uses; NULL is allowed. */
void bme_public_key_free(bme_public_key *key);

/* --- Batches of RSA operations ---
 *
 * A bad item fails alone, by its status. Other errors fail the call, and nothing but statuses is
 * written. Items may have keys of different sizes. What an item points to belongs to the caller.
 * Places to write to may overlap messages and ciphertexts, but not items. */

/* One message to sign. */
typedef struct bme_sign_item {
  const bme_key *key;
  const uint8_t *message;
  size_t message_len;   /* octets */
  uint8_t *signature;   /* written if status is BME_OK */
  size_t signature_len; /* octets; equal to bme_key_size(key) */
  int32_t status;       /* set by bme_sign if it returns BME_OK */
} bme_sign_item;

/* Hashes and signs a batch. */
int32_t bme_sign(const bme_engine *engine, int32_t scheme, bme_sign_item *items, size_t count,
                 size_t item_size);

/* One signature to verify. */
typedef struct bme_verify_item {
  const bme_public_key *key;
  const uint8_t *message;
  size_t message_len; /* octets */
  const uint8_t *signature;
  size_t signature_len; /* octets; a wrong length is a signature that is not valid */
  int32_t status;       /* set by bme_verify if it returns BME_OK: BME_OK for a valid signature */
} bme_verify_item;

/* Hashes and verifies a batch. BME_OK says that all items have a status, not that all are valid.
 * The status of an item whose key is unfit for the scheme is BME_ERROR_OPERATION. */
int32_t bme_verify(const bme_engine *engine, int32_t scheme, bme_verify_item *items, size_t count,
                   size_t item_size);

/* An encryption scheme. */
typedef struct bme_encryption {
  size_t size;          /* sizeof(bme_encryption) */
  int32_t scheme;       /* BME_OAEP with a hash function, or BME_PKCS1V15 without */
  int32_t mgf_hash;     /* the hash function of MGF1; 0: the same */
  const uint8_t *label; /* of OAEP; not secret */
  size_t label_len;
} bme_encryption;

/* One message to encrypt. */
typedef struct bme_encrypt_item {
  const bme_public_key *key;
  const uint8_t *message;
  size_t message_len;    /* octets; too many are BME_ERROR_ARGUMENT */
  uint8_t *ciphertext;   /* written if status is BME_OK */
  size_t ciphertext_len; /* octets; equal to bme_public_key_size(key) */
  int32_t status;        /* set by bme_encrypt if it returns BME_OK */
} bme_encrypt_item;

/* Encrypts a batch. */
int32_t bme_encrypt(const bme_engine *engine, const bme_encryption *scheme, bme_encrypt_item *items,
                    size_t count, size_t item_size);

/* One ciphertext to decrypt. */
typedef struct bme_decrypt_item {
  const bme_key *key;
  const uint8_t *ciphertext;
  size_t ciphertext_len;   /* octets; a wrong length is BME_ERROR_DECRYPTION */
  uint8_t *message;        /* written if status is BME_OK; the caller wipes it */
  size_t message_capacity; /* octets; at least bme_key_size(key) */
  size_t message_len;      /* set together with status */
  int32_t status;          /* set by bme_decrypt if it returns BME_OK */
} bme_decrypt_item;

/* Decrypts a batch. With BME_PKCS1V15 wrong padding is no error: the message is then one that
 * nobody can tell from a real one without the key. The program must go on with it as with any
 * other, and say of neither its length nor its content whether they were as expected. */
int32_t bme_decrypt(const bme_engine *engine, const bme_encryption *scheme, bme_decrypt_item *items,
                    size_t count, size_t item_size);

/* --- Queue ---
 *
 * Makes batches of single requests, which come from any threads. It has threads that compute, as
 * many as its engine, or two with GPUs, and one that calls callbacks. No function but
 * bme_queue_close and bme_queue_free waits.
 *
 * A child of fork() lacks the threads: functions return BME_ERROR_FORKED there, bme_queue_free
 * does nothing, and no callback is called. Make queues after fork(). */

/* Settings; 0 stands for the default. */
typedef struct bme_queue_options {
  size_t size;          /* sizeof(bme_queue_options) */
  size_t capacity;      /* most requests whose callback has not been called; 8192 */
  size_t max_batch;     /* most requests of a batch; 64, or 1024 with GPUs */
  size_t min_batch;     /* requests that an idle thread waits for; 1 */
  uint32_t max_wait_us; /* for this many microseconds at most; 1000 */
} bme_queue_options;

/* Makes a queue that computes with an engine. `options` may be NULL. Free it with
 * bme_queue_free. */
int32_t bme_queue_new(const bme_engine *engine, const bme_queue_options *options, bme_queue **out);

/* Receives what a request came to. If status is BME_OK, the signature is valid until the
 * callback returns; else it is NULL, and bme_last_error has the message.
 *
 * One thread of the queue calls all callbacks, one at a time, and a slow one holds up the
 * others. A callback may call any function but bme_queue_close, also bme_queue_sign. It must not
 * throw C++ exceptions. */
typedef void (*bme_sign_callback)(void *user, int32_t status, const uint8_t *signature,
                                  size_t signature_len);

/* Hashes a message on the calling thread and puts it into the queue. If this returns BME_OK, the
 * callback is called exactly once, and else never. Another thread may call it before this
 * function returns; this function itself never does. `id` is the request's number for
 * bme_queue_cancel, written before the callback can be called; `id` may be NULL. Message and key
 * may be freed when the function has returned.
 *
 * BME_ERROR_FULL: there are as many requests as the queue has capacity for. BME_ERROR_CLOSED: it
 * was closed. BME_ERROR_OPERATION: the key may not sign by the scheme. */
int32_t bme_queue_sign(bme_queue *queue, const bme_key *key, int32_t scheme, const uint8_t *message,
                       size_t message_len, bme_sign_callback callback, void *user, uint64_t *id);

/* Cancels a request. After BME_OK its callback gets BME_ERROR_CANCELLED, on the queue's thread
 * as always, and the message is not signed unless its batch has begun. After BME_ERROR_LATE
 * there was nothing to cancel: the callback gets, is getting or has got the result, or there is
 * no such request. `user` stays in use until the callback has returned. */
int32_t bme_queue_cancel(bme_queue *queue, uint64_t id);

/* Takes no more requests, and returns when all callbacks have returned. With `cancel` 0 what
 * waits is signed; with 1 its callbacks get BME_ERROR_CANCELLED. Other threads may use the queue
 * meanwhile, and get BME_ERROR_CLOSED. Hold no lock that a callback takes. In a callback this
 * fails with BME_ERROR_OPERATION and does nothing. */
int32_t bme_queue_close(bme_queue *queue, int32_t cancel);

/* Closes a queue, as with `cancel` 0, and frees it; NULL is allowed. In a callback it waits for
 * nothing: the callbacks that are left are called after it has returned. */
void bme_queue_free(bme_queue *queue);

/* --- Numbers ---
 *
 * `count` numbers lie one after the other, with `width` octets each: 1 to 2048. Moduli are odd;
 * other numbers may be larger than they are. statuses[i] is BME_OK, or BME_ERROR_ARGUMENT for an
 * even modulus, whose result is left as it was. Count, widths, the length of each modulus, and
 * which moduli are even or equal the one before them are public; the time may depend on them.
 * With GPUs, it also depends on earlier batches, and shows which moduli have a small factor
 * (SECURITY.md, "Small factors on a GPU"). Results may overlap what is read. */

/* powers[i] = bases[i]^exponents[i] mod moduli[i], with exponents of `exponent_width` octets
 * each: 1 to 2048. */
int32_t bme_pow(const bme_engine *engine, size_t count, size_t width, size_t exponent_width,
                const uint8_t *bases, const uint8_t *exponents, const uint8_t *moduli,
                uint8_t *powers, int32_t *statuses);

/* products[i] = a[i] b[i] mod moduli[i]. */
int32_t bme_mul(const bme_engine *engine, size_t count, size_t width, const uint8_t *a,
                const uint8_t *b, const uint8_t *moduli, uint8_t *products, int32_t *statuses);

#ifdef __cplusplus
}
#endif

#endif
