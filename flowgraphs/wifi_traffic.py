"""Bursts like those of a busy Wi-Fi channel, as interference for virtual USRPs.

Read first: IEEE 802.11-2016, 10.3.2.3 (spaces between frames), 10.3.3 (backoff) and 17.3 (OFDM at 20 MHz).

An exchange is a data frame, SIFS and its acknowledgement; DIFS and a backoff lie before it. What a receiver within the
channel hears of OFDM is white Gaussian noise that is switched on and off, so that nothing here can be decoded.

Left out: beacons, collisions, and the rise and fall of a burst.
"""

import numpy as np

from flowgraphs.phy import Samples

#: seconds, of 20 MHz OFDM
SIFS_S, SLOT_S, DIFS_S = 16e-6, 9e-6, 34e-6
PREAMBLE_S, SYMBOL_S = 20e-6, 4e-6
BACKOFF_SLOTS = 15
#: data bits per OFDM symbol at 6 to 54 Mbit/s; an acknowledgement has 14 octets at 24 Mbit/s
SYMBOL_BITS = (24, 36, 48, 72, 96, 144, 192, 216)
ACK_S = PREAMBLE_S + 2 * SYMBOL_S
#: payloads and their shares: acknowledgements of TCP, speech, full segments
OCTETS, SHARES = (76, 240, 1536), (0.4, 0.1, 0.5)
#: root mean square during a burst, so that peaks stay within full scale
RMS = 0.25
#: of the 20 MHz channel, the part with subcarriers
OCCUPIED_HZ = 16.6e6


def bursts(seconds: float, busy: float, rng: np.random.Generator) -> list[tuple[float, float]]:
    """Return begin and duration of each burst (seconds); bursts take the share `busy` of the time on average.

    Back to back, exchanges take about 0.8 of it: raises ValueError for more than 0.7, and for less than 0.01.
    """
    if not 0.01 <= busy <= 0.7:
        raise ValueError(f"busy is {busy:g}: must lie within 0.01 and 0.7")
    found = []
    at = 0.0
    while at < seconds:
        bits = 8 * rng.choice(OCTETS, p=SHARES) + 22
        data_s = PREAMBLE_S + SYMBOL_S * float(np.ceil(bits / rng.choice(SYMBOL_BITS)))
        gap_s = DIFS_S + SLOT_S * float(rng.integers(BACKOFF_SLOTS + 1))
        # what is missing to the share, the mean of an exponential silence
        idle_s = (data_s + ACK_S) * (1 / busy - 1) - SIFS_S - DIFS_S - SLOT_S * BACKOFF_SLOTS / 2
        at += gap_s + (float(rng.exponential(idle_s)) if idle_s > 0 else 0.0)
        found += [(at, data_s), (at + data_s + SIFS_S, ACK_S)]
        at += data_s + SIFS_S + ACK_S
    return [burst for burst in found if sum(burst) <= seconds]


def samples(seconds: float, busy: float, rate_sps: float, rng: np.random.Generator) -> Samples:
    """Return what a receiver in the middle of the channel hears, of amplitude RMS during a burst."""
    n = round(seconds * rate_sps)
    heard = rng.standard_normal(2 * n, np.float32).view(np.complex64) * np.float32(RMS / np.sqrt(2))
    if rate_sps > OCCUPIED_HZ:
        spectrum = np.fft.fft(heard)
        spectrum[np.abs(np.fft.fftfreq(n, 1 / rate_sps)) > OCCUPIED_HZ / 2] = 0
        heard = np.fft.ifft(spectrum) * np.sqrt(rate_sps / OCCUPIED_HZ)
    on = np.zeros(n, bool)
    for begin, duration in bursts(seconds, busy, rng):
        on[round(begin * rate_sps) : round((begin + duration) * rate_sps)] = True
    return np.where(on, heard, 0).astype(np.complex64)
