"""`simplify` and `slim`: what programs call today, with the signatures that they know.

Both time nothing: they look for few operators that take no more arithmetic, the result is checked
against the model like any other, and what comes out depends on the model alone. To have the result
timed as well, call `optimize`.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import inputs
from .command import RegraftWarning, Sizes
from .errors import Failed, Unmet
from .library import rules
from .model import Folder, Model, parsed, save
from .optimization import optimize

if TYPE_CHECKING:
    import onnx

BATCH_NORMS = ("conv-batch-norm", "conv-transpose-batch-norm", "conv-of-batch-norm", "conv-add-batch-norm")
"""Rules that merge batch normalizations with convolutions."""


def simplify(
    model: Model,
    check_n: int = 0,
    perform_optimization: bool = True,
    skip_fuse_bn: bool = False,
    overwrite_input_shapes: Mapping[str, Sequence[int]] | None = None,
    test_input_shapes: Mapping[str, Sequence[int]] | None = None,
    skipped_optimizers: Iterable[str] | None = None,
    skip_constant_folding: bool = False,
    skip_shape_inference: bool = False,
    input_data: Mapping[str, Any] | None = None,
    dynamic_input_shape: bool = False,
    custom_lib: str | None = None,
    include_subgraph: bool = False,
    unused_output: Sequence[str] | None = None,
    tensor_size_threshold: int | str | None = None,
    mutable_initializer: bool = False,
    *,
    input_shapes: Mapping[str, Sequence[int]] | None = None,
) -> tuple[onnx.ModelProto, bool]:
    """A simpler model and whether it is known to compute the same: a drop-in for
    `onnxsim.simplify`.

    A model that the runtime does not run, or that holds nothing to simplify, comes back as it is,
    with a warning. Constants never grow by more than 5 %, or 4 MiB.

    Args: model: The path of a model, its bytes, or an `onnx.ModelProto`. check_n: Without effect:
    every result is checked. perform_optimization: False only cleans up: rewrites are left out.
    skip_fuse_bn: Keep batch normalizations apart from convolutions. overwrite_input_shapes: Sizes
    to write the model for, and no others. test_input_shapes: Sizes of inputs to check at.
    skipped_optimizers: Rules that are not used; names that are no rules are without effect.
    skip_constant_folding: Without effect, like the other arguments that are not listed: constants
    are folded as far as that does not make the file larger. input_data: Real inputs to check with.
    unused_output: Outputs to drop. input_shapes: The older name of `overwrite_input_shapes`.

    Raises:
        Failed: if it is no model.
    """
    del check_n, skip_constant_folding, skip_shape_inference, dynamic_input_shape, custom_lib, include_subgraph
    del tensor_size_threshold, mutable_initializer
    if unused_output:
        model = without(parsed(model), set(unused_output))
    sizes = overwrite_input_shapes or input_shapes
    deny = list(BATCH_NORMS) if skip_fuse_bn else []
    return tidied(
        model,
        freeze=sizes,
        shapes=test_input_shapes,
        data=input_data,
        rewrites=perform_optimization,
        deny=deny + list(skipped_optimizers or ()),
    )


def slim(
    model: Model,
    output_model: str | os.PathLike[str] | None = None,
    *,
    model_check: bool = False,
    input_shapes: Sequence[str] | None = None,
    inputs: Sequence[str] | None = None,
    outputs: Sequence[str] | None = None,
    no_shape_infer: bool = False,
    skip_optimizations: Sequence[str] | None = None,
    dtype: str | None = None,
    skip_fusion_patterns: Sequence[str] | None = None,
    size_threshold: int | None = None,
    inspect: bool = False,
    dump_to_disk: bool = False,
    save_as_external_data: bool = False,
    model_check_inputs: Sequence[str] | None = None,
    verbose: bool = False,
    **others: Any,
) -> onnx.ModelProto | None:
    """A simpler model with the same outputs: a drop-in for `onnxslim.slim`.

    Args: model: The path of a model, its bytes, or an `onnx.ModelProto`. output_model: Where to
    write it; by default it is returned. model_check: Without effect, like the other arguments that
    are not listed: every result is checked. input_shapes: Sizes to write the model for:
    `["x:1,3,224,224"]`. outputs: The outputs to keep. skip_optimizations: Rules that are not used.
    skip_fusion_patterns: The same. save_as_external_data: Write weights to a file of their own.
    model_check_inputs: Real inputs, or sizes, to check with: `["x:x.npy"]` or `["x:1,3,224,224"]`.

    Raises:
        Failed: if it is no model, or if another type or other inputs are asked for.
    """
    del model_check, no_shape_infer, size_threshold, dump_to_disk, verbose, others
    if dtype is not None or inputs is not None or inspect:
        raise Failed("slim only simplifies", hint="leave dtype, inputs and inspect out; `regraft.explain` tells of models")
    if outputs is not None:
        proto = parsed(model)
        names = {output.name for output in proto.graph.output}
        if not names.issuperset(outputs):
            raise Failed(f"the model has no outputs {sorted(set(outputs) - names)}", hint=f"its outputs are {', '.join(sorted(names))}")
        model = without(proto, names - set(outputs))
    given = named(model_check_inputs)
    is_file = {name: Path(value).suffix in (".npy", ".pb") for name, value in given.items()}
    simpler, _ = tidied(
        model,
        freeze=named(input_shapes),
        shapes={name: value for name, value in given.items() if not is_file[name]},
        data={name: value for name, value in given.items() if is_file[name]} or None,
        rewrites=True,
        deny=[*(skip_optimizations or ()), *(skip_fusion_patterns or ())],
    )
    if output_model is None:
        return simpler
    path = Path(output_model)
    try:
        if save_as_external_data:
            import onnx

            onnx.save(simpler, path, save_as_external_data=True, location=path.name + ".data")
        else:
            save(simpler, path)
    except OSError as error:
        raise Failed(f"cannot write it: {error}", place=str(path), hint="check the path") from None
    return None


def tidied(
    model: Model,
    *,
    freeze: Mapping[str, Sizes] | None,
    shapes: Mapping[str, Sizes] | None,
    data: inputs.Data,
    rewrites: bool,
    deny: Sequence[str],
) -> tuple[onnx.ModelProto, bool]:
    """A simpler model, and whether it was checked."""
    kept = parsed(model)
    if not kept.graph.node and not kept.graph.output:
        raise Failed("there is no graph in it", place=None, hint="give a model that an exporter wrote")
    folder = Folder()
    try:
        result = optimize(
            model,
            folder.path / "simpler.onnx",
            freeze=freeze,
            shapes=shapes,
            data=data,
            deny=known(deny) if rewrites else sorted({rule["numeric"] for rule in rules()}),
            untimed=True,
            certificate=False,
        )
    except Unmet as unmet:
        # As the runtime refuses the model that was given.
        warnings.warn(f"the model is returned as it is: {unmet.cause}", RegraftWarning, stacklevel=3)
        return kept, True
    except Failed as failure:
        # Made with something else than the model: that is the caller's mistake.
        if freeze or shapes or data:
            raise
        warnings.warn(f"the model is returned as it is: {failure}", RegraftWarning, stacklevel=3)
        return kept, True
    return result.model, True


def named(pairs: Sequence[str] | None) -> dict[str, str]:
    """Values by the names before them: `["x:1,3,224,224"]`.

    Raises:
        Failed: if one has no name.
    """
    split = [one.rsplit(":", 1) for one in pairs or ()]
    for parts in split:
        if len(parts) != 2:
            raise Failed(f"`{parts[0]}` names no input", hint="write x:1,3,224,224")
    return {name: value for name, value in split}


def known(names: Sequence[str]) -> list[str]:
    """Those of some names that are rules."""
    if not names:
        return []
    shipped = {rule["name"] for rule in rules()}
    return [name for name in names if name in shipped]


def without(model: onnx.ModelProto, dropped: set[str]) -> onnx.ModelProto:
    """The model without some of its outputs.

    Raises:
        Failed: if it has no such output, or no other.
    """
    names = [output.name for output in model.graph.output]
    unknown = dropped.difference(names)
    if unknown or len(dropped) >= len(names):
        raise Failed(f"the model cannot do without {sorted(unknown or dropped)}", hint=f"its outputs are {', '.join(names)}")
    other = type(model)()
    other.CopyFrom(model)
    del other.graph.output[:]
    other.graph.output.extend(output for output in model.graph.output if output.name not in dropped)
    return other
