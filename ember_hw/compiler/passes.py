"""Every pass by its command-line name."""

from __future__ import annotations

from xdsl.passes import ModulePass

from ember_hw.compiler.transforms.buffer_compound_types import BufferCompoundTypes
from ember_hw.compiler.transforms.callback_vectorizer import CallbackVectorizer
from ember_hw.compiler.transforms.check_dae import CheckDae
from ember_hw.compiler.transforms.choose_decoupling import ChooseDecoupling
from ember_hw.compiler.transforms.replace_to_val import ReplaceToVal
from ember_hw.compiler.transforms.scf_to_slc import ScfToSlc
from ember_hw.compiler.transforms.simplify_casts import SimplifyCasts
from ember_hw.compiler.transforms.simplify_mem_ops import SimplifyMemOps
from ember_hw.compiler.transforms.slc_to_dlc import SlcToDlc
from ember_hw.compiler.transforms.slc_vectorizer import SlcVectorizer

PASSES: dict[str, type[ModulePass]] = {
    pass_type.name: pass_type
    for pass_type in (
        CheckDae,
        ChooseDecoupling,
        ScfToSlc,
        SlcVectorizer,
        SimplifyCasts,
        CallbackVectorizer,
        SimplifyMemOps,
        BufferCompoundTypes,
        ReplaceToVal,
        SlcToDlc,
    )
}
"""The registry that `ember-opt` and the pipeline read."""
