"""From an SNR to a path gain, held to the virtual USRPs' documented levels and to a device's own."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flowgraphs.air import Air
from flowgraphs.frontend import Receiver, Transmitter
from flowgraphs.levels import MIDDLE_GAIN_DB, NOISE_DBM_PER_HZ, TX_FULL_SCALE_DBM, path_gain_db
from tests.harness.radios import air_name, needs_vusrp, on


@given(
    snr_db=st.floats(-30, 60),
    rate_sps=st.floats(1e5, 5e7),
    tx_gain_db=st.floats(0, 60),
    rms=st.floats(0.01, 1),
)
def test_the_gain_gives_the_snr(snr_db: float, rate_sps: float, tx_gain_db: float, rms: float) -> None:
    """SNR = (tx gain - 40 + signal dBFS) + path gain - (noise dBm/Hz + 10 log10 rate), flowgraphs/vusrp/README.md."""
    gain_db = path_gain_db(snr_db, rate_sps=rate_sps, tx_gain_db=tx_gain_db, rms=rms)
    signal_dbfs = 10 * math.log10(rms**2)
    found_db = (tx_gain_db - 40 + signal_dbfs) + gain_db - (-168 + 10 * math.log10(rate_sps))
    assert found_db == pytest.approx(snr_db, abs=1e-9)


@pytest.mark.patient
@needs_vusrp
def test_a_device_has_these_levels() -> None:
    with Air.create(air_name()) as air:
        settings = on(air, "V1")
        transmitter, receiver = Transmitter(settings), Receiver(settings)
        assert transmitter.gain_db == MIDDLE_GAIN_DB
        [device] = air.devices()
        assert device.tx[0].full_scale_dbm == TX_FULL_SCALE_DBM + transmitter.gain_db
        assert air.noise_dbm_hz("V1:0") == NOISE_DBM_PER_HZ
        del transmitter, receiver
    assert air.name not in Air.names()
