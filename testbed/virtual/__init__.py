"""Machines in virtual time: Linux's own kernel in user mode, whose clock moves only when all processes wait.

Read first: docs/virtual-time.md.

kernel.py     builds the kernel (kernel.config)
machine.py    a machine: boots, passes output and status on, and leaves nothing
init.py       its first process
"""
