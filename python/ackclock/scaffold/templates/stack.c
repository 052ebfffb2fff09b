/* $name: a toy transport over the interface ackclock.h. It is not QUIC: nothing is encrypted, and a connection has one
 * stream in one direction. It has what a transport needs to be tested: a handshake, a window with additive increase and
 * multiplicative decrease, loss detection, retransmission, timeouts. ECN codepoints are not used.
 *
 *     client   SYN ->   <- SYN-ACK   DATA (number, order) ->   <- ACK (next number missing, order received)
 *
 * Segments have numbers; each transmission has an order, which its ACK repeats. A segment is lost if ACKs have come of
 * transmissions at least REORDERING later, or when nothing comes for the time `rto_ns`.
 */
#include "ackclock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SYN = 1, SYN_ACK, DATA, ACK };        /* types of packets */
enum { EMPTY, READY, IN_FLIGHT, DONE };      /* states of segments; a lost one is READY again */
enum { SEGMENTS = 1024, SEGMENT_BYTES = 1448, REORDERING = 3, MAX_TIMEOUTS = 8 };
#define MAGIC 0x31594f54u
#define MS 1000000ull

struct header { uint32_t magic; uint8_t type, end; uint16_t length; uint64_t number, order; };
struct segment { uint64_t order, sent_ns; uint16_t length; uint8_t state, end, bytes[SEGMENT_BYTES]; };
struct endpoint {
    int is_client, status, reply;            /* reply: type of the packet that answers the last one, 0 for none */
    uint32_t segment_bytes, in_flight, backoff;
    uint64_t base, next, read_bytes;         /* first segment not done, first not written; position of the reader */
    uint64_t order, largest_acked, echo;     /* last transmission, the latest acknowledged, the one to acknowledge */
    uint64_t recovery, timer_ns, srtt_ns;    /* transmissions up to `recovery` belong to the last decrease */
    uint64_t lost, recoveries, timeouts;
    double cwnd, ssthresh, beta;             /* in segments */
    struct segment ring[SEGMENTS];
};

static struct segment *at(struct endpoint *e, uint64_t number) { return &e->ring[number % SEGMENTS]; }

static uint64_t rto_ns(const struct endpoint *e) {
    return (e->srtt_ns ? 2 * e->srtt_ns + 50 * MS : 1000 * MS) << e->backoff;
}

uint32_t ackclock_version(void) { return ACKCLOCK_VERSION; }

void *ackclock_new(const struct ackclock_config *config, uint64_t seed) {
    double beta = 0.5;
    (void)seed; /* it draws nothing */
    if (*config->congestion && strcmp(config->congestion, "aimd")) return NULL;
    if (*config->options && (sscanf(config->options, "beta=%lf", &beta) != 1 || !(beta > 0 && beta < 1))) return NULL;
    struct endpoint *e = calloc(1, sizeof *e);
    uint32_t room = config->max_payload_bytes - sizeof(struct header);
    e->is_client = config->role == ACKCLOCK_CLIENT;
    e->segment_bytes = room < SEGMENT_BYTES ? room : SEGMENT_BYTES;
    e->cwnd = (double)config->initial_window_bytes / e->segment_bytes;
    e->ssthresh = SEGMENTS;
    e->beta = beta;
    e->reply = e->is_client ? SYN : 0;
    e->timer_ns = ACKCLOCK_NEVER;
    return e;
}

void ackclock_free(void *endpoint) { free(endpoint); }

/* ---- the sender ---- */

static void reduce(struct endpoint *e, uint64_t order) {
    if (order <= e->recovery) return; /* once in a round trip */
    e->recovery = e->order;
    e->recoveries++;
    e->ssthresh = e->cwnd * e->beta > 2 ? e->cwnd * e->beta : 2;
    e->cwnd = e->ssthresh;
}

static void mark_lost(struct endpoint *e, uint64_t before) {
    for (uint64_t n = e->base; n < e->next; n++) {
        struct segment *s = at(e, n);
        if (s->state != IN_FLIGHT || s->order >= before) continue;
        s->state = READY;
        e->in_flight--;
        e->lost++;
        reduce(e, s->order);
    }
}

static void acknowledge(struct endpoint *e, uint64_t now, const struct header *h) {
    if (h->number > e->next) return;
    for (uint64_t n = e->base; n < e->next; n++) {
        struct segment *s = at(e, n);
        if (s->state == DONE || (n >= h->number && s->order != h->order)) continue;
        if (s->order == h->order) e->srtt_ns = e->srtt_ns ? (7 * e->srtt_ns + now - s->sent_ns) / 8 : now - s->sent_ns;
        e->in_flight -= s->state == IN_FLIGHT;
        s->state = DONE;
        e->backoff = 0;
        e->cwnd += e->cwnd < e->ssthresh ? 1 : 1 / e->cwnd;
    }
    if (e->cwnd > SEGMENTS) e->cwnd = SEGMENTS;
    while (e->base < e->next && at(e, e->base)->state == DONE) {
        if (at(e, e->base)->end) e->status |= ACKCLOCK_FINISHED;
        at(e, e->base++)->state = EMPTY;
    }
    if (h->order > e->largest_acked) e->largest_acked = h->order;
    if (e->largest_acked > REORDERING) mark_lost(e, e->largest_acked - REORDERING + 1);
    e->timer_ns = e->in_flight ? now + rto_ns(e) : ACKCLOCK_NEVER;
}

static void on_timeout(struct endpoint *e) {
    if (++e->backoff > MAX_TIMEOUTS) e->status |= ACKCLOCK_CLOSED;
    if (!(e->status & ACKCLOCK_ESTABLISHED)) { e->reply = SYN; return; }
    e->timeouts++;
    mark_lost(e, e->order + 1);
    e->cwnd = 1;
}

