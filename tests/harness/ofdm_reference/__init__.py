"""PHY `ofdm` in plain Python, as it was before the native module: what that is held to, sample by sample."""
