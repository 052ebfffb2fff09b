/* SPDX-License-Identifier: Apache-2.0
 *
 * ackclock.h, version 1: the interface between a transport stack and the laboratory.
 *
 * A stack is a shared library that exports the functions below. It is a state machine: UDP payloads, application bytes
 * and the time come in as arguments, UDP payloads, application bytes and the time of the next timer go out. What is in
 * a payload (encryption, packet numbers, frames) is the stack's own business.
 *
 * Time      `now_ns` is virtual time in nanoseconds since the start of the run. It never decreases from one call to the
 *           next with the same endpoint; two endpoints may be at different times. Computation takes no virtual time.
 * Ownership An endpoint belongs to the stack: what `ackclock_new` returns is only handed back. All memory behind
 *           pointer arguments belongs to the caller and may be used until the call returns.
 * Threads   All calls come from one thread, one at a time. Endpoints of many connections live in one process.
 * Forbidden Clocks, random numbers of the operating system, threads, sockets, and order by addresses of memory. Random
 *           numbers are to be drawn from the seed, so that a run can be repeated. `ackclock check stack` tests it.
 * Order     After a call of `ackclock_new`, `ackclock_receive` or `ackclock_close`, and at the time of
 *           `ackclock_next_timeout`, the caller repeats: `ackclock_write` or `ackclock_read`, as often as bytes are
 *           taken or given; `ackclock_poll`; until that returns 0. Then it asks for the next timeout.
 *
 * The client opens the connection and sends a stream of bytes; the server accepts it and receives them.
 */
#ifndef ACKCLOCK_H
#define ACKCLOCK_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define ACKCLOCK_VERSION 1

/* Values of `role`. */
#define ACKCLOCK_CLIENT 0
#define ACKCLOCK_SERVER 1

/* ECN codepoints (RFC 3168): the two bits of the IP header. */
#define ACKCLOCK_NOT_ECT 0
#define ACKCLOCK_ECT1 1
#define ACKCLOCK_ECT0 2
#define ACKCLOCK_CE 3

/* Bits of `ackclock_status`. */
#define ACKCLOCK_ESTABLISHED 1 /* the handshake is complete */
#define ACKCLOCK_FINISHED 2    /* client: the end of the stream was written, and all of it is acknowledged */
#define ACKCLOCK_CLOSED 4      /* the connection is over: closed, or given up */

/* No timer is set; a statistic that is not known. */
#define ACKCLOCK_NEVER UINT64_MAX
#define ACKCLOCK_UNKNOWN UINT64_MAX

/* What the scenario asks for. */
struct ackclock_config {
    uint32_t role;                 /* ACKCLOCK_CLIENT or ACKCLOCK_SERVER */
    uint32_t max_payload_bytes;    /* largest UDP payload that it may send: `mtu` without the headers */
    uint32_t ecn;                  /* 1 if datagrams may have ECN codepoints, 0 if those are cleared */
    uint32_t reserved;             /* 0 */
    uint64_t now_ns;               /* the time at which the endpoint is made */
    uint64_t initial_window_bytes; /* initial congestion window */
    uint64_t receive_window_bytes; /* receive buffer */
    const char *congestion;        /* congestion control algorithm, "" for the stack's own choice */
    const char *options;           /* `options` of the scenario, for the stack alone to interpret, "" without any */
};

/* State of a client, for the tables of a result; what is not known is ACKCLOCK_UNKNOWN. */
struct ackclock_statistics {
    uint64_t cwnd_bytes;      /* congestion window */
    uint64_t ssthresh_bytes;  /* slow start threshold */
    uint64_t srtt_ns;         /* smoothed round-trip time */
    uint64_t in_flight_bytes; /* sent, neither acknowledged nor declared lost */
    uint64_t lost_packets;    /* packets declared lost so far */
    uint64_t recoveries;      /* recovery periods begun so far, after losses or marks */
    uint64_t timeouts;        /* timeouts so far that collapsed the window (in QUIC: persistent congestion) */
};

/* ---- Required ---- */

/* Return ACKCLOCK_VERSION. */
uint32_t ackclock_version(void);

/* Make an endpoint; return NULL to reject the configuration. `seed` is that of all its random numbers. */
void *ackclock_new(const struct ackclock_config *config, uint64_t seed);

/* Destroy an endpoint. */
void ackclock_free(void *endpoint);

/* A datagram has arrived. Whatever is no datagram of the connection must be ignored. */
void ackclock_receive(void *endpoint, uint64_t now_ns, const uint8_t *bytes, size_t length, uint8_t ecn);

/* Run the timers that are due and make the next datagram that may be sent now: write it to `buffer`, its ECN codepoint
 * to `ecn`, and return its length, at most `capacity`, which is `max_payload_bytes`; 0 if there is none. A pacer makes a
 * datagram wait by its timer. */
size_t ackclock_poll(void *endpoint, uint64_t now_ns, uint8_t *buffer, size_t capacity, uint8_t *ecn);

/* Return the time at which to poll again, or ACKCLOCK_NEVER. After a poll that returned 0 it is later than that. */
uint64_t ackclock_next_timeout(void *endpoint);

/* Client: take bytes of the application; return how many. `end` is 1 if the last of them ends the stream.
 * Take no more than a bounded send buffer holds; what is left is offered again. */
size_t ackclock_write(void *endpoint, uint64_t now_ns, const uint8_t *bytes, size_t length, int end);

/* Server: give bytes to the application, in order and once; return how many, 0 if there are none. */
size_t ackclock_read(void *endpoint, uint64_t now_ns, uint8_t *buffer, size_t capacity);

/* Return the bits of the state. None is cleared again. */
uint32_t ackclock_status(void *endpoint);

/* ---- Optional ---- */

/* Client: the application is done, because the stream is finished or it is time to stop; send the datagrams that close
 * the connection, if there are any. Without this function the client is not called again. */
void ackclock_close(void *endpoint, uint64_t now_ns);

/* Client: fill in what is known; all fields are ACKCLOCK_UNKNOWN before. */
void ackclock_stats(void *endpoint, struct ackclock_statistics *statistics);

#ifdef __cplusplus
}
#endif

#endif
