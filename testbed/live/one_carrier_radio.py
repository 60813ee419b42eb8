"""The radio of stations that share a carrier: frames leave when the channel access lets them.

Read first: `usrp_radio.py`, the radio of stations with a carrier each; flowgraphs/native/access/contention.hpp.

Rule kept: the radio holds the frames of one channel access, so that an access is full, and those that are on the air.
The others wait where the link can still choose.
"""

from collections import deque
from collections.abc import Iterator
from functools import partial
from typing import Any

from typing_extensions import override

from common.units import MS
from flowgraphs.access import AccessCounts, AccessOptions
from hosts.messages import Transmissions
from telemetry.records import AccessRecord
from testbed.live.hop_radio import RadioMessage
from testbed.live.media import RadioContext
from testbed.live.usrp_radio import OnAirRadio, make_on_air_radio


class OneCarrierRadio(OnAirRadio):
    """Carries frames through a `transceiver` with access; `occupancy_ns` is the longest time on the air at once.

    `link`: the direction that the station sends on. `shared_clock`: the devices of both stations have the same time.
    """

    def __init__(self, *args: Any, occupancy_ns: int, link: str, shared_clock: bool, **options: Any) -> None:
        super().__init__(*args, **options)
        self._occupancy_ns, self._link, self._shared_clock = occupancy_ns, link, shared_clock
        #: airtimes of the frames that wait for the carrier
        self._held_ns: deque[int] = deque()
        self._departed = 0
        #: since the last look at the receiver
        self._gain_changed = False
        #: before the run's time 0
        self._earlier = AccessCounts()

    @override
    def begin(self, epoch: int) -> None:
        super().begin(epoch)
        self._earlier = self._transceiver.access_counts()

    @override
    def take_records(self, now: int, time_ns: int) -> Iterator[RadioMessage]:
        yield from super().take_records(now, time_ns)
        counts, spans = self._transceiver.access_counts() - self._earlier, self._transceiver.take_spans()
        if self._shared_clock:
            yield Transmissions(spans_s=tuple(spans))
        yield AccessRecord(
            time_ns=time_ns,
            link=self._link,
            bursts=counts.bursts,
            deferrals=counts.deferrals,
            backoff_ms=counts.backoff_s * 1e3,
            airtime_ms=counts.airtime_s * 1e3,
            collisions_heard=counts.collisions_heard,
            lag_ms=self._transceiver.take_lag_s() * 1e3,
        )

    @override
    def _check_receiver(self, now: int) -> None:
        if self._gain_changed:
            # samples with the new gain have come by now
            self._gain_changed = False
            self._transceiver.forget_noise()
        super()._check_receiver(now)

    @override
    def _set_gain(self, gain_db: float | None) -> None:
        super()._set_gain(gain_db)
        self._gain_changed |= gain_db is not None

    @override
    def _carried_at(self) -> int | None:
        # the transceiver's descriptor tells when frames have left
        return None

    @override
    def _carry(self, now: int) -> None:
        departed, held = self._transceiver.departed(), self._held_ns
        for _ in range(min(departed - self._departed, len(held))):
            held.popleft()
        self._departed = departed
        while self._waiting:
            airtime_ns = self._airtime_ns(len(self._waiting[0]))
            if held and sum(held) + airtime_ns > self._occupancy_ns:
                break
            self._launch(self._waiting.popleft(), now)
            held.append(airtime_ns)


def make_one_carrier_radio(context: RadioContext, access: AccessOptions) -> OnAirRadio:
    """Return the running radio of a station. Raises FadelabError, FrontEndError or PhyError in one line."""
    return make_on_air_radio(
        context,
        partial(
            OneCarrierRadio,
            occupancy_ns=round(access.occupancy_ms * MS),
            link=context.side,
            shared_clock=context.wiring.get("shared_clock", False),
        ),
    )
