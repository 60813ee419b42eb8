/* Hears ELN options (kind 253, ExID 0xFADE: tcpip/options.py) on the ACKs that come in.
 *
 * Read first: bpf-helpers(7), bpf_load_hdr_opt; eln.h.
 *
 * The kernel calls for headers with options it does not know, before it looks at the acknowledgement; a header that
 * its fast path would take has none.
 */
#include "eln.h"

#include <bpf/bpf_endian.h>

#define EXPERIMENTAL 253
#define ELN_BYTES 4

SEC("sockops")
int hear_eln(struct bpf_sock_ops *ops)
{
	__u8 option[ELN_BYTES] = { EXPERIMENTAL, ELN_BYTES, 0xfa, 0xde };
	struct bpf_sock *sk = ops->sk;
	struct tcphdr *header;
	struct mark *mark;
	__u32 beyond;

	if (ops->op == BPF_SOCK_OPS_ACTIVE_ESTABLISHED_CB || ops->op == BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB) {
		bpf_sock_ops_cb_flags_set(ops,
					  ops->bpf_sock_ops_cb_flags | BPF_SOCK_OPS_PARSE_UNKNOWN_HDR_OPT_CB_FLAG);
		return 1;
	}
	if (ops->op != BPF_SOCK_OPS_PARSE_HDR_OPT_CB || !sk)
		return 1;
	header = ops->skb_data;
	if ((void *)(header + 1) > ops->skb_data_end)
		return 1;
	if (bpf_load_hdr_opt(ops, option, sizeof(option), 0) != ELN_BYTES)
		return 1;
	beyond = bpf_ntohl(header->ack_seq) - ops->snd_una;
	/* an old ACK, or one of what was never sent */
	if (beyond > ops->snd_nxt - ops->snd_una)
		return 1;
	mark = bpf_sk_storage_get(&marks, sk, 0, BPF_SK_STORAGE_GET_F_CREATE);
	if (mark)
		mark->place = ops->bytes_acked + beyond + 1;
	return 1;
}

char LICENSE[] SEC("license") = "GPL";
