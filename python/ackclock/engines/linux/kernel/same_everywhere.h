/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Included ahead of every file of the guest (KCFLAGS), so that a guest is the same wherever and whenever it runs.
 *
 * What the guest asks of the host's getrandom() comes from a fixed sequence instead (SplitMix64: Steele, Lea and Flood,
 * OOPSLA 2014). The kernel stirs its command line in as well, which holds the run's seed.
 */
#if defined(__UM_HOST__) && !defined(__ASSEMBLY__)
static __attribute__((unused)) long ackclock_getrandom(void *buffer, unsigned long length, unsigned int flags)
{
	static unsigned long state;
	unsigned char *bytes = buffer;
	unsigned long i, word;

	(void)flags;
	for (i = 0; i < length; i++) {
		word = state += 0x9e3779b97f4a7c15UL;
		word = (word ^ (word >> 30)) * 0xbf58476d1ce4e5b9UL;
		word = (word ^ (word >> 27)) * 0x94d049bb133111ebUL;
		bytes[i] = (unsigned char)((word ^ (word >> 31)) >> 56);
	}
	return (long)length;
}
#define getrandom ackclock_getrandom
#endif
