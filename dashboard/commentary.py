"""One sentence on what happens in the demo, for an audience: in plain words, and in the field's terms.

    curves of each run ─► scene_of ─► Scene ─► comment_on ─► Comment

Everything here is a pure function of the records: the same records give the same sentence. Read first: `curves.py`.
"""

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from statistics import fmean, median
from typing import Any

from dashboard.breaks import BREAKS, Break
from dashboard.curves import ALL, Curve, Curves
from linklayer.schemes import SCHEMES

#: time over which losses and goodput are averaged: a sentence is to hold for a while
_LOSS_S = 2.0
_GOODPUT_S = 3.0
#: a run's beginning, and the time after a break in which the sentence is of the recovery
_BEGIN_S = 4.0
_RECOVERY_S = 8.0
#: time whose median goodput is the usual one
_USUAL_S = 30.0
#: shares of frames: a link that loses more is lossy; one that loses more packets for good repairs too little
_LOSSY = 0.02
_LEFT = 0.005
#: shares of the usual goodput, below which a sender is silent, and of the other run's, below which one is slow
_SILENT = 0.08
_SLOW = 0.7
#: ratios of two results within which they are alike
_ALIKE = 1.1


@dataclass(frozen=True, slots=True)
class Scene:
    """One run at one instant, in figures of its records; shares are 0 to 1."""

    scheme: str
    tcp: str = ""
    live: bool = True
    failed: bool = False
    #: time of the run; None before its first record
    time_s: float | None = None
    #: payload received, mean of the last seconds, and the median of the last half minute
    goodput_bps: float | None = None
    usual_bps: float | None = None
    #: whether its result or its error is known, and goodput of the whole run
    settled: bool = False
    result_bps: float | None = None
    #: frames that the medium lost, and packets that the link lost for good
    loss: float = 0.0
    left: float = 0.0
    #: the break that is on
    broken: Break | None = None
    #: time since the newest break was mended
    mended_s: float | None = None

    @property
    def label(self) -> str:
        """The link scheme as people say it."""
        scheme = SCHEMES.get(self.scheme)
        return (scheme.label if scheme is not None else "") or self.scheme


@dataclass(frozen=True, slots=True)
class Comment:
    """A sentence in plain words and in the field's terms; `kind` is its topic."""

    kind: str
    plain: str
    terms: str


# -- what the records say -----------------------------------------------------------------------------------------


def scene_of(info: dict[str, Any], curves: Curves) -> Scene:
    """Return the present scene of a run; `info` is its description (`Feed.describe`)."""
    ended = info["ended"] or {}
    scene = Scene(
        scheme=info["scheme"],
        tcp=info["tcp"],
        live=info["live"],
        failed=bool(ended.get("error")),
        settled=info["ended"] is not None,
        result_bps=(ended.get("summary") or {}).get("goodput_bps"),
    )
    if not curves.curves:
        return scene
    now = curves.newest_s
    flows = _goodputs(curves)
    present = [fmean(values) for curve in flows if (values := _since(curve, now - _GOODPUT_S))]
    recent = [value for curve in flows for value in _since(curve, now - _USUAL_S)]
    broken, mended_s = _breaks(curves, now)
    side = _busy_side(curves)
    return replace(
        scene,
        time_s=now,
        goodput_bps=sum(present) if present else None,
        usual_bps=median(recent) * len(flows) if recent else None,
        loss=_share(curves, f"{side} before", now),
        left=_share(curves, f"{side} after", now),
        broken=broken,
        mended_s=mended_s,
    )


def _goodputs(curves: Curves) -> list[Curve]:
    """The curves whose sum is all goodput."""
    whole = curves.curves.get(("goodput", ALL))
    if whole is not None:
        return [whole]
    return [curve for (chart, _), curve in curves.curves.items() if chart == "goodput"]


def _since(curve: Curve, since_s: float) -> list[float]:
    first = bisect_left(curve.times, since_s)
    # x == x: not NaN, which is a gap
    return [value for value in curve.values[first:] if value == value]


def _busy_side(curves: Curves) -> str:
    """The direction that carries more."""
    carried = {
        side: fmean(_since(curve, curve.times[-1] - _USUAL_S) or [0.0])
        for side in ("up", "down")
        if (curve := curves.curves.get(("throughput", side))) is not None
    }
    return max(carried, key=lambda side: carried[side], default="up")


def _share(curves: Curves, label: str, now: float) -> float:
    """The mean of a chart in percent over the last seconds, as a share."""
    curve = curves.curves.get(("per", label))
    values = [] if curve is None else _since(curve, now - _LOSS_S)
    return fmean(values) / 100 if values else 0.0


