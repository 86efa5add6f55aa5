/* Queues: wrong arguments, full queues, cancelled requests, callbacks that submit, threads,
 * fork, and queues that are closed with requests under way: KEY */
#include <pthread.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "batch_modexp.h"
#include "check.h"

/* GCC and clang tell in different ways that AddressSanitizer is on. */
#ifdef __SANITIZE_ADDRESS__
#define HAS_ADDRESS_SANITIZER
#endif
#ifdef __has_feature
#if __has_feature(address_sanitizer)
#define HAS_ADDRESS_SANITIZER
#endif
#endif

enum { SCHEME = BME_PKCS1V15 | BME_SHA256, MANY = 400 };

static bme_engine *engine;
static bme_key *key;
static const uint8_t *const message = (const uint8_t *)"message";

/* What the callbacks of some requests have got. */
typedef struct {
  pthread_mutex_t lock;
  pthread_cond_t changed;
  bme_queue *queue;
  pthread_t thread;      /* of the last callback */
  int is_called;
  int is_held;           /* callbacks wait until it is 0 */
  int calls, statuses[12];
  int resubmit;          /* so many callbacks submit once more */
} tally;

static void begin(tally *t, const bme_queue_options *options) {
  memset(t, 0, sizeof *t);
  pthread_mutex_init(&t->lock, NULL);
  pthread_cond_init(&t->changed, NULL);
  CHECK(bme_queue_new(engine, options, &t->queue) == BME_OK);
}

static void on_signed(void *user, int32_t status, const uint8_t *signature, size_t len) {
  tally *t = (tally *)user;
  int resubmit;
  CHECK((status == BME_OK) == (signature != NULL) && len == (status == BME_OK ? 256u : 0u));
  CHECK(status == BME_OK || strlen(bme_last_error()) > 0);
  CHECK(bme_queue_close(t->queue, 1) == BME_ERROR_OPERATION);
  pthread_mutex_lock(&t->lock);
  t->thread = pthread_self();
  t->is_called = 1;
  pthread_cond_broadcast(&t->changed);
  while (t->is_held) pthread_cond_wait(&t->changed, &t->lock);
  t->calls++;
  t->statuses[status]++;
  resubmit = t->resubmit > 0;
  t->resubmit -= resubmit;
  pthread_cond_broadcast(&t->changed);
  pthread_mutex_unlock(&t->lock);
  if (resubmit) CHECK(bme_queue_sign(t->queue, key, SCHEME, message, 7, on_signed, t, NULL) == BME_OK);
}

static int32_t submit(tally *t, uint64_t *id) { return bme_queue_sign(t->queue, key, SCHEME, message, 7, on_signed, t, id); }

static void wait_for(tally *t, int calls) {
  pthread_mutex_lock(&t->lock);
  while (t->calls < calls) pthread_cond_wait(&t->changed, &t->lock);
  pthread_mutex_unlock(&t->lock);
}

static void hold(tally *t, int is_held) {
  pthread_mutex_lock(&t->lock);
  t->is_held = is_held;
  pthread_cond_broadcast(&t->changed);
  pthread_mutex_unlock(&t->lock);
}

