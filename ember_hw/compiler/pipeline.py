"""Every pass in order, by opt level, and the registry that `ember-opt` reads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from xdsl.dialects.builtin import MemRefType, ModuleOp
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import VerifyException

from ember_hw.compiler.backend.dlc_to_au import DlcToAu
from ember_hw.compiler.dialects import make_context
from ember_hw.compiler.dialects.dlc import ConfigureAccessEngineOp
from ember_hw.compiler.dialects.quantized import QuantizedType
from ember_hw.compiler.dialects.stream_types import memref_type
from ember_hw.compiler.program import OPT_LEVELS
from ember_hw.compiler.transforms.access_slice import Decision, decoupling_report
from ember_hw.compiler.transforms.assign_variables import AssignVariables
from ember_hw.compiler.transforms.buffer_compound_types import BufferCompoundTypes
from ember_hw.compiler.transforms.callback_vectorizer import CallbackVectorizer
from ember_hw.compiler.transforms.check_dae import CheckDae, check_dae
from ember_hw.compiler.transforms.choose_decoupling import ChooseDecoupling
from ember_hw.compiler.transforms.count_lanes import CountLanes
from ember_hw.compiler.transforms.divide_nests import DivideNests
from ember_hw.compiler.transforms.flatten_views import FlattenViews
from ember_hw.compiler.transforms.ir_facts import find_remarks, functions
from ember_hw.compiler.transforms.keep_invariant_rows import KeepInvariantRows
from ember_hw.compiler.transforms.recompute_indices import RecomputeIndices
from ember_hw.compiler.transforms.replace_to_val import ReplaceToVal
from ember_hw.compiler.transforms.scf_to_slc import ScfToSlc
from ember_hw.compiler.transforms.simplify_casts import SimplifyCasts
from ember_hw.compiler.transforms.simplify_mem_ops import SimplifyMemOps
from ember_hw.compiler.transforms.sink_regular_loops import SinkRegularLoops
from ember_hw.compiler.transforms.slc_to_dlc import SlcToDlc
from ember_hw.compiler.transforms.slc_vectorizer import SlcVectorizer
from ember_hw.compiler.transforms.split_siblings import SplitSiblings
from ember_hw.config import AcceleratorConfig
from ember_hw.errors import CompileError

__all__ = [
    "OPT_LEVELS",
    "PASSES",
    "PipelineResult",
    "Step",
    "pipeline",
    "run_pipeline",
    "vector_length_of",
]

_FLOAT32_BYTES = 4
_FEWEST_LANES = 2


class Step(NamedTuple):
    """
    A pass of the pipeline.

    Attributes
    ----------
    opt_level : int
        Lowest level that runs it.
    module_pass : ModulePass
        The pass.
    level : str
        IR level of what it leaves: scf, slc, slcvec or dlc.
    temporaries : bool
        Whether it leaves casts of the vectoriser, which have no meaning to execute.
    """

    opt_level: int
    module_pass: ModulePass
    level: str
    temporaries: bool = False


def pipeline(
    opt_level: int,
    vector_length: int = 8,
    *,
    hardware: bool = False,
    one_child: bool = False,
    levels: int | None = None,
    recompute: bool = False,
    whole_rows: bool = False,
    stay: tuple[int, ...] = (),
) -> tuple[Step, ...]:
    """
    Return the passes of an opt level: 0 decouples, 1 vectorises, 2 sends rows, 3 aligns the queues.

    Parameters
    ----------
    opt_level : int
        0 to 3.
    vector_length : int
        Lanes of a vector from level 1 on.
    hardware : bool
        Whether the program is for the access unit, where units form a chain and a part of a row
        begins at a multiple of the vector: at levels 0 and 1 loops side by side then become nests
        of their own first, and only loops that begin there become vectors. And where a bundle
        costs the execute side time: at level 3 an index stays where counting it costs more.
    one_child : bool
        Whether to offload at most one loop directly inside a loop.
    levels : int, optional
        Most offloaded loops one in the other.
    recompute : bool
        Whether the execute side computes every index that it is sent, where `hardware` is set; else
        only where that needs no more operands.
    whole_rows : bool
        Whether levels 0 and 1 send rows whole, too, as they must where an element of a row says
        nothing without the row's scale and bias.
    stay : tuple of int
        As for `sink-regular-loops`.

    Raises
    ------
    ValueError
        The level is another, or the vector length isn't one of `slc-vectorizer`.
    """
    if opt_level not in OPT_LEVELS:
        raise ValueError(f"opt_level must be 0, 1, 2 or 3, not {opt_level!r}")
    split = hardware and opt_level < 2
    steps = (
        *([Step(0, SplitSiblings(), "scf")] if split else []),
        Step(0, FlattenViews(one_child or split, levels), "scf"),
        Step(0, ChooseDecoupling(one_child or split, levels), "scf"),
        Step(0, ScfToSlc(), "slc"),
        Step(1, SlcVectorizer(vector_length, hardware), "slcvec", temporaries=True),
        Step(1 - whole_rows, SimplifyCasts(), "slcvec", temporaries=True),
        Step(1, CallbackVectorizer(), "slcvec"),
        Step(1, SimplifyMemOps(), "slcvec"),
        Step(0 if whole_rows else 2, BufferCompoundTypes(), "slcvec"),
        Step(2, SinkRegularLoops(stay), "slcvec"),
        Step(2, KeepInvariantRows(), "slcvec"),
        Step(1, CountLanes(), "slcvec"),
        Step(3, ReplaceToVal(hardware), "slcvec"),
        Step(0, AssignVariables(), "slcvec" if opt_level or whole_rows else "slc"),
        Step(0, SlcToDlc(), "dlc"),
        *([Step(0, RecomputeIndices(recompute), "dlc")] if hardware else []),
    )
    return tuple(step for step in steps if opt_level >= step.opt_level)


def vector_length_of(config: AcceleratorConfig, element_bytes: int = _FLOAT32_BYTES) -> int:
    """Return the lanes of a vector: one beat, as parts of rows begin on multiples of the bus.

    Where a beat holds one element they are two, in two beats.

    Parameters
    ----------
    config : AcceleratorConfig
        Gives the bus.
    element_bytes : int
        Bytes of the narrowest element of a row; parts of wider ones take more beats.
    """
    return max(config.bus_bytes // element_bytes, _FEWEST_LANES)


PASSES: dict[str, type[ModulePass]] = {
    module_pass.name: module_pass
    for module_pass in (
        CheckDae,
        SplitSiblings,
        DivideNests,
        *(type(step.module_pass) for step in pipeline(OPT_LEVELS[-1])),
        RecomputeIndices,
        DlcToAu,
    )
}
"""Every pass by its command-line name."""


@dataclass(frozen=True)
class PipelineResult:
    """
    What lowering gave besides the module.

    Parameters
    ----------
    texts : dict of str to str
        The last text of each IR level on the way: scf (the input), slc, slcvec (from level 1 on),
        dlc.
    decisions : tuple of Decision
        What became of each loop and load of the input: offloaded, or why not.
    remarks : tuple of str
        What passes left as it was, and why.
    """

    texts: dict[str, str]
    decisions: tuple[Decision, ...]
    remarks: tuple[str, ...]


def run_pipeline(
    module: ModuleOp,
    opt_level: int,
    vector_length: int = 8,
    *,
    hardware: bool = False,
    levels: int | None = None,
    recompute: bool = False,
    stay: tuple[int, ...] = (),
    observe: Callable[[str, ModuleOp], None] | None = None,
) -> PipelineResult:
    """
    Lower a module from scf to dlc in place.

    Parameters
    ----------
    module : ModuleOp
        Verified scf.
    opt_level, vector_length : int
        As for `pipeline`.
    hardware : bool
        As for `pipeline`. Where loops side by side can't be split, and where a level above leaves
        two units side by side, all but one of them run on the execute side.
    levels, recompute, stay
        As for `pipeline`.
    observe : callable, optional
        Called with a pass's name and the module after each pass whose result can be executed.

    Returns
    -------
    PipelineResult
        Texts, and what was decided.

    Raises
    ------
    CompileError
        A pass refuses the module, or leaves IR that doesn't verify.
    CheckError
        A pass leaves IR that breaks a soundness rule.
    """
    whole_rows = _has_quantized(module)
    steps = pipeline(
        opt_level,
        vector_length,
        hardware=hardware,
        levels=levels,
        recompute=recompute,
        whole_rows=whole_rows,
        stay=stay,
    )
    if not hardware or opt_level < 2:
        return _run(module, steps, observe)
    copy = module.clone()
    result = _run(module, steps, observe)
    if _is_chain(module):
        return result
    module.body.detach_block(module.body.block)
    module.body.add_block(copy.body.detach_block(copy.body.block))
    steps = pipeline(
        opt_level,
        vector_length,
        hardware=True,
        one_child=True,
        levels=levels,
        recompute=recompute,
        whole_rows=whole_rows,
        stay=stay,
    )
    return _run(module, steps, observe)


def _has_quantized(module: ModuleOp) -> bool:
    """Whether an argument of a function is a memref of quantised rows."""
    return any(
        isinstance(value.type, MemRefType)
        and isinstance(memref_type(value).element_type, QuantizedType)
        for function in functions(module)
        for value in function.body.block.args
    )


def _is_chain(module: ModuleOp) -> bool:
    """Whether no unit of an access program has two units below it."""
    for engine in module.walk():
        if isinstance(engine, ConfigureAccessEngineOp):
            parents = [unit.under for unit in engine.units]
            if len(set(parents)) != len(parents):
                return False
    return True


def _run(
    module: ModuleOp,
    steps: Sequence[Step],
    observe: Callable[[str, ModuleOp], None] | None,
) -> PipelineResult:
    context = make_context()
    texts = {"scf": f"{module!s}\n"}
    decisions: list[Decision] = []
    remarks: list[str] = []
    check_dae(module)
    for step, following in zip(steps, (*steps[1:], None), strict=True):
        module_pass = step.module_pass
        name = module_pass.name
        if isinstance(module_pass, ChooseDecoupling):
            decisions = decoupling_report(
                module, one_child=module_pass.one_child, levels=module_pass.levels
            )
        elif isinstance(module_pass, SlcToDlc):
            remarks = find_remarks(module)
        module_pass.apply(context, module)
        try:
            module.verify()
        except VerifyException as error:
            raise CompileError(f"IR after {name!r} must verify: {error}", node=name) from error
        check_dae(module, allow_temporaries=step.temporaries)
        is_last = following is None or following.level != step.level
        if step.level != "scf" and is_last:
            texts[step.level] = f"{module!s}\n"
        if observe is not None and not step.temporaries:
            observe(name, module)
    return PipelineResult(texts, tuple(decisions), tuple(remarks))
