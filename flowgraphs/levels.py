"""The levels of virtual USRPs: the path gain for a wanted SNR.

Read first: `flowgraphs/vusrp/README.md`, section on levels, which has the same figures.
"""

import math

#: power of a full-scale sample at a transmit gain of 0 dB
TX_FULL_SCALE_DBM = -40.0
#: middle of the range of transmit gains
MIDDLE_GAIN_DB = 30.0
#: noise density of a receiver: kT at 290 K and a noise figure of 6 dB
NOISE_DBM_PER_HZ = -168.0


def path_gain_db(snr_db: float, *, rate_sps: float, tx_gain_db: float, rms: float) -> float:
    """Return the path gain for this SNR per sample at the receiver, over its whole sampled band.

    `rms` is the transmitter's amplitude during a burst (full scale is 1).
    """
    transmitted_dbm = TX_FULL_SCALE_DBM + tx_gain_db + 20 * math.log10(rms)
    noise_dbm = NOISE_DBM_PER_HZ + 10 * math.log10(rate_sps)
    return snr_db + noise_dbm - transmitted_dbm
