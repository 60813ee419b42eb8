"""Explicit loss notifications for the kernel's TCP, in eBPF.

| file | what it is |
|---|---|
| `eln.h` | what the two programs share |
| `options.bpf.c` | a sockops program: hears ELN options |
| `control.bpf.c` | a congestion control: Reno that keeps its window where a loss is marked |
| `build.py` | makes objects of them for the kernel that runs |
| `libbpf.py` | what of libbpf is needed, by ctypes |
| `cgroups.py` | the control group a run's hosts are in, so that no other process hears anything |
| `eln.py` | all of it for one run |

docs/kernel-eln.md explains them.
"""
