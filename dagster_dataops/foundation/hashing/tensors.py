"""`tensor_content`: the content of a PyTorch tensor.

Pickle stores the address of its memory, so equal tensors would have another digest in every
process. PyTorch is not imported: a tensor exists only where it was.
"""

import sys
from typing import Any


def tensor_content(value: Any) -> list[Any] | None:
    """Return the type, the shape and the elements of a tensor, whatever its device.

    ``None`` for other objects, and for tensors whose elements are not in one block of memory, such
    as compressed and quantized ones.
    """
    torch = sys.modules.get("torch")
    kind = getattr(torch, "Tensor", None)
    if torch is None or kind is None or not isinstance(value, kind):
        return None
    facts = [str(value.dtype), list(value.shape), value.requires_grad, vars(value)]
    if value.is_meta:  # it has no elements
        return facts
    if value.layout is torch.sparse_coo:
        sparse = value.detach().coalesce()
        return [*facts, sparse.indices(), sparse.values()]
    if value.layout is not torch.strided or value.is_quantized:
        return None
    import ctypes  # slow to import

    plain = value.detach().resolve_conj().resolve_neg().cpu().contiguous()
    return [*facts, ctypes.string_at(plain.data_ptr(), plain.nbytes)]
