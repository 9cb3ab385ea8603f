"""Turns leaf tokens into bundles and rows, in program order."""

from __future__ import annotations

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from ember_hw import isa
from ember_hw.config import AcceleratorConfig
from ember_hw.rtl.layouts import bundle_layout, record_layout, token_layout, values_layout


def row_order_layout(config: AcceleratorConfig) -> data.StructLayout:
    """Return a row to fetch: the row entry, and the leaf's exports it selects among."""
    return data.StructLayout({"entry": range(config.row_entries), "exports": values_layout(config)})


class Issue(wiring.Component):
    """For each leaf token: its bundle, if one of its events is selected, then its rows in order.

    A token with at most one row takes one cycle, another as many as it has rows. The bundle leaves
    before the token's first row. The program's last token always has a bundle, with `last` set.
    Both outputs may stall; a full bundle queue holds back only tokens that need a bundle.

    Members
    -------
    issue : in
        Microcode record.
    row_events : in
        The events of each row entry.
    token : stream, in
        Of the innermost unit.
    bundle, row : streams, out
    finished : out
        High for a cycle when the program's last token has left.
    """

    def __init__(self, *, config: AcceleratorConfig):
        self.config = config
        super().__init__(
            {
                "issue": In(record_layout("issue", config)),
                "row_events": In(config.events).array(config.row_entries),
                "token": In(stream.Signature(token_layout(config))),
                "bundle": Out(stream.Signature(bundle_layout(config))),
                "row": Out(stream.Signature(row_order_layout(config))),
                "finished": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        config = self.config
        root_end = isa.event_bit(isa.Event.END, 0, config)

        loaded = Signal()
        token = Signal(token_layout(config))
        rows_left = Signal(config.row_entries)
        bundle_left = Signal()

        one_row_left = Signal()
        row_moves = Signal()
        bundle_moves = Signal()
        leaves = Signal()
        m.d.comb += [
            one_row_left.eq((rows_left & (rows_left - 1)) == 0),
            self.bundle.valid.eq(loaded & bundle_left),
            self.row.valid.eq(loaded & (rows_left != 0) & (~bundle_left | self.bundle.ready)),
            bundle_moves.eq(self.bundle.valid & self.bundle.ready),
            row_moves.eq(self.row.valid & self.row.ready),
            leaves.eq(
                loaded
                & (~bundle_left | self.bundle.ready)
                & ((rows_left == 0) | (one_row_left & self.row.ready))
            ),
            self.token.ready.eq(~loaded | leaves),
            self.finished.eq(leaves & token.events[root_end]),
        ]
        with m.If(self.token.ready):
            events = self.token.payload.events
            m.d.sync += [
                loaded.eq(self.token.valid),
                token.eq(self.token.payload),
                rows_left.eq(Cat((selected & events).any() for selected in self.row_events)),
                bundle_left.eq((self.issue.events & events).any() | events[root_end]),
            ]
        with m.Else():
            with m.If(row_moves):
                m.d.sync += rows_left.eq(rows_left & (rows_left - 1))
            with m.If(bundle_moves):
                m.d.sync += bundle_left.eq(0)

        m.d.comb += [
            self.bundle.payload.events.eq(token.events & (self.issue.events | 1 << root_end)),
            self.bundle.payload.last.eq(token.events[root_end]),
            self.row.payload.exports.eq(token.exports),
        ]
        for i in range(config.bundle_scalars):
            m.d.comb += self.bundle.payload.scalars[i].eq(token.exports[i])
        for entry in reversed(range(config.row_entries)):
            with m.If(rows_left[entry]):
                m.d.comb += self.row.payload.entry.eq(entry)
        return m
