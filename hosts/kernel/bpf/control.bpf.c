/* Congestion control fadelab_eln: Reno, but for losses that explicit loss notifications call corruption.
 *
 * Read first: net/ipv4/tcp_input.c (tcp_fastretrans_alert, tcp_enter_recovery, tcp_end_cwnd_reduction), tcp_cong.c;
 * RFC 6937 (proportional rate reduction); docs/kernel-eln.md; eln.h.
 *
 * Rules kept
 * - All is stock Reno unless every loss of a fast recovery that the sender comes to see is marked: then cwnd goes on
 *   where it was, and ssthresh is what it was before.
 * - The losses a sender comes to see are its holes, one after the other: where the cumulative acknowledgement stands
 *   while it recovers, with SACK if something behind it has arrived. A hole is unmarked until an ACK of it carries ELN;
 *   the window is reduced while it is, and for good once it is filled without. It is reduced once per recovery.
 * - ECN echoed while recovering is congestion, too. A retransmission timeout is stock.
 * - No window is left to chance: a kernel may leave out a program that it calls, with ssthresh an accident then
 *   (docs/kernel-eln.md#a-kernel-that-leaves-out-programs). The next ACK catches up, from what it notes for an undo.
 *
 * Linux asks for ssthresh once as a recovery begins and sends by proportional rate reduction towards it, ACK by ACK:
 * to reduce later, or to take a reduction back, is to change ssthresh meanwhile.
 */
#include "eln.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>

#ifndef CONTROL_NAME
#define CONTROL_NAME "fadelab_eln"
#endif

struct recovery {
	/* octets acknowledged, at the last ACK */
	__u64 place;
	/* before it began; in segments */
	__u32 ssthresh, cwnd;
	/* Reno's answer */
	__u32 reduced;
	/* ssthresh was asked for, and why is not known yet */
	bool asked;
	/* of ours: neither a timeout nor ECN nor congestion of this host had reduced the window when it began */
	bool ours;
	/* a segment is missing at that place */
	bool hole;
	/* an ACK of it carried ELN */
	bool marked;
	/* some hole was not marked */
	bool congested;
	/* icsk_ca_state, as we know it */
	__u8 state;
};

extern __u32 tcp_reno_ssthresh(struct sock *sk) __ksym;
extern __u32 tcp_reno_undo_cwnd(struct sock *sk) __ksym;
extern void tcp_reno_cong_avoid(struct sock *sk, __u32 ack, __u32 acked) __ksym;

static struct recovery *recovery_of(struct sock *sk)
{
	return (struct recovery *)((struct inet_connection_sock *)sk)->icsk_ca_priv;
}

static bool before(__u32 left, __u32 right)
{
	return (__s32)(left - right) < 0;
}

/* Whether a recovery has come upon a loss where the acknowledgement stands. */
static bool at_hole(struct tcp_sock *tp)
{
	/* what is missing behind high_seq is the next recovery's */
	if (!before(tp->snd_una, tp->high_seq))
		return false;
	/* a partial ACK is one (RFC 6582), but where SACK would tell */
	return !BPF_CORE_READ_BITFIELD(tp, rx_opt.sack_ok) || tp->sacked_out;
}

/* Look whether the present hole is marked, and let ssthresh be what follows. */
static void decide(struct sock *sk, struct recovery *recovery)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct mark *mark = bpf_sk_storage_get(&marks, sk, 0, 0);

	if (mark && mark->place == recovery->place + 1)
		recovery->marked = true;
	tp->snd_ssthresh = (recovery->marked || !recovery->hole) && !recovery->congested ? recovery->cwnd
											   : recovery->reduced;
}

/* Do what asking for ssthresh would have done as `state` began. */
static void answer_late(struct tcp_sock *tp, struct recovery *recovery)
{
	recovery->cwnd = tp->prior_cwnd;
	recovery->reduced = tp->prior_cwnd > 4 ? tp->prior_cwnd / 2 : 2;
	recovery->ssthresh = tp->prior_ssthresh ? tp->prior_ssthresh : recovery->reduced;
	recovery->asked = true;
	recovery->ours = false;
	tp->snd_ssthresh = recovery->reduced;
	/* a window that has followed the accident */
	if (tp->snd_cwnd > recovery->cwnd)
		tp->snd_cwnd = recovery->cwnd;
}

