/* Two threads, each with other values in all AVX registers, take turns. Exits 1 when one finds the values of another,
 * 3 when they have not taken turns. */

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>

enum { REGISTERS = 16, BYTES = 32, TURNS = 1000 };

#define EACH(DO) DO(0) DO(1) DO(2) DO(3) DO(4) DO(5) DO(6) DO(7) DO(8) DO(9) DO(10) DO(11) DO(12) DO(13) DO(14) DO(15)
#define LOAD(n) "vmovdqu " #n "*32(%1), %%ymm" #n "\n"
#define STORE(n) "vmovdqu %%ymm" #n ", " #n "*32(%2)\n"
#define CHANGED(n) "ymm" #n,

static pthread_barrier_t begin;
static atomic_intptr_t last;
static atomic_int changes;

static void *take_turns(void *own) {
    static const char changed;
    uint8_t put[REGISTERS * BYTES], got[sizeof put];
    pthread_barrier_wait(&begin);
    for (int turn = 0; turn < TURNS; ++turn) {
        for (int at = 0; at < (int)sizeof put; ++at)
            put[at] = (uint8_t)(turn + 5 * at + 101 * (intptr_t)own);
        changes += atomic_exchange(&last, (intptr_t)own) != (intptr_t)own;
        long call = SYS_sched_yield;
        __asm__ volatile(EACH(LOAD) "syscall\n" EACH(STORE)
                         : "+a"(call)
                         : "r"(put), "r"(got)
                         : EACH(CHANGED) "rcx", "r11", "memory");
        if (memcmp(put, got, sizeof put) != 0)
            return (void *)&changed;
    }
    return NULL;
}

int main(void) {
    pthread_t other;
    void *of_other;
    pthread_barrier_init(&begin, NULL, 2);
    if (pthread_create(&other, NULL, take_turns, (void *)1) != 0)
        return 2;
    const void *own = take_turns((void *)2);
    pthread_join(other, &of_other);
    if (own != NULL || of_other != NULL)
        return 1;
    return changes < TURNS ? 3 : 0;
}
