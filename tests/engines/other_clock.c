/* Replaces the clocks and the random numbers of the C library while `ackclock_replace` says so, and counts its calls.
 *
 * The values are none that a host would give: each call of a clock is a day later, and random bytes follow a seed. */

#include <stddef.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>
#include <sys/syscall.h>

static int replaces;
static unsigned long seed;
static long clock_calls, random_calls;

void ackclock_replace(int on, unsigned long new_seed) {
    replaces = on;
    seed = new_seed;
}

long ackclock_clock_calls(void) { return clock_calls; }

long ackclock_random_calls(void) { return random_calls; }

int clock_gettime(clockid_t clock, struct timespec *time) {
    if (!replaces) return (int)syscall(SYS_clock_gettime, clock, time);
    clock_calls++;
    seed = seed * 6364136223846793005UL + 1442695040888963407UL;
    time->tv_sec = 86400 * (clock_calls + (long)(seed >> 50));
    time->tv_nsec = (long)(seed >> 40) % 1000000000;
    return 0;
}

ssize_t getrandom(void *bytes, size_t length, unsigned flags) {
    if (!replaces) return syscall(SYS_getrandom, bytes, length, flags);
    random_calls++;
    for (size_t place = 0; place < length; place++) {
        seed = seed * 6364136223846793005UL + 1442695040888963407UL;
        ((unsigned char *)bytes)[place] = (unsigned char)(seed >> 56);
    }
    return (ssize_t)length;
}
