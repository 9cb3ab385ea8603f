"""Tests of the access unit's blocks, in Amaranth's simulator."""