def _breaks(curves: Curves, now: float) -> tuple[Break | None, float | None]:
    """The break that is on, and the time since the newest one was mended, by the changes of controls."""
    on: Break | None = None
    mended_at: float | None = None
    for note in curves.notes():
        found = next((each for each in BREAKS if (each.control, each.value) == (note.name, note.value)), None)
        if found is not None:
            on = found
        elif on is not None and note.name == on.control:
            on, mended_at = None, note.t
    return on, None if mended_at is None or on is not None else now - mended_at


# -- the sentence -------------------------------------------------------------------------------------------------


class _Pair:
    """What the rules look at: the run without repair and the run with it."""

    def __init__(self, bare: Scene, repaired: Scene) -> None:
        self.bare = bare
        self.repaired = repaired
        self.both = (bare, repaired)
        self.usual_bps = max(scene.usual_bps or 0.0 for scene in self.both)
        # of the one that sends more frames: a share of few is mostly luck
        self.loss = repaired.loss or bare.loss
        self.broken = repaired.broken or bare.broken
        mended = [scene.mended_s for scene in self.both if scene.mended_s is not None]
        self.mended_s = min(mended, default=None)

    def silent(self, scene: Scene) -> bool:
        """Whether a run carries next to nothing."""
        return scene.goodput_bps is not None and scene.goodput_bps < _SILENT * self.usual_bps

    @property
    def slow(self) -> bool:
        """Whether the run without repair carries clearly less than the other one."""
        bare, repaired = self.bare.goodput_bps, self.repaired.goodput_bps
        return bare is not None and repaired is not None and bare < _SLOW * repaired

    @property
    def one_in(self) -> str:
        """How many packets the air damages."""
        rounds = round(1 / self.loss) if self.loss > 0 else 0
        return f"one packet in {rounds}" if rounds > 1 else "nearly every packet"

    @property
    def percent(self) -> str:
        return f"{100 * self.loss:.0f} %"


def comment_on(scenes: Sequence[Scene]) -> Comment:
    """Return the sentence on a run without repair beside one with it; on other runs, one that names them."""
    bare = next((scene for scene in scenes if scene.scheme == "none"), None)
    repaired = next((scene for scene in scenes if scene.scheme != "none"), None)
    if bare is None or repaired is None or len(scenes) != 2:
        return _of_others(scenes)
    pair = _Pair(bare, repaired)
    return next(found for rule in _RULES if (found := rule(pair)) is not None)


def _of_others(scenes: Sequence[Scene]) -> Comment:
    labels = [scene.label for scene in scenes]
    if len(set(labels)) < len(labels):
        labels = [f"{scene.label} with TCP {scene.tcp}" if scene.tcp else scene.label for scene in scenes]
    names = " and ".join(labels)
    if not names:
        return Comment("none", "Nothing runs yet.", "No run yet.")
    if any(scene.live for scene in scenes):
        return Comment("others", f"Under way: {names}.", f"Live: {names}.")
    return Comment("over", f"Over: {names}.", f"Ended: {names}.")


def _over(pair: _Pair) -> Comment | None:
    if any(scene.live for scene in pair.both):
        return None
    bare, repaired = (scene.result_bps or 0.0 for scene in pair.both)
    if not all(scene.settled for scene in pair.both):
        return Comment("counting", "Both have ended; the result is being counted.", "Both runs have ended.")
    if any(scene.failed for scene in pair.both):
        return Comment("over", "One of the two has failed, so there is no result.", "A run has failed: no result.")
    terms = f"{pair.repaired.label} {repaired / 1e6:.2f} Mbit/s, {pair.bare.label} {bare / 1e6:.2f} Mbit/s of goodput"
    if not bare or not repaired:
        return Comment("over", "It is over; not both have carried anything.", f"Over: {terms}.")
    ratio = repaired / bare
    terms = f"{terms}: {ratio:.1f} times as much over the same channel."
    if ratio > _ALIKE:
        times = f"{ratio:.1f} times as much"
        return Comment("over", f"Repair on the link has carried {times}, over the same channel.", terms)
    if ratio > 1 / _ALIKE:
        return Comment("over", "Both have carried about the same: there was little to repair.", terms)
    return Comment("over", "This time repair on the link has carried less: it took more than it gave.", terms)


def _half(pair: _Pair) -> Comment | None:
    ended = [scene for scene in pair.both if not scene.live]
    if not ended:
        return None
    which = "without repair" if ended[0] is pair.bare else "with repair"
    return Comment("half", f"The link {which} has ended; the other one goes on.", f"{ended[0].label} has ended.")


