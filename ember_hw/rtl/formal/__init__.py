"""Proofs about blocks of the access unit, by SymbiYosys and the SMT solver Yices.

`bench` opens a block so that properties can speak of its registers, `solver` runs a proof; each
other module holds the properties of one kind of block. docs/verification.md lists what is proved.
"""
