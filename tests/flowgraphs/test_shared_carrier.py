"""Two stations' flowgraphs on one carrier of a virtual air, in real time: frames both ways, and no own ones."""

import pytest

from flowgraphs.access import AccessOptions
from flowgraphs.air import Air
from flowgraphs.phys import make_phy
from flowgraphs.transceiver import Transceiver
from tests.harness.radios import RATE_SPS, air_name, needs_vusrp, on
from tests.harness.waiting import wait_for

pytestmark = [needs_vusrp, pytest.mark.patient]

#: a machine may answer late
ACCESS = AccessOptions(slot_us=12_000.0, lead_us=10_000.0, window=1, occupancy_ms=5.0)
FRAMES = 30


def test_stations_hear_each_other_and_not_their_own_louder_transmitters() -> None:
    with Air.create(air_name(), seed=1) as air:
        air.set_link("*", "*", gain_db=-60.0)
        for serial in ("A", "B"):
            # 30 dB above the other station
            air.set_link(serial, serial, gain_db=-30.0)
        stations = {}
        try:
            for seed, serial in enumerate(("A", "B")):
                settings = on(air, serial, lot_s=ACCESS.lot_s)
                phy = make_phy("ofdm", rate_sps=RATE_SPS)
                stations[serial] = Transceiver(settings, phy, access=ACCESS, seed=seed)
                stations[serial].start()
            for number in range(FRAMES):
                for serial, station in stations.items():
                    station.send(f"{serial}{number}".encode() * 50)
            wait_for(lambda: all(station.departed() == FRAMES for station in stations.values()))
            heard: dict[str, list[bytes]] = {"A": [], "B": []}

            def take() -> bool:
                for serial, station in stations.items():
                    while (received := station.receive()) is not None:
                        heard[serial].append(received.payload)
                return all(frames and frames[-1].endswith(b"29") for frames in heard.values())

            wait_for(take)
            for serial, other in (("A", "B"), ("B", "A")):
                sent = [f"{other}{number}".encode() * 50 for number in range(FRAMES)]
                assert set(heard[serial]) <= set(sent)
                # some may have been late, or have collided
                assert len(heard[serial]) >= FRAMES / 2
                counts = stations[serial].access_counts()
                assert counts.deferrals > 0
                assert counts.bursts < FRAMES
                assert len(stations[serial].take_spans()) == counts.bursts
        finally:
            for station in stations.values():
                station.close()
