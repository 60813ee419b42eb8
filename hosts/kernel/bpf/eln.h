/* What the two programs share: where the latest explicit loss notification of a connection points.
 *
 * Octets are counted from the connection's beginning (bytes_acked), so that numbers that wrap cannot be mistaken.
 */
#pragma once

#include "vmlinux.h"

#include <bpf/bpf_helpers.h>

struct mark {
	/* 1 + the octets acknowledged when the marked segment is the first one missing; 0: none yet */
	__u64 place;
};

struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct mark);
} marks SEC(".maps");