static void arguments(void) {
  bme_queue_options options;
  bme_queue *other = (bme_queue *)&options;
  uint8_t digest[33] = {0};
  uint64_t id = 77;
  tally t;
  memset(&options, 0, sizeof options);
  CHECK(bme_queue_new(NULL, NULL, &other) == BME_ERROR_ARGUMENT && other == NULL);
  CHECK(bme_queue_new(engine, NULL, NULL) == BME_ERROR_ARGUMENT);
  CHECK(bme_queue_new(engine, &options, &other) == BME_ERROR_ARGUMENT);
  options.size = sizeof options + 1;
  CHECK(bme_queue_new(engine, &options, &other) == BME_ERROR_ARGUMENT);
  options.size = sizeof options;
  CHECK(bme_queue_new(engine, (bme_queue_options *)((char *)&options + 1), &other) == BME_ERROR_ARGUMENT);
  options.capacity = options.max_batch = options.min_batch = (size_t)-1;
  options.max_wait_us = 1;
  begin(&t, &options);
  CHECK(bme_queue_sign(NULL, key, SCHEME, message, 7, on_signed, &t, &id) == BME_ERROR_ARGUMENT);
  CHECK(bme_queue_sign(t.queue, NULL, SCHEME, message, 7, on_signed, &t, &id) == BME_ERROR_ARGUMENT);
  CHECK(bme_queue_sign(t.queue, key, 0, message, 7, on_signed, &t, &id) == BME_ERROR_ARGUMENT);
  CHECK(bme_queue_sign(t.queue, key, BME_OAEP | BME_SHA256, message, 7, on_signed, &t, &id) == BME_ERROR_ARGUMENT);
  CHECK(bme_queue_sign(t.queue, key, SCHEME, NULL, 7, on_signed, &t, &id) == BME_ERROR_ARGUMENT);
  CHECK(bme_queue_sign(t.queue, key, SCHEME, message, (size_t)-1, on_signed, &t, &id) == BME_ERROR_ARGUMENT);
  CHECK(bme_queue_sign(t.queue, key, SCHEME, message, 7, NULL, &t, &id) == BME_ERROR_ARGUMENT);
  CHECK(bme_queue_sign(t.queue, key, SCHEME | BME_PREHASHED, digest, 33, on_signed, &t, &id) == BME_ERROR_ARGUMENT);
  CHECK(bme_queue_sign(t.queue, key, SCHEME | BME_PREHASHED, digest, 31, on_signed, &t, &id) == BME_ERROR_ARGUMENT);
  CHECK(id == 77 && t.calls == 0);
  CHECK(bme_queue_sign(t.queue, key, SCHEME | BME_PREHASHED, digest, 32, on_signed, &t, &id) == BME_OK && id != 77);
  CHECK(bme_queue_sign(t.queue, key, SCHEME, NULL, 0, on_signed, &t, NULL) == BME_OK);
  CHECK(bme_queue_cancel(NULL, id) == BME_ERROR_ARGUMENT);
  CHECK(bme_queue_cancel(t.queue, id + 1000) == BME_ERROR_LATE);
  CHECK(bme_queue_close(NULL, 0) == BME_ERROR_ARGUMENT);
  CHECK(bme_queue_close(t.queue, 2) == BME_ERROR_ARGUMENT && bme_queue_close(t.queue, -1) == BME_ERROR_ARGUMENT);
  CHECK(bme_queue_close(t.queue, 0) == BME_OK && bme_queue_close(t.queue, 1) == BME_OK);
  CHECK(t.calls == 2 && t.statuses[BME_OK] == 2 && !pthread_equal(t.thread, pthread_self()));
  CHECK(submit(&t, NULL) == BME_ERROR_CLOSED);
  bme_queue_free(t.queue);
  bme_queue_free(NULL);
  CHECK(t.calls == 2);
}

/* The first callback is held up, and the requests after it stay open. */
static void full(void) {
  bme_queue_options options;
  uint64_t ids[8];
  int i;
  tally t;
  memset(&options, 0, sizeof options);
  options.size = sizeof options;
  options.capacity = 8;
  /* Nothing is waited for: a batch has one request. */
  options.max_batch = 1;
  options.min_batch = 64;
  options.max_wait_us = 3600u * 1000 * 1000;
  begin(&t, &options);
  t.is_held = 1;
  CHECK(submit(&t, NULL) == BME_OK);
  pthread_mutex_lock(&t.lock);
  while (!t.is_called) pthread_cond_wait(&t.changed, &t.lock);
  pthread_mutex_unlock(&t.lock);
  for (i = 0; i < 8; i++) CHECK(submit(&t, &ids[i]) == BME_OK);
  CHECK(submit(&t, NULL) == BME_ERROR_FULL && strlen(bme_last_error()) > 0);
  for (i = 0; i < 8; i++) {
    const int32_t status = bme_queue_cancel(t.queue, ids[i]);
    CHECK(status == BME_OK || status == BME_ERROR_LATE);
  }
  /* Cancelled requests are open until their callbacks are called. */
  CHECK(submit(&t, NULL) == BME_ERROR_FULL && t.calls == 0);
  hold(&t, 0);
  wait_for(&t, 9);
  CHECK(submit(&t, NULL) == BME_OK);
  bme_queue_free(t.queue);
  CHECK(t.calls == 10 && t.statuses[BME_OK] + t.statuses[BME_ERROR_CANCELLED] == 10);
}

