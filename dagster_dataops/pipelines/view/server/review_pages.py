"""Pages on which people decide about records: the list of reviews, and the questions of one."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qsl

from starlette.concurrency import run_in_threadpool
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from dagster_dataops.datasets.file_values.result_roots import use_roots_above
from dagster_dataops.errors import DataOpsError, InputError, ReviewError
from dagster_dataops.pipelines.view.server.media import file_at, picture_of, sent_part
from dagster_dataops.pipelines.view.server.page_request import View, link
from dagster_dataops.pipelines.view.shown.shown_cells import LONG, cell

if TYPE_CHECKING:
    from starlette.requests import Request

    from dagster_dataops.pipelines.view.viewed_reviews import ViewedReviews

PREFIX: Final = "/review/"  # of the addresses that decisions are sent to
_EDITED: Final = "edited:"  # begins the names of fields of the form with new values
_MOST_BYTES: Final = 16 << 20  # of a form
_LISTED: Final = 100  # decisions that may be changed

Answer = Callable[..., Response]  # of a template, a status, and the values that it names


class ReviewPages:
    """The pages of reviews."""

    def __init__(self, view: View, answer: Answer) -> None:
        assert view.reviews is not None  # noqa: S101 - checked by the caller
        self._view, self._answer = view, answer
        self._reviews: ViewedReviews = view.reviews

    def routes(self) -> list[Route]:
        """Return the addresses of the pages."""
        return [
            Route("/reviews", self._list),
            Route("/review-file/{key:path}", self._file),
            Route(f"{PREFIX}{{key:path}}", self._question, methods=["GET"]),
            Route(f"{PREFIX}{{key:path}}", self._decided, methods=["POST"]),
        ]

    def _list(self, request: "Request") -> Response:
        reviewer = request.query_params.get("reviewer", "")
        rows = [self._row(*entry, reviewer) for entry in self._reviews.paths.items()]
        return self._answer("reviews", rows=rows, reviewer=reviewer)

    def _row(self, key: str, path: Path, reviewer: str) -> dict[str, Any]:
        row: dict[str, Any] = {"key": key, "waiting": 0, "open": 0, "error": ""}
        try:
            review = self._reviews.review(path, reviewer)
            return row | {"waiting": len(review.waiting), "open": len(review.open)}
        except (DataOpsError, OSError) as error:
            return row | {"error": str(error)}

    def _question(self, request: "Request") -> Response:
        query = request.query_params
        try:
            with self._view.works.pages.making():
                review = self._reviews.at(request.path_params["key"], query.get("reviewer", ""))
                return self._shown(request, review, query.get("id", ""))
        except (DataOpsError, OSError) as error:
            return self._refusal(409, str(error))

    def _refusal(self, status: int, message: str) -> Response:
        return self._answer("refusal", status, message=message, found=status != 404)

    def _shown(
        self,
        request: "Request",
        review: Any,
        id_: str,
        sent: dict[str, str] | None = None,
        reason: str = "",
    ) -> Response:
        """Answer with a question or the next open one; of a form ``sent`` that was refused, why."""
        key = request.path_params["key"]
        if review is None:
            return self._refusal(404, f"There is no review {key!r}.")
        after = request.query_params.get("after", "")
        question = review.question(id_ or _next(review, after))
        if id_ and question is None:
            return self._refusal(404, f"No question has the id {id_!r}.")
        shown, decided = (dict(question.shown), question.decision) if question else ({}, None)
        context = {
            "key": key,
            "review": review,
            "question": question,
            "cells": [(name, cell(shown, name, 0, length=LONG)) for name in shown],
            "texts": {**question.edit, **_edited(sent or {})} if question else {},
            "comment": (sent or {}).get("comment", decided.comment if decided else ""),
            "reason": reason,
            "saved": review.question(request.query_params.get("saved", "")),
            "skip": link("review", key, reviewer=review.reviewer, after=question.id)
            if question
            else "",
            "listed": review.saved[-_LISTED:],
        }
        return self._answer("review", 422 if reason else 200, **context)

    async def _decided(self, request: "Request") -> Response:
        body = b""
        async for part in request.stream():
            body += part
            if len(body) > _MOST_BYTES:
                return self._refusal(413, f"The form has more than {_MOST_BYTES >> 20} MB.")
        sent = dict(parse_qsl(body.decode(errors="replace"), keep_blank_values=True))
        return await run_in_threadpool(self._save, request, sent)

    def _save(self, request: "Request", sent: dict[str, str]) -> Response:
        """Save the decision of a form; answer with the next question."""
        key, id_ = request.path_params["key"], sent.get("id", "")
        try:
            review = self._reviews.at(key, sent.get("reviewer", ""))
            if review is None:
                return self._refusal(404, f"There is no review {key!r}.")
            try:
                comment = sent.get("comment", "")
                review.save(id_, sent.get("decision", ""), _edited(sent), comment)
            except ReviewError as error:
                return self._shown(request, review, id_, sent, error.reason)
        except (DataOpsError, OSError) as error:
            return self._refusal(409, str(error))
        place = link("review", key, reviewer=review.reviewer, after=id_, saved=id_)
        return RedirectResponse(place, 303)

    def _file(self, request: "Request") -> Response:
        """Answer with a file that a question shows, or with a small picture of it."""
        query = request.query_params
        try:
            reference = self._named(request)
            if "thumbnail" in query:
                return picture_of(reference)
            return sent_part(reference, request.headers.get("range", ""), query.get("id", ""))
        except (DataOpsError, OSError) as error:
            return Response(f"{error}\n", 404, media_type="text/plain; charset=utf-8")

    def _named(self, request: "Request") -> Any:
        query, key = request.query_params, request.path_params["key"]
        review = self._reviews.at(key, "")
        question = review.question(query.get("id", "")) if review else None
        if question is None:
            raise InputError(key, "there is no such question")
        use_roots_above(self._view.root.top.path / "nodes")
        use_roots_above(review.folder.path)
        value = question.shown.get(query.get("column", ""))
        return file_at(value, query.get("at"), f"question {question.id}")


def _next(review: Any, after: str) -> str:
    """Return the open question that follows another one; empty if none is open."""
    questions: list[str] = review.open
    if after not in review.waiting:
        return next(iter(questions), "")
    place = {id_: number for number, id_ in enumerate(review.waiting)}
    later = (id_ for id_ in questions if place[id_] > place[after])
    return next(later, next(iter(questions), ""))


def _edited(sent: dict[str, str]) -> dict[str, str]:
    return {
        name.removeprefix(_EDITED): text for name, text in sent.items() if name.startswith(_EDITED)
    }
