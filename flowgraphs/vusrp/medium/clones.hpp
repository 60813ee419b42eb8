// MEDIUM_CLONES before a function: compiled for AVX2 too, the choice being made when the library is loaded. Without
// fused multiply-adds both give the same bits. Not with ThreadSanitizer, which is not ready when libraries are loaded.

#pragma once

#if defined(__x86_64__) && defined(__gnu_linux__) && defined(__GNUC__) && !defined(__clang__) && \
    !defined(__SANITIZE_THREAD__)
#define MEDIUM_CLONES __attribute__((target_clones("avx2", "default")))
#else
#define MEDIUM_CLONES
#endif