/* Submits until the queue is full, and returns how many requests it has taken. Other threads submit
 * while a long message is hashed. */
static void *submit_until_full(void *user) {
  static const uint8_t text[1 << 20];
  tally *t = (tally *)user;
  int32_t status;
  intptr_t accepted = 0;
  while ((status = bme_queue_sign(t->queue, key, SCHEME, text, sizeof text, on_signed, t, NULL)) == BME_OK) accepted++;
  CHECK(status == BME_ERROR_FULL);
  return (void *)accepted;
}

/* Threads that submit at the same time do not exceed the capacity. */
static void full_with_threads(void) {
  bme_queue_options options;
  pthread_t threads[8];
  intptr_t accepted;
  void *result;
  int i, round;
  memset(&options, 0, sizeof options);
  options.size = sizeof options;
  options.capacity = 8;
  options.max_batch = 1;
  for (round = 0; round < 5; round++) {
    tally t;
    begin(&t, &options);
    t.is_held = 1;
    accepted = 0;
    for (i = 0; i < 8; i++) CHECK(pthread_create(&threads[i], NULL, submit_until_full, &t) == 0);
    for (i = 0; i < 8; i++) {
      CHECK(pthread_join(threads[i], &result) == 0);
      accepted += (intptr_t)result;
    }
    /* One callback may have been called. */
    CHECK(accepted == 8 || accepted == 9);
    hold(&t, 0);
    bme_queue_free(t.queue);
    CHECK(t.calls == accepted);
  }
}

/* Nothing is signed for an hour unless the queue is closed. */
static void cancelled(int by_close) {
  bme_queue_options options;
  uint64_t ids[6];
  int i;
  tally t;
  memset(&options, 0, sizeof options);
  options.size = sizeof options;
  options.max_batch = options.min_batch = 64;
  options.max_wait_us = 3600u * 1000 * 1000;
  begin(&t, &options);
  for (i = 0; i < 6; i++) CHECK(submit(&t, &ids[i]) == BME_OK);
  for (i = 0; i < 6; i += 2) {
    CHECK(bme_queue_cancel(t.queue, ids[i]) == BME_OK);
    CHECK(bme_queue_cancel(t.queue, ids[i]) == BME_ERROR_LATE);
  }
  wait_for(&t, 3);
  CHECK(t.statuses[BME_ERROR_CANCELLED] == 3);
  CHECK(bme_queue_cancel(t.queue, ids[0]) == BME_ERROR_LATE);
  CHECK(bme_queue_close(t.queue, by_close) == BME_OK);
  CHECK(bme_queue_cancel(t.queue, ids[1]) == BME_ERROR_LATE);
  CHECK(t.calls == 6 && t.statuses[by_close ? BME_ERROR_CANCELLED : BME_OK] == (by_close ? 6 : 3));
  bme_queue_free(t.queue);
}

static void *submit_many(void *user) {
  tally *t = (tally *)user;
  uint64_t id;
  int i;
  for (i = 0; i < MANY; i++) {
    CHECK(submit(t, &id) == BME_OK);
    if (i % 4 == 0) bme_queue_cancel(t->queue, id);
  }
  return NULL;
}

/* Threads, callbacks that submit, and a queue that is freed with all of it under way. */
static void crowds(void) {
  pthread_t threads[4];
  int i;
  tally t;
  begin(&t, NULL);
  t.resubmit = 100;
  for (i = 0; i < 4; i++) CHECK(pthread_create(&threads[i], NULL, submit_many, &t) == 0);
  wait_for(&t, 101);
  for (i = 0; i < 4; i++) CHECK(pthread_join(threads[i], NULL) == 0);
  bme_queue_free(t.queue);
  CHECK(t.calls == 4 * MANY + 100 && t.statuses[BME_OK] + t.statuses[BME_ERROR_CANCELLED] == t.calls);
  CHECK(t.statuses[BME_OK] >= 3 * MANY);
}

/* Batches that are under way are signed. */
static void closed_with_batches_under_way(void) {
  tally t;
  int i;
  begin(&t, NULL);
  for (i = 0; i < MANY; i++) CHECK(submit(&t, NULL) == BME_OK);
  CHECK(bme_queue_close(t.queue, 1) == BME_OK);
  CHECK(t.calls == MANY && t.statuses[BME_OK] + t.statuses[BME_ERROR_CANCELLED] == MANY);
  bme_queue_free(t.queue);
}

