"""Machines in virtual time.

Linux's own kernel in user mode has a clock that moves only when all processes wait. QEMU has one that counts
instructions, and is for TCP that is a BPF program.

Read first: docs/virtual-time.md.

kernel.py         builds the kernel (kernel.config)
machine.py        a machine: boots, passes output and status on, and leaves nothing
init.py           its first process
stock_kernel.py   fetches the kernel of QEMU's machine
memory_files.py   its files
qemu.py           the machine
kinds.py          which machine a plan needs
"""