def _waiting(pair: _Pair) -> Comment | None:
    if all(scene.time_s is not None and scene.goodput_bps is not None for scene in pair.both):
        return None
    names = f"{pair.bare.label}, and {pair.repaired.label}"
    return Comment(
        "waiting",
        "Two radio links are about to carry the same data over the same channel.",
        f"Two runs of one scenario and one seed: {names}.",
    )


def _begin(pair: _Pair) -> Comment | None:
    if min(scene.time_s or 0.0 for scene in pair.both) >= _BEGIN_S:
        return None
    return Comment(
        "begin",
        "Both senders begin slowly and speed up for as long as nothing is lost.",
        "Slow start: both congestion windows grow with each ACK until the first loss.",
    )


def _broken(pair: _Pair) -> Comment | None:
    on = pair.broken
    if on is None:
        return None
    if on.name == "burst":
        return Comment(
            "burst",
            "A burst of noise: for a moment nothing gets through, on either link.",
            "Burst: every frame is lost for a second, and TCP's retransmission timer runs.",
        )
    if on.name == "interferer":
        plain = f"Another sender disturbs both links: {pair.one_in} is hit, however strong the signal is."
        terms = f"Losses at random, SNR unchanged: PER {pair.percent}."
        if pair.slow:
            plain = "Another sender hits packets at random. Without repair the sender takes that for a traffic jam."
            terms = f"PER {pair.percent} at random: without repair TCP takes each loss for congestion and halves cwnd."
        return Comment("interferer", plain, terms)
    if pair.slow:
        return Comment(
            "fade",
            "The signal fades. With repair the link sends lost packets again; without it the sender has to notice.",
            f"Fade, PER {pair.percent}: {pair.repaired.label} retransmits on the link; without it TCP does.",
        )
    return Comment(
        "fade",
        f"The signal fades: {pair.one_in} is damaged on its way through the air.",
        f"Fade: the SNR is lowered to {on.value:g} dB, PER {pair.percent}.",
    )


def _recovery(pair: _Pair) -> Comment | None:
    if pair.mended_s is None or pair.mended_s > _RECOVERY_S:
        return None
    if pair.silent(pair.bare) and not pair.silent(pair.repaired):
        return Comment(
            "recovery",
            "The channel is back. With repair the data flows; without it the sender still waits before it tries again.",
            "Without repair TCP waits for its retransmission timeout, which doubles with each expiry.",
        )
    if pair.slow:
        return Comment(
            "recovery",
            "The channel is back, but without repair the sender speeds up only step by step.",
            "Without repair the congestion window was cut, and grows again over many round trips.",
        )
    return Comment(
        "recovery",
        "The channel is back, and both links are getting up to speed.",
        "The channel is as before the break; both congestion windows grow.",
    )


def _deep(pair: _Pair) -> Comment | None:
    if pair.repaired.left < _LEFT:
        return None
    return Comment(
        "deep",
        "The channel is so bad that even the repair has to give up some packets.",
        f"{pair.repaired.label} gives up packets: a residual loss of {100 * pair.repaired.left:.1f} % is left for TCP.",
    )


def _silent(pair: _Pair) -> Comment | None:
    if not pair.silent(pair.bare) or pair.silent(pair.repaired):
        return None
    return Comment(
        "silent",
        "Without repair the sender has gone quiet: it lost too much, and waits before it tries again.",
        "Without repair TCP waits for its retransmission timeout.",
    )


def _lossy(pair: _Pair) -> Comment | None:
    if pair.loss < _LOSSY:
        return None
    if pair.slow:
        return Comment(
            "lossy",
            f"The air damages {pair.one_in}. With repair the sender never notices; without it, it slows down.",
            f"PER {pair.percent}: {pair.repaired.label} hides the losses; else TCP takes them for congestion.",
        )
    return Comment(
        "lossy",
        f"The air damages {pair.one_in}. With repair the link itself sends it again.",
        f"PER {pair.percent}: {pair.repaired.label} repairs on the link, without it TCP has to retransmit.",
    )


def _clear(pair: _Pair) -> Comment:
    if pair.slow:
        return Comment(
            "clear",
            "The air is clear just now, but without repair the sender still recovers from earlier losses.",
            "Hardly any frame is lost; without repair the congestion window still grows after earlier losses.",
        )
    return Comment(
        "clear",
        "A clear moment: hardly anything is lost, and both links carry the same.",
        "Hardly any frame is lost: repair makes no difference.",
    )


#: the first that has something to say is taken
_RULES: tuple[Callable[[_Pair], Comment | None], ...] = (
    _over,
    _half,
    _waiting,
    _broken,
    _begin,
    _recovery,
    _deep,
    _silent,
    _lossy,
    _clear,
)