static void *submit_until_closed(void *user) {
  tally *t = (tally *)user;
  int32_t status;
  intptr_t accepted = 0;
  while ((status = submit(t, NULL)) != BME_ERROR_CLOSED) {
    CHECK(status == BME_OK || status == BME_ERROR_FULL);
    accepted += status == BME_OK;
  }
  return (void *)accepted;
}

static void closed_under_load(void) {
  pthread_t threads[3];
  intptr_t accepted = 0;
  void *result;
  int i;
  tally t;
  begin(&t, NULL);
  for (i = 0; i < 3; i++) CHECK(pthread_create(&threads[i], NULL, submit_until_closed, &t) == 0);
  wait_for(&t, 50);
  CHECK(bme_queue_close(t.queue, 1) == BME_OK);
  for (i = 0; i < 3; i++) {
    CHECK(pthread_join(threads[i], &result) == 0);
    accepted += (intptr_t)result;
  }
  CHECK(t.calls == accepted);
  bme_queue_free(t.queue);
}

/* The first callback frees the queue, and the others are called all the same. */
static void on_signed_free(void *user, int32_t status, const uint8_t *signature, size_t len) {
  tally *t = (tally *)user;
  CHECK(status == BME_OK && signature != NULL && len == 256);
  pthread_mutex_lock(&t->lock);
  while (t->is_held) pthread_cond_wait(&t->changed, &t->lock);
  pthread_mutex_unlock(&t->lock);
  bme_queue_free(t->queue);
  t->queue = NULL;
  pthread_mutex_lock(&t->lock);
  t->calls++;
  pthread_cond_broadcast(&t->changed);
  pthread_mutex_unlock(&t->lock);
}

static void freed_by_a_callback(void) {
  tally t;
  int i;
  begin(&t, NULL);
  t.is_held = 1;
  for (i = 0; i < 21; i++) CHECK(bme_queue_sign(t.queue, key, SCHEME, message, 7, on_signed_free, &t, NULL) == BME_OK);
  hold(&t, 0);
  wait_for(&t, 21);
}

/* The child of a fork has no threads: nothing hangs there, and new queues have threads. Not with AddressSanitizer: its
   allocator has locks that another thread may hold at the time of the fork, and the child would wait for them. */
#ifndef HAS_ADDRESS_SANITIZER
static void forked(void) {
  uint8_t signature[256];
  bme_sign_item item = {key, message, 7, signature, sizeof signature, BME_ERROR_INTERNAL};
  int status, i;
  pid_t child;
  tally t;
  begin(&t, NULL);
  for (i = 0; i < MANY; i++) CHECK(submit(&t, NULL) == BME_OK);
  child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    CHECK(submit(&t, NULL) == BME_ERROR_FORKED);
    CHECK(bme_queue_cancel(t.queue, 1) == BME_ERROR_FORKED);
    CHECK(bme_queue_close(t.queue, 0) == BME_ERROR_FORKED);
    bme_queue_free(t.queue);
    CHECK(bme_sign(engine, SCHEME, &item, 1, sizeof item) == BME_OK && item.status == BME_OK);
    begin(&t, NULL);
    CHECK(submit(&t, NULL) == BME_OK);
    wait_for(&t, 1);
    _exit(0);
  }
  CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
  bme_queue_free(t.queue);
  CHECK(t.calls == MANY && t.statuses[BME_OK] == MANY);
}
#endif

int main(int argc, char **argv) {
  static uint8_t pem[16384];
  size_t len;
  FILE *file;
  CHECK(argc == 2);
  file = fopen(argv[1], "rb");
  CHECK(file != NULL);
  len = fread(pem, 1, sizeof pem, file);
  fclose(file);
  CHECK(bme_key_from_pem(pem, len, NULL, 0, &key) == BME_OK);
  CHECK(bme_engine_new(2, &engine) == BME_OK);
  arguments();
  full();
  full_with_threads();
  cancelled(0);
  cancelled(1);
  crowds();
  closed_with_batches_under_way();
  closed_under_load();
  freed_by_a_callback();
#ifndef HAS_ADDRESS_SANITIZER
  forked();
#endif
  bme_key_free(key);
  bme_engine_free(engine);
  return 0;
}
