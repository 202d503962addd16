"""A link: the state as one URL parameter, and back.

Owns: the text form (version, strict JSON, zlib, base64url), its bounds, and the refusal of anything else.
Refuses: Streamlit, and running anything that a link holds: it is data only, validated like an upload.
"""

from __future__ import annotations

import base64
import binascii
import zlib

from pydantic import ValidationError

from planner_core.errors import Fault, InvalidSpec, shorten
from planner_core.strict_json import dumps, load_json
from ui.app_state import VERSION, AppState

PARAMETER = "s"
MAX_LINK_CHARS = 32_000
MAX_JSON_BYTES = 1_000_000
_PREFIX = f"{VERSION}."


def encode(state: AppState) -> str | None:
    """Return the link's parameter, or None where it would be longer than `MAX_LINK_CHARS`."""
    # Keys keep their order, so that the run-spec's text is the same after a reload.
    document = dumps(state.model_dump(mode="json"), indent=None)
    packed = zlib.compress(document.encode("utf-8"), 6)
    text = _PREFIX + base64.urlsafe_b64encode(packed).rstrip(b"=").decode("ascii")
    return text if len(text) <= MAX_LINK_CHARS else None


def decode(text: str) -> AppState:
    """Return the state that a link's parameter holds.

    Raises
    ------
    InvalidSpec
        If it is too long, cut, of another version, not strict JSON, or has a field that is not allowed.
    """
    if len(text) > MAX_LINK_CHARS:
        raise _broken(
            f"{len(text)} characters", f"at most {MAX_LINK_CHARS}", "share the run-spec file instead"
        )
    version, dot, body = text.partition(".")
    if not dot or not version.isdigit() or len(version) > 4:
        raise _broken(shorten(text, limit=40), "a link made by this app", "copy the whole address again")
    if version != str(VERSION):
        raise _broken(
            f"version {version}", f"version {VERSION}", "make the link again with this version of the app"
        )
    document = load_json(_unpacked(body), where="link", max_bytes=MAX_JSON_BYTES)
    try:
        return AppState.model_validate(document)
    except ValidationError as error:
        raise InvalidSpec(
            Fault(
                where="link." + ".".join(str(part) for part in item["loc"])[:120],
                given=shorten(item.get("input")),
                allowed=item["msg"],
                fix="copy the whole address again, or start from the default",
            )
            for item in error.errors(include_url=False)[:20]
        ) from None


def _unpacked(body: str) -> bytes:
    """Return the JSON bytes of a link, never more than `MAX_JSON_BYTES`."""
    try:
        packed = base64.b64decode(body + "=" * (-len(body) % 4), altchars=b"-_", validate=True)
        unpacker = zlib.decompressobj()
        data = unpacker.decompress(packed, MAX_JSON_BYTES + 1)
    except (binascii.Error, ValueError, zlib.error):
        raise _broken(
            "unreadable text", "the address as it was copied", "copy the whole address again"
        ) from None
    if len(data) > MAX_JSON_BYTES:
        raise _broken(
            f"over {MAX_JSON_BYTES} bytes",
            f"at most {MAX_JSON_BYTES} bytes",
            "share the run-spec file instead",
        )
    if not unpacker.eof or unpacker.unused_data:
        raise _broken("a link that was cut", "the address as it was copied", "copy the whole address again")
    return data


def _broken(given: str, allowed: str, fix: str) -> InvalidSpec:
    return InvalidSpec([Fault(where="link", given=given, allowed=allowed, fix=fix)])
