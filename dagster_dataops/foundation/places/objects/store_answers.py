"""Texts of errors: the answer of a store to a request that failed, and the remedy.

The client of the store tells both as a text. Its errors are compared by their names, so that this
module does not import it.
"""

import re
from typing import Final

from dagster_dataops.errors import StorageError, StoreRefusedError

_NOT_ALLOWED: Final = "403 Forbidden"
NO_BUCKET: Final = ("NoSuchBucket", "ContainerNotFound", "bucket does not exist")
_REMEDIES: Final = (
    ("there is no such bucket; create it first, or correct the URL", NO_BUCKET),
    (
        "the credentials have expired; renew them",
        ("ExpiredToken", "TokenRefreshRequired", "RequestExpired"),
    ),
    ("correct the clock of this machine", ("RequestTimeTooSkewed",)),
    (
        "the credentials are wrong; correct them",
        (
            "InvalidAccessKeyId",
            "SignatureDoesNotMatch",
            "<Code>InvalidToken<",
            "AuthenticationFailed",
            "status code: 401",
        ),
    ),
)
"""What to do, and the texts in messages of S3, GCS and Azure that call for it."""
_RIGHTS: Final = {
    "write": "the credentials need the right to write objects there (`s3:PutObject` on S3)",
    "upload": "the credentials need the right to write objects there (`s3:PutObject` on S3)",
    "read": "the credentials need the right to read it (`s3:GetObject` on S3); without the right "
    "to list (`s3:ListBucket`) a missing object is refused, too",
    "list": "the credentials need the right to list objects there (`s3:ListBucket` on S3)",
    "delete": "the credentials need the right to delete objects there (`s3:DeleteObject` on S3)",
}
"""The missing right, by the first word of the action of a `StorageError`."""
_NO_ANSWER: Final = "nothing answers there; check the address (`endpoint`) and the server"
_NO_PARTS: Final = "files of 32 MB and more need a store that takes uploads in parts (multipart)"
_FACTS: Final = (r"<Code>([^<]{1,100})<", r"<Message>([^<]{1,300})")
_OTHER_REGION: Final = (
    "incorrectly configured region",
    "AuthorizationHeaderMalformed",
    "IllegalLocationConstraintException",
    "<Code>PermanentRedirect</Code>",
)  # in messages of S3
_REDIRECTED: Final = ("status code: 301", "status code: 307", "status code: 308")
_NOT_SUPPORTED: Final = ("status code: 501", "status code: 405", "<Code>NotImplemented</Code>")
_NEEDED: Final = (
    "results need a store that writes on conditions (If-None-Match, If-Match), takes uploads in "
    "parts (multipart), and reads, lists and deletes objects"
)
_FORBIDDEN: Final = ("PermissionDeniedError", "UnauthenticatedError")  # errors of the client


def refused(place: str, error: StorageError) -> StoreRefusedError:
    """Return the error of a check that ended with an error."""
    cause = error.__cause__
    action, reason = f"{error.action} objects below it", error.reason
    status = _status(cause)
    in_parts = error.action == "upload"
    if isinstance(cause, FileNotFoundError) and not in_parts:
        reason = "there is no such bucket; create it first"
    elif isinstance(cause, NotImplementedError) and not in_parts:
        action = "hold results"
        reason = "it lacks conditional writes, so two runs could overwrite one another"
    elif any(sign in str(cause) for sign in _NOT_SUPPORTED):
        reason = f"it does not support the request ({status}); {_NEEDED}"
    elif _remedy(str(cause)):
        pass
    elif type(cause).__name__ in _FORBIDDEN or status == _NOT_ALLOWED:
        reason += "; results need the rights to read, write, list and delete objects there"
    elif error.action == "write" and not status.startswith("4"):
        action = "write to the store"
    else:
        reason += f"; {_NEEDED}"
    if error.action == "delete":
        reason += f"; the check has left {error.path} there"
    return StoreRefusedError(place, action, reason)


def _status(error: BaseException | None) -> str:
    """Return the HTTP status in the message of an error; empty if the store did not answer."""
    message = str(error)
    status = re.search(r"status code: (\d+[ \w]*)", message)
    if status:
        return status[1].strip()
    return "NotImplemented" if "NotImplemented" in message else ""


def _remedy(message: str) -> str:
    """Return what to do about an answer with a known code; empty for other answers."""
    return next((text for text, signs in _REMEDIES if any(sign in message for sign in signs)), "")


def reason_of(error: BaseException, action: str = "") -> str:
    """Return what the store has answered and what to do, without the details of the client.

    Args:
        error: An error of the client.
        action: The request, as in the message of a `StorageError`.
    """
    message = str(error)
    if any(sign in message for sign in _OTHER_REGION):
        region = re.search(r"<Region>([a-z0-9-]+)</Region>", message)
        where = f"the region {region[1]}" if region else "another region than the one that is set"
        return f"the bucket is in {where}; set `region` in storage_options, or AWS_REGION"
    if any(sign in message for sign in _REDIRECTED):
        return (
            f"it sends requests elsewhere ({_status(error)}); set its present address (`endpoint`, "
            "with http or https as the store needs) or, if the bucket is in another region, set "
            "`region` in storage_options"
        )
    status = _status(error)
    if not status:
        text = message.strip().splitlines()
        reason = f"{type(error).__name__}: {text[0][:300] if text else 'no message'}"
        return f"{reason}; {_NO_ANSWER}" if "error sending request" in message else reason
    facts = [status, *(m[1] for m in (re.search(find, message) for find in _FACTS) if m)]
    reason = f"the store answered {', '.join(facts)}"
    if retries := re.search(r", after (\d+) retries", message):
        reason += f", after {retries[1]} retries"
    remedy, kind = _remedy(message), action.split(" ", maxsplit=1)[0]
    if not remedy and status == _NOT_ALLOWED:
        remedy = _RIGHTS.get(kind, "")
    elif kind == "upload" and any(sign in message for sign in _NOT_SUPPORTED):
        remedy = _NO_PARTS
    elif not remedy and status == "400 Bad Request" and len(facts) == 1:  # no text, as for HEAD
        remedy = "if the bucket is in another region, set `region` in storage_options"
    return f"{reason}; {remedy}" if remedy else reason
