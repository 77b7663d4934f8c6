"""``text.FixUnicode``: repair texts that were decoded wrongly."""

import re
from typing import Any, ClassVar, Final, Literal

from dagster_dataops.foundation.override import override
from dagster_dataops.library.analysis.unicode_normalization import Form, normalized
from dagster_dataops.library.option_values import needs_extra
from dagster_dataops.library.text.text_cleaning import text
from dagster_dataops.library.text_mapping import TextOperator

# What ftfy could change in an ASCII text: control characters, carriage returns and entities.
_CHANGED_ASCII: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]|&#?[0-9A-Za-z]{1,24};")
# ftfy decodes one level of an ampersand in each of its passes over the text.
_NESTED_AMPERSAND: Final = re.compile(r"&(?:(?:amp|AMP|#0{0,8}38|#[xX]0{0,8}26);){4,}+")
# FineWeb leaves these to the authors of the texts.
_FINEWEB: Final = dict.fromkeys(
    ("fix_latin_ligatures", "fix_character_width", "uncurl_quotes", "fix_line_breaks"), False
)
_PROFILES: Final[dict[str, dict[str, Any]]] = {
    "fineweb": {**_FINEWEB, "normalization": None},
    "ftfy": {"normalization": "NFC"},
    "datajuicer": {"normalization": "NFC"},
}
Switch = bool | None
Profile = Literal["fineweb", "ftfy", "datajuicer"]


class FixUnicode(TextOperator, text):
    """Repair texts that were decoded with a wrong encoding, with ftfy.

    ``fineweb`` repairs encodings, HTML entities, surrogates, terminal escapes and control
    characters, and leaves ligatures, full-width characters, curly quotes and line breaks as they
    are. ``ftfy`` and ``datajuicer`` are the defaults of ftfy: they change these too, and normalize
    to NFC. Reads ``input_key`` (one key or several) and writes ``output_key`` (by default, the same
    keys). ASCII texts without control characters and ``&`` are returned at once. Needs the extra
    ``text``. As ``FTFYFormatter`` of datatrove, with the profile ``fineweb``.

    Args:
        preset: The values of the switches below that are not given.
        normalization: A form such as ``"NFC"``; by default, that of the profile.
        unescape_html: Decode HTML entities; ``"auto"`` leaves texts with ``<`` alone.
        remove_terminal_escapes: Remove escape sequences of terminals.
        fix_encoding: Find and undo wrong decodings.
        restore_byte_a0: Read a space as the byte A0 where that makes a letter.
        replace_lossy_sequences: Repair sequences in which a byte was lost.
        decode_inconsistent_utf8: Repair parts of a text.
        fix_c1_controls: Read C1 control characters as Windows-1252.
        fix_latin_ligatures: Write ligatures as letters.
        fix_character_width: Write full-width letters in normal width.
        uncurl_quotes: Write curly quotes as straight ones.
        fix_line_breaks: Write all line ends as a newline.
        fix_surrogates: Join pairs of surrogates, and replace lone ones.
        remove_control_chars: Remove control characters.
    """

    renamed_options: ClassVar = {"profile": "preset"}

    def __init__(
        self,
        *args: Any,
        preset: Profile = "fineweb",
        normalization: Form | None = None,
        unescape_html: bool | Literal["auto"] | None = None,
        remove_terminal_escapes: Switch = None,
        fix_encoding: Switch = None,
        restore_byte_a0: Switch = None,
        replace_lossy_sequences: Switch = None,
        decode_inconsistent_utf8: Switch = None,
        fix_c1_controls: Switch = None,
        fix_latin_ligatures: Switch = None,
        fix_character_width: Switch = None,
        uncurl_quotes: Switch = None,
        fix_line_breaks: Switch = None,
        fix_surrogates: Switch = None,
        remove_control_chars: Switch = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        options = {
            "normalization": normalization,
            "unescape_html": unescape_html,
            "remove_terminal_escapes": remove_terminal_escapes,
            "fix_encoding": fix_encoding,
            "restore_byte_a0": restore_byte_a0,
            "replace_lossy_sequences": replace_lossy_sequences,
            "decode_inconsistent_utf8": decode_inconsistent_utf8,
            "fix_c1_controls": fix_c1_controls,
            "fix_latin_ligatures": fix_latin_ligatures,
            "fix_character_width": fix_character_width,
            "uncurl_quotes": uncurl_quotes,
            "fix_line_breaks": fix_line_breaks,
            "fix_surrogates": fix_surrogates,
            "remove_control_chars": remove_control_chars,
        }
        switches = _PROFILES[preset] | {
            name: value for name, value in options.items() if value is not None
        }
        self._form: Form | None = switches.pop("normalization")
        self._unescapes = switches.get("unescape_html") is not False
        self._widths = switches.get("fix_character_width") is not False  # may make an ampersand
        # ftfy explains each change unless it is told not to, which takes time.
        self._fix_text, self._config = _ftfy({**switches, "normalization": None, "explain": False})

    @override
    def changed(self, value: str) -> str:
        if value.isascii() and _CHANGED_ASCII.search(value) is None:
            return value
        if self._unescapes and "&" in value:
            value = _NESTED_AMPERSAND.sub("&amp;", value)
        fixed = self._fixed_lines(value)
        if not self._form:
            return fixed
        once = normalized(self._form, fixed)  # ftfy's own normalization takes quadratic time
        return once if once == fixed else normalized(self._form, self._fixed_lines(once))

    def _fixed_lines(self, value: str) -> str:
        """Return a text as ftfy fixes it, which is line by line; most lines are left alone.

        In ftfy, a line with ``<`` can keep the entities of later lines from being decoded.
        """
        fix, config = self._fix_text, self._config
        if "<" in value and ("&" in value or self._widths):
            return str(fix(value, config))
        lines = value.split("\n")
        last = len(lines) - 1
        for number, line in enumerate(lines):
            if not line.isascii() or _CHANGED_ASCII.search(line) is not None:
                lines[number] = fix(line if number == last else line + "\n", config)
            elif number < last:
                lines[number] = line + "\n"
        return "".join(lines)


def _ftfy(switches: dict[str, Any]) -> tuple[Any, Any]:
    with needs_extra("text.FixUnicode", "text"):
        import ftfy
    return ftfy.fix_text, ftfy.TextFixerConfig(**switches)
