"""The access unit in Amaranth, one block a file, in the order a lookup meets them.

`microcode_memory`, `register_file`, `control` -> `bounds`, `iterator`, `stream_address`,
`line_store`, `join` (together a `traversal_unit`) -> `issue`, `row_address`, `gather_engine` ->
`index_port`, `memory_port`; `access_unit` wires them, `emit_verilog` gives the flat top level.

What says that a register holds something has a reset; the registers of pipelines' data have none: a
reset that goes everywhere is what is hardest to route.
"""
