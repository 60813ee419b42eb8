"""Tests of `./fadelab`, the command line and `doctor`."""
