/* Signs messages in an event loop, as a server does: KEY.pem COUNT SIGNATURE
 *
 * The loop's thread submits requests and sleeps in epoll. Callbacks run on the queue's thread;
 * they put the signature into a list and wake the loop by an eventfd. The signatures are
 * verified at the end, and the first one is written to a file. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "batch_modexp.h"

enum { SCHEME = BME_PSS | BME_SHA256, MOST_OPEN = 256 };

/* One signature that a client of the server waits for. */
typedef struct operation {
  char message[32];
  uint8_t *signature;
  size_t signature_len;
  int32_t status;
  struct operation *next;
} operation;

/* What callbacks leave for the loop. */
static struct {
  pthread_mutex_t lock;
  operation *first;
  int wakeup;
} done;

static void stop_if(int failed, const char *what) {
  if (failed) {
    fprintf(stderr, "%s: %s\n", what, bme_last_error());
    exit(1);
  }
}

/* Runs on the queue's thread: copies the signature, and leaves the rest to the loop. */
static void on_signed(void *user, int32_t status, const uint8_t *signature, size_t signature_len) {
  operation *op = (operation *)user;
  const uint64_t one = 1;
  int was_empty;
  op->status = status;
  if (status == BME_OK && signature_len == op->signature_len) memcpy(op->signature, signature, signature_len);
  pthread_mutex_lock(&done.lock);
  was_empty = done.first == NULL;
  op->next = done.first;
  done.first = op;
  pthread_mutex_unlock(&done.lock);
  /* One wakeup is enough for all that are in the list. */
  if (was_empty && write(done.wakeup, &one, sizeof one) != (ssize_t)sizeof one) perror("eventfd");
}

/* Takes what callbacks have left; returns how many there are. */
static size_t take_completions(void) {
  operation *op;
  uint64_t wakeups;
  size_t count = 0;
  if (read(done.wakeup, &wakeups, sizeof wakeups) != (ssize_t)sizeof wakeups) return 0;
  pthread_mutex_lock(&done.lock);
  op = done.first;
  done.first = NULL;
  pthread_mutex_unlock(&done.lock);
  for (; op != NULL; op = op->next) {
    /* A server would answer the client here. */
    stop_if(op->status != BME_OK, op->message);
    count++;
  }
  return count;
}

static bme_key *read_key(const char *path) {
  static uint8_t pem[16384];
  bme_key *key;
  size_t len;
  FILE *file = fopen(path, "rb");
  stop_if(file == NULL, path);
  len = fread(pem, 1, sizeof pem, file);
  fclose(file);
  stop_if(bme_key_from_pem(pem, len, NULL, 0, &key) != BME_OK, path);
  memset(pem, 0, sizeof pem);
  return key;
}

static void verify(const bme_engine *engine, const bme_key *key, const operation *ops, size_t count) {
  bme_verify_item *items = (bme_verify_item *)calloc(count, sizeof *items);
  bme_public_key *public_key;
  size_t i;
  stop_if(items == NULL, "memory");
  stop_if(bme_key_public(key, &public_key) != BME_OK, "public key");
  for (i = 0; i < count; i++) {
    items[i].key = public_key;
    items[i].message = (const uint8_t *)ops[i].message;
    items[i].message_len = strlen(ops[i].message);
    items[i].signature = ops[i].signature;
    items[i].signature_len = ops[i].signature_len;
  }
  stop_if(bme_verify(engine, SCHEME, items, count, sizeof *items) != BME_OK, "verification");
  for (i = 0; i < count; i++) stop_if(items[i].status != BME_OK, ops[i].message);
  bme_public_key_free(public_key);
  free(items);
}

int main(int argc, char **argv) {
  const size_t count = argc == 4 ? (size_t)atoi(argv[2]) : 0;
  size_t submitted = 0, completed = 0, i;
  struct epoll_event event;
  operation *ops;
  bme_engine *engine;
  bme_queue *queue;
  bme_key *key;
  int epoll;
  FILE *file;
  if (count == 0) {
    fprintf(stderr, "usage: event_loop KEY.pem COUNT SIGNATURE\n");
    return 2;
  }
  stop_if(bme_engine_new(0, &engine) != BME_OK, "engine");
  stop_if(bme_queue_new(engine, NULL, &queue) != BME_OK, "queue");
  key = read_key(argv[1]);
  ops = (operation *)calloc(count, sizeof *ops);
  stop_if(ops == NULL, "memory");
  for (i = 0; i < count; i++) {
    snprintf(ops[i].message, sizeof ops[i].message, "message %lu", (unsigned long)i);
    ops[i].signature_len = bme_key_size(key);
    ops[i].signature = (uint8_t *)malloc(ops[i].signature_len);
    stop_if(ops[i].signature == NULL, "memory");
  }
  pthread_mutex_init(&done.lock, NULL);
  done.wakeup = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  epoll = epoll_create1(EPOLL_CLOEXEC);
  memset(&event, 0, sizeof event);
  event.events = EPOLLIN;
  stop_if(epoll_ctl(epoll, EPOLL_CTL_ADD, done.wakeup, &event) != 0, "epoll");

  while (completed < count) {
    /* A server submits a request when a client's message arrives; BME_ERROR_FULL sends the client away. */
    for (; submitted < count && submitted - completed < MOST_OPEN; submitted++) {
      operation *op = &ops[submitted];
      const int32_t status = bme_queue_sign(queue, key, SCHEME, (const uint8_t *)op->message, strlen(op->message),
                                            on_signed, op, NULL);
      if (status == BME_ERROR_FULL) break;
      stop_if(status != BME_OK, "request");
    }
    if (epoll_wait(epoll, &event, 1, -1) == 1) completed += take_completions();
  }

  verify(engine, key, ops, count);
  printf("%lu signatures are valid\n", (unsigned long)count);
  file = fopen(argv[3], "wb");
  stop_if(file == NULL || fwrite(ops[0].signature, 1, ops[0].signature_len, file) != ops[0].signature_len, argv[3]);
  fclose(file);
  bme_queue_free(queue);
  bme_key_free(key);
  bme_engine_free(engine);
  for (i = 0; i < count; i++) free(ops[i].signature);
  free(ops);
  close(epoll);
  close(done.wakeup);
  return 0;
}