/* Whether Linux must have asked for ssthresh to come into `state`. */
static bool must_have_asked(struct tcp_sock *tp, struct recovery *recovery, __u8 state)
{
	if (recovery->state > TCP_CA_Disorder)
		return false;
	/* not where it lowers the size of its segments (tcp_simple_retransmit), which is nothing to undo */
	return state == TCP_CA_CWR || state == TCP_CA_Recovery || (state == TCP_CA_Loss && tp->prior_ssthresh);
}

static void enter(struct sock *sk, struct recovery *recovery, __u8 state)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;

	if (!recovery->asked && must_have_asked(tp, recovery, state))
		answer_late(tp, recovery);
	if (state == TCP_CA_Recovery && recovery->asked) {
		recovery->ours = true;
		recovery->place = tp->bytes_acked;
		recovery->hole = true;
		recovery->marked = false;
		recovery->congested = false;
		decide(sk, recovery);
	} else if (state == TCP_CA_Loss && recovery->ours) {
		tp->snd_ssthresh = recovery->reduced;
		recovery->ours = false;
	}
	recovery->asked = false;
	recovery->state = state;
}

/* A recovery is over, and cwnd has been set to ssthresh. */
static void leave(struct tcp_sock *tp, struct recovery *recovery)
{
	if (!recovery->congested)
		tp->snd_ssthresh = recovery->ssthresh;
	recovery->ours = false;
}

SEC("struct_ops")
void BPF_PROG(eln_init, struct sock *sk)
{
	struct recovery *recovery = recovery_of(sk);

	/* another congestion control may have been here */
	__builtin_memset(recovery, 0, sizeof(struct recovery));
	recovery->state = ((struct inet_connection_sock *)sk)->icsk_ca_state;
}

SEC("struct_ops")
__u32 BPF_PROG(eln_ssthresh, struct sock *sk)
{
	struct recovery *recovery = recovery_of(sk);
	struct tcp_sock *tp = (struct tcp_sock *)sk;

	recovery->ssthresh = tp->snd_ssthresh;
	recovery->cwnd = tp->snd_cwnd;
	recovery->reduced = tcp_reno_ssthresh(sk);
	recovery->asked = true;
	recovery->ours = false;
	return recovery->reduced;
}

SEC("struct_ops")
void BPF_PROG(eln_set_state, struct sock *sk, __u8 state)
{
	enter(sk, recovery_of(sk), state);
}

SEC("struct_ops")
void BPF_PROG(eln_in_ack_event, struct sock *sk, __u32 flags)
{
	struct recovery *recovery = recovery_of(sk);
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	__u8 state = ((struct inet_connection_sock *)sk)->icsk_ca_state;

	if (state != recovery->state)
		enter(sk, recovery, state);
	if (state <= TCP_CA_Disorder && recovery->ours)
		leave(tp, recovery);
	if (state != TCP_CA_Recovery || !recovery->ours)
		return;
	if (tp->bytes_acked != recovery->place) {
		if (recovery->hole && !recovery->marked)
			recovery->congested = true;
		recovery->place = tp->bytes_acked;
		recovery->hole = false;
		recovery->marked = false;
	}
	if (at_hole(tp))
		recovery->hole = true;
	if (flags & CA_ACK_ECE)
		recovery->congested = true;
	decide(sk, recovery);
}

SEC("struct_ops")
void BPF_PROG(eln_cwnd_event, struct sock *sk, enum tcp_ca_event event)
{
	struct recovery *recovery = recovery_of(sk);

	if (event == CA_EVENT_COMPLETE_CWR && recovery->ours)
		leave((struct tcp_sock *)sk, recovery);
}

SEC("struct_ops")
void BPF_PROG(eln_cong_avoid, struct sock *sk, __u32 ack, __u32 acked)
{
	tcp_reno_cong_avoid(sk, ack, acked);
}

SEC("struct_ops")
__u32 BPF_PROG(eln_undo_cwnd, struct sock *sk)
{
	return tcp_reno_undo_cwnd(sk);
}

SEC(".struct_ops")
struct tcp_congestion_ops control = {
	.init = (void *)eln_init,
	.ssthresh = (void *)eln_ssthresh,
	.cong_avoid = (void *)eln_cong_avoid,
	.set_state = (void *)eln_set_state,
	.cwnd_event = (void *)eln_cwnd_event,
	.in_ack_event = (void *)eln_in_ack_event,
	.undo_cwnd = (void *)eln_undo_cwnd,
	.name = CONTROL_NAME,
};

char LICENSE[] SEC("license") = "GPL";
