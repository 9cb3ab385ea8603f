"""Multiplies the numbers of a group by one weight."""

from __future__ import annotations

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from ember_hw.rtl.delay import delay
from ember_hw.rtl.execute.float_format import FLOAT32, FloatFormat, Unpacked
from ember_hw.rtl.execute.float_multiply import FloatMultiply
from ember_hw.rtl.multiplier import Multiplier

_BITS = FLOAT32.width_bits
_SIGNIFICAND_BITS = FLOAT32.fraction_bits + 1
_KIND = data.StructLayout({"is_nan": 1, "is_infinite": 1, "is_zero": 1})


class RowScale(wiring.Component):
    """Gives a group's numbers, as they are or multiplied by a weight and rounded, in order.

    A group can be taken each cycle while `room` is high. One that is not scaled is announced by
    `launch` in the cycle after it was taken, a scaled one `scaled_cycles` later; its numbers follow
    a cycle after `launch`.

    The multiplier of a lane has no shifters: it knows no denormals. A scaled group with a denormal
    number, weight or, maybe, product goes lane by lane through one multiplier that does, while the
    rest waits: ``lanes + 8`` cycles more. Every product is as `FloatMultiply`'s.

    Behind scaled beats one that is not must wait until all have left: it would overtake them.

    Parameters
    ----------
    lanes : int
        Numbers of a group.
    source : FloatFormat, optional
        Of the numbers; with the exponents of fp32, which they become without a change.
    control : layout
        What goes with a group.

    Members
    -------
    take : in
        A group comes; only while `room` is high.
    numbers, scaled, weight, control : in
        Of that group.
    blank : in
        That group's numbers don't matter.
    room : out
        A group may come.
    busy : out
        A group is inside, that of this cycle's `launch` included.
    launch, launched : out
        A group's numbers follow, and what goes with it.
    scaled_numbers : out
        Of the group that was launched a cycle ago, fp32.

    Attributes
    ----------
    scaled_cycles : int
        From `take` to `launch` of a group that is scaled.
    """

    def __init__(self, *, lanes: int, control, source: FloatFormat = FLOAT32):
        if lanes < 1:
            raise ValueError(f"lanes must be at least 1, not {lanes!r}")
        if source.exponent_bits != FLOAT32.exponent_bits:
            raise ValueError(f"source must have the exponents of fp32, not be {source.name}")
        self.lanes = lanes
        self.source = source
        source_bits = source.fraction_bits + 1
        self._multipliers = [Multiplier(a=source_bits, b=_SIGNIFICAND_BITS) for _ in range(lanes)]
        self.scaled_cycles = self._multipliers[0].cycles + 3
        super().__init__(
            {
                "take": In(1),
                "numbers": In(source.width_bits * lanes),
                "scaled": In(1),
                "weight": In(_BITS),
                "blank": In(1),
                "control": In(control),
                "room": Out(1),
                "busy": Out(1),
                "launch": Out(1),
                "launched": Out(control),
                "scaled_numbers": Out(_BITS * lanes),
            }
        )

    def elaborate(self, platform):
        m = Module()
        lanes, source = self.lanes, self.source
        held_layout = data.StructLayout({"weight": _BITS, "control": self.control.shape()})

        # First register. Beside it, the least exponent whose products need no shift: 0 for weights
        # that give zero, infinity or NaN at once.
        first_valid, first_scaled = Signal(), Signal()
        first = Signal(held_layout, reset_less=True)
        first_numbers = Signal(source.width_bits * lanes, reset_less=True)
        weight = Unpacked(FLOAT32, self.weight)
        least_exponent = Signal(FLOAT32.exponent_bits, reset_less=True)
        weight_exponent = self.weight[FLOAT32.fraction_bits : -1]
        freeze = Signal()
        with m.If(~freeze):
            m.d.sync += [
                first_valid.eq(self.take),
                first_scaled.eq(self.scaled),
                first_numbers.eq(self.numbers),
                first.weight.eq(self.weight),
                first.control.eq(self.control),
            ]
            with m.If(self.blank | weight.is_nan | weight.is_infinite | ~weight.magnitude.any()):
                m.d.sync += least_exponent.eq(0)
            with m.Elif(weight_exponent == 0):
                m.d.sync += least_exponent.eq(FLOAT32.special_exponent)
            with m.Elif(weight_exponent > FLOAT32.bias):
                m.d.sync += least_exponent.eq(1)
            with m.Else():
                m.d.sync += least_exponent.eq(FLOAT32.bias + 1 - weight_exponent)

        # Second register: it can turn by a lane, the product of its lowest number coming in above.
        second_valid, second_scaled = Signal(), Signal()
        second = Signal(held_layout, reset_less=True)
        second_numbers = Signal(_BITS * lanes, reset_less=True)
        is_slow = Signal()
        kinds = Signal(
            data.ArrayLayout(_KIND, lanes), reset_less=True
        )  # of the numbers before they turn
        turns = Signal()
        m.submodules.full = full = FloatMultiply()
        m.d.comb += [full.a.eq(second_numbers[:_BITS]), full.b.eq(second.weight)]
        with m.If(turns):
            m.d.sync += second_numbers.eq(Cat(second_numbers[_BITS:], full.product))
        with m.Else():
            for lane in range(lanes):
                number = first_numbers.word_select(lane, source.width_bits)
                m.d.sync += second_numbers.word_select(lane, _BITS).eq(_widened(source, number))
        with m.If(~freeze):
            m.d.sync += [
                second_valid.eq(first_valid),
                second_scaled.eq(first_scaled),
                second.weight.eq(first.weight),
                second.control.eq(first.control),
            ]
            low = Signal(lanes)  # products that may be denormals
            m.d.sync += is_slow.eq(first_valid & first_scaled & low.any())
            for lane in range(lanes):
                number = Unpacked(source, first_numbers.word_select(lane, source.width_bits))
                exponent = number.magnitude[source.fraction_bits :]
                is_zero = ~number.magnitude.any()
                m.d.comb += low[lane].eq(~is_zero & (exponent < least_exponent))
                m.d.sync += [
                    kinds[lane].is_nan.eq(number.is_nan),
                    kinds[lane].is_infinite.eq(number.is_infinite),
                    kinds[lane].is_zero.eq(is_zero),
                ]

        last_turn = lanes + full.cycles - 1
        turn = Signal(range(last_turn + 1))
        turned = Signal()  # all the way: the numbers are products
        m.d.comb += [
            turns.eq(is_slow & ~turned),
            freeze.eq(turns),
            self.room.eq(~freeze),
        ]
        m.d.sync += turned.eq(turns & (turn == last_turn))
        with m.If(turns):
            m.d.sync += turn.eq(Mux(turn == last_turn, 0, turn + 1))

        # The lanes.
        product = Signal(_BITS * lanes)
        enters = Signal()
        m.d.comb += enters.eq(second_valid & second_scaled & ~is_slow)
        self._multiply(m, second_numbers, second.weight, kinds, product)
        valids, controls = delay(m, "product", enters, second.control, self.scaled_cycles - 1)
        early = self.scaled_cycles - 3  # a cycle before the product

        # Out, in order.
        launches_first, launches_second = Signal(), Signal()
        m.d.comb += [
            launches_first.eq(first_valid & ~first_scaled & ~freeze),
            launches_second.eq(turns & (turn == last_turn)),
            self.launch.eq(launches_first | launches_second | valids[early]),
            self.busy.eq(first_valid | second_valid | Cat(valids[: early + 1]).any()),
        ]
        with m.If(valids[early]):
            m.d.comb += self.launched.eq(controls[early])
        with m.Elif(launches_second):
            m.d.comb += self.launched.eq(second.control)
        with m.Else():
            m.d.comb += self.launched.eq(first.control)
        m.d.comb += self.scaled_numbers.eq(Mux(valids[early + 1], product, second_numbers))
        return m

    def _multiply(self, m: Module, numbers, weight_bits, kinds, product: Signal) -> None:
        """Multiply every lane's number by the weight."""
        format = FLOAT32
        below = format.fraction_bits - self.source.fraction_bits
        weight = Unpacked(format, weight_bits)
        weight_is_zero = ~weight.magnitude.any()
        for lane, multiplier in enumerate(self._multipliers):
            bits = numbers.word_select(lane, _BITS)
            number = Unpacked(format, bits)
            kind = kinds[lane]
            m.submodules[f"multiplier{lane}"] = multiplier
            m.d.comb += [
                multiplier.a.eq(Cat(bits[below : format.fraction_bits], Const(1, 1))),
                multiplier.b.eq(Cat(weight_bits[: format.fraction_bits], Const(1, 1))),
            ]
            facts = Signal(
                data.StructLayout(
                    {
                        "exponents": format.exponent_bits + 1,
                        "sign": 1,
                        "is_nan": 1,
                        "is_infinite": 1,
                        "is_zero": 1,
                    }
                ),
                name=f"facts{lane}",
            )
            m.d.comb += [
                facts.exponents.eq(number.magnitude[format.fraction_bits :] + weight.exponent),
                facts.sign.eq(number.sign ^ weight.sign),
                facts.is_nan.eq(
                    kind.is_nan
                    | weight.is_nan
                    | (kind.is_infinite & weight_is_zero)
                    | (weight.is_infinite & kind.is_zero)
                ),
                facts.is_infinite.eq(kind.is_infinite | weight.is_infinite),
                facts.is_zero.eq(kind.is_zero | weight_is_zero),
            ]
            known = [facts]
            for cycle in range(multiplier.cycles + 1):
                held_facts = Signal.like(facts, name=f"facts{lane}_{cycle}", reset_less=True)
                m.d.sync += held_facts.eq(known[-1])
                known.append(held_facts)
            before, after = known[-2], known[-1]

            # Significand, and the stored exponent less one.
            whole = multiplier.product
            has_carry = whole[-1]
            low = self.source.fraction_bits
            kept = Signal(_SIGNIFICAND_BITS, name=f"kept{lane}", reset_less=True)
            rounds = Signal(name=f"rounds{lane}", reset_less=True)
            exponent = Signal(format.exponent_bits + 1, name=f"exponent{lane}", reset_less=True)
            m.d.sync += [
                kept.eq(Mux(has_carry, whole[low + 1 :], whole[low:-1])),
                rounds.eq(
                    Mux(
                        has_carry,
                        whole[low] & (whole[:low].any() | whole[low + 1]),
                        whole[low - 1] & (whole[: low - 1].any() | whole[low]),
                    )
                ),
                exponent.eq(before.exponents - (format.bias + 1) + has_carry),
            ]

            # Round.
            magnitude = Signal(format.width_bits + 1, name=f"magnitude{lane}")
            m.d.comb += magnitude.eq(
                Cat(rounds, Const(0, format.fraction_bits), exponent) + Cat(rounds, kept)
            )
            rounded = magnitude[1:]
            overflows = rounded[format.fraction_bits :] >= format.special_exponent
            lane_product = Signal(format.width_bits, name=f"product{lane}", reset_less=True)
            with m.If(after.is_nan):
                m.d.sync += lane_product.eq(format.quiet_nan)
            with m.Elif(after.is_zero):
                m.d.sync += lane_product.eq(Cat(Const(0, format.width_bits - 1), after.sign))
            with m.Elif(after.is_infinite | overflows):
                infinity = Const(format.infinity, format.width_bits - 1)
                m.d.sync += lane_product.eq(Cat(infinity, after.sign))
            with m.Else():
                m.d.sync += lane_product.eq(Cat(rounded[: format.width_bits - 1], after.sign))
            m.d.comb += product.word_select(lane, _BITS).eq(lane_product)


def _widened(source: FloatFormat, number: Value) -> Value:
    """Return a number of a format with the exponents of fp32 as fp32."""
    return Value.cast(Cat(Const(0, FLOAT32.width_bits - source.width_bits), number))
