"""The links that this machine can carry: `capacity.py` decides, `processors.py` looks at the machine."""
