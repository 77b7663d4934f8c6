"""Add the tag ``generation`` to published chat templates, which lack it.

A template is recognized by the digest of its text. The edits put the tag around what the assistant
writes; the rendered texts stay the same.
"""

from hashlib import sha256
from typing import Final

_Edit = tuple[int, int, str]  # start and end of a part of the template, and what replaces it

# The role before a turn, which the template would write with the turn; and the tag behind it.
_HEAD: Final = "{- '<|im_start|>' + message.role + '\\n' }}{%- generation %}{"
_EDITS: Final[dict[str, tuple[_Edit, ...]]] = {
    # qwen3
    "a55ee1b1660128b7098723e0abcd92caa0788061051c62d51cbe87d9cf1974d8": (
        (2222, 2222, _HEAD),
        (2360, 2394, ""),
        (2525, 2564, ""),
        (2635, 2674, ""),
        (3534, 3534, "{%- endgeneration %}"),
    ),
    # qwen3_5_think
    "a4aee8afcf2e0711942cf848899be66016f8d14a889ff9ede07bca099c28f715": (
        (5260, 5260, _HEAD),
        (5320, 5354, ""),
        (5452, 5491, ""),
        (6959, 6959, "{%- endgeneration %}"),
    ),
    # qwen3_5_nothink
    "273d8e0e683b885071fb17e08d71e5f2a5ddfb5309756181681de4f5a1822d80": (
        (5260, 5260, _HEAD),
        (5320, 5354, ""),
        (5452, 5491, ""),
        (6959, 6959, "{%- endgeneration %}"),
    ),
    # glm4moe
    "44f815868bf02fa458dd2f741a338046f4bf45f398eb6d067766726b9d96cce3": (
        (1959, 1959, "generation -%}{%- "),
        (2579, 2579, "{%- endgeneration -%}"),
    ),
    # nemotron_3_nano
    "43a92aacc2e169bb37055e4d8b0df31edfdc8657d8c387fcf98254cb246e626a": (
        (6412, 6412, "{%- generation %}"),
        (8614, 8614, "{%- endgeneration %}    "),
        (8822, 8823, "}}{%- generation %}{{-"),
        (8888, 8888, "}{%- endgeneration %"),
        (9284, 9285, "}}{%- generation %}{{-"),
        (9306, 9306, "}{%- endgeneration %"),
        (9384, 9384, "' }}{%- generation %}{{- '"),
        (9399, 9399, "}{%- endgeneration %"),
    ),
}


def with_tags(template: str) -> str | None:
    """Return a published template with tags ``generation``; ``None`` for another template.

    Args:
        template: The text of the template. The kind of its line ends and line ends behind it do not
            matter.
    """
    text = template.replace("\r\n", "\n").rstrip("\n")
    edits = _EDITS.get(sha256(text.encode()).hexdigest())
    if edits is None:
        return None
    for start, end, added in reversed(edits):
        text = text[:start] + added + text[end:]
    return text
