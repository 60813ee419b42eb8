"""How many links this machine can carry: `capacity.py` decides, `load.py` looks at the machine."""
