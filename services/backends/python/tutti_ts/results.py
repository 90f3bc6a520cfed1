"""The values that `forward` returns, as a list of results."""
from __future__ import annotations

_GENERIC = (
    "output must be of type Tensor, List[str] or Tuple containing one of these two types. It should not be a List / "
    "Dictionary of Tensors or a Scalar"
)
_REFUSED = ("DictType", "ListType", "TupleType", "ClassType", "NoneType", "IntType", "FloatType", "BoolType", "StringType")


def refusal_of(declared) -> str | None:
    """Why no value of the type that `forward` declares can be an answer, in the words of `flatten`; None if one may be."""
    if declared.kind() == "TupleType":
        for index, element in enumerate(declared.elements()):
            if _is_refused(element):
                return (
                    f"output at index {index} must be of type Tensor or List[str], the model declares "
                    f"{element.annotation_str}"
                )
        return None
    return f"{_GENERIC}, the model declares {declared.annotation_str}" if _is_refused(declared) else None


def _is_refused(declared) -> bool:
    """Tells whether a declared type is refused. One that is not known before it is returned, such as Any and Optional, is not."""
    if declared.kind() == "ListType":
        return declared.getElementType().kind() != "StringType"
    return declared.kind() in _REFUSED


def flatten(returned, torch) -> list:
    """The results by index: a tensor or a list of str is the only one, a tuple has one each. Raises ValueError with Triton's texts."""
    if isinstance(returned, torch.Tensor):
        return [returned]
    if isinstance(returned, tuple):
        for index, element in enumerate(returned):
            if not _is_result(element, torch):
                raise ValueError(
                    f"output at index {index} must be of type Tensor or List[str], received {_describe(element)}"
                )
        return list(returned)
    if isinstance(returned, list):
        if not _is_result(returned, torch):
            raise ValueError(f"output must be of type Tensor or List[str], received {_describe(returned)}")
        return [returned]
    raise ValueError(_GENERIC)


def _is_result(value, torch) -> bool:
    if isinstance(value, list):
        return all(isinstance(element, str) for element in value)
    return isinstance(value, torch.Tensor)


def _describe(value) -> str:
    if isinstance(value, list):
        return f"List[{type(value[0]).__name__}]"
    return type(value).__name__