size_t ackclock_write(void *endpoint, uint64_t now_ns, const uint8_t *bytes, size_t length, int end) {
    struct endpoint *e = endpoint;
    size_t taken = 0;
    (void)now_ns;
    while (taken < length && e->next < e->base + SEGMENTS) {
        size_t left = length - taken, size = left < e->segment_bytes ? left : e->segment_bytes;
        if (size < e->segment_bytes && !end) break; /* only the last segment is short */
        struct segment *s = at(e, e->next++);
        memcpy(s->bytes, bytes + taken, size);
        taken += size;
        s->order = 0;
        s->length = (uint16_t)size;
        s->end = end && taken == length;
        s->state = READY;
    }
    return taken;
}

/* ---- the receiver ---- */

static void accept_data(struct endpoint *e, const struct header *h, const uint8_t *bytes) {
    if (h->number >= e->base + SEGMENTS || h->length == 0) return;
    e->reply = ACK;
    e->echo = h->order;
    if (h->number < e->base || at(e, h->number)->state == DONE) return; /* a duplicate */
    struct segment *s = at(e, h->number);
    memcpy(s->bytes, bytes, h->length);
    s->length = h->length;
    s->state = DONE;
    while (e->next < e->base + SEGMENTS && at(e, e->next)->state == DONE) e->next++;
}

size_t ackclock_read(void *endpoint, uint64_t now_ns, uint8_t *buffer, size_t capacity) {
    struct endpoint *e = endpoint;
    (void)now_ns;
    if (e->base == e->next) return 0;
    struct segment *s = at(e, e->base);
    size_t left = s->length - e->read_bytes, size = left < capacity ? left : capacity;
    memcpy(buffer, s->bytes + e->read_bytes, size);
    e->read_bytes += size;
    if (e->read_bytes == s->length) {
        e->read_bytes = 0;
        s->state = EMPTY;
        e->base++;
    }
    return size;
}

/* ---- datagrams and timers ---- */

void ackclock_receive(void *endpoint, uint64_t now_ns, const uint8_t *bytes, size_t length, uint8_t ecn) {
    struct endpoint *e = endpoint;
    struct header h;
    (void)ecn;
    if (length < sizeof h) return;
    memcpy(&h, bytes, sizeof h);
    if (h.magic != MAGIC || h.length != length - sizeof h || h.length > e->segment_bytes) return;
    if (!e->is_client && h.type == SYN) {
        e->status |= ACKCLOCK_ESTABLISHED;
        e->reply = SYN_ACK;
    } else if (!e->is_client && h.type == DATA) {
        accept_data(e, &h, bytes + sizeof h);
    } else if (e->is_client && h.type == SYN_ACK && !(e->status & ACKCLOCK_ESTABLISHED)) {
        e->status |= ACKCLOCK_ESTABLISHED;
        e->timer_ns = ACKCLOCK_NEVER;
        e->backoff = 0;
    } else if (e->is_client && h.type == ACK) {
        acknowledge(e, now_ns, &h);
    }
}

static size_t packet(struct endpoint *e, uint8_t *buffer, int type, const struct segment *s, uint64_t number) {
    struct header h = {MAGIC, (uint8_t)type, s && s->end, s ? s->length : 0, number, s ? s->order : e->echo};
    memcpy(buffer, &h, sizeof h);
    if (s) memcpy(buffer + sizeof h, s->bytes, s->length);
    return sizeof h + h.length;
}

size_t ackclock_poll(void *endpoint, uint64_t now_ns, uint8_t *buffer, size_t capacity, uint8_t *ecn) {
    struct endpoint *e = endpoint;
    int reply;
    (void)capacity;
    *ecn = ACKCLOCK_NOT_ECT;
    if (e->timer_ns <= now_ns) {
        e->timer_ns = ACKCLOCK_NEVER;
        on_timeout(e);
    }
    if (e->status & ACKCLOCK_CLOSED) return 0;
    if ((reply = e->reply)) {
        e->reply = 0;
        if (reply == SYN) e->timer_ns = now_ns + rto_ns(e);
        return packet(e, buffer, reply, NULL, e->next);
    }
    if (!e->is_client || !(e->status & ACKCLOCK_ESTABLISHED) || e->in_flight >= (uint32_t)e->cwnd) return 0;
    for (uint64_t n = e->base; n < e->next; n++) {
        struct segment *s = at(e, n);
        if (s->state != READY) continue;
        s->state = IN_FLIGHT;
        s->order = ++e->order;
        s->sent_ns = now_ns;
        e->in_flight++;
        if (e->timer_ns == ACKCLOCK_NEVER) e->timer_ns = now_ns + rto_ns(e);
        return packet(e, buffer, DATA, s, n);
    }
    return 0;
}

uint64_t ackclock_next_timeout(void *endpoint) { return ((struct endpoint *)endpoint)->timer_ns; }

uint32_t ackclock_status(void *endpoint) { return (uint32_t)((struct endpoint *)endpoint)->status; }

/* Optional: state for the tables of a result. Without this function they have nulls there. */
void ackclock_stats(void *endpoint, struct ackclock_statistics *statistics) {
    const struct endpoint *e = endpoint;
    uint64_t size = e->segment_bytes;
    statistics->cwnd_bytes = (uint64_t)(e->cwnd * (double)size);
    if (e->recoveries + e->timeouts) statistics->ssthresh_bytes = (uint64_t)(e->ssthresh * (double)size);
    if (e->srtt_ns) statistics->srtt_ns = e->srtt_ns;
    statistics->in_flight_bytes = e->in_flight * size;
    statistics->lost_packets = e->lost;
    statistics->recoveries = e->recoveries;
    statistics->timeouts = e->timeouts;
}
