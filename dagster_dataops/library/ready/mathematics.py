"""`verified_mathematics`: solve mathematical problems with a model, and verify the answers."""

from collections.abc import Sequence
from typing import Any, Final, Literal, TypeAlias

from dagster_dataops import data
from dagster_dataops.library.ready.shared_steps import MODEL, as_conversation, asked
from dagster_dataops.models.model_operator import DEFAULT_CLIENT
from dagster_dataops.pipelines.pipeline import Pipeline
from dagster_dataops.records import Record

Style: TypeAlias = Literal["hash", "boxed", "plain"]


def verified_mathematics(
    name: str = "mathematics",
    *,
    input_key: str = "question",
    answer_key: str = "answer",
    style: Style = "hash",
    samples: int = 4,
    min_agreement: float = 0.5,
    tolerance: float = 0.01,
    symbolic: bool = False,
    keep_keys: Sequence[str] = ("reference",),
    model: str = MODEL,
    client: Any = DEFAULT_CLIENT,
) -> Pipeline:
    r"""Return a pipeline from problems with answers to conversations with verified solutions.

    Dropped are problems that have no answer, that occur twice, or whose solution in the data set
    has a wrong calculation (``<<48/2=25>>``). A model solves the others several times; the answer
    that most solutions have must be that of the data set. Of its solutions the first one is kept.

    Args:
        name: Name of the pipeline.
        input_key: Column of the problem.
        answer_key: Column of the answer, or of a solution that ends with it.
        style: How the answer is marked: ``hash`` after ``####`` as in GSM8K, ``boxed`` in
            ``\boxed{}``, or ``plain`` if the column has the answer alone.
        samples: Number of solutions of a problem.
        min_agreement: Least share of the solutions that have the most frequent answer, 0 to 1.
        tolerance: Largest relative error of a calculation in a solution, as results are rounded.
        symbolic: Whether answers are also compared as expressions; needs the extra ``math``.
        keep_keys: Columns that the result has beside ``messages``.
        model: Name of the model.
        client: Client of the model.

    Returns:
        A pipeline whose result has ``messages``. It needs the extra ``llm``.
    """
    read = {"input_key": answer_key, "output_key": "reference"}
    with Pipeline(name) as ppl:
        ppl.unique = data.dedup.Exact(input_key=input_key)
        if style == "plain":
            ppl.reference = data.shape.Rename({answer_key: "reference"}, keep_original=True)
        else:
            ppl.reference = data.verify.BoxedAnswer(**read, style=style)
            ppl.sums = data.verify.Calculations(answer_key, tolerance=tolerance, mode="drop")
        ppl.known = data.filters.Field("reference", "not in", [None, ""])
        ppl.solved = data.llm.SelfConsistency(
            input_key,
            "voted",
            samples=samples,
            min_ratio=min_agreement,
            **asked(model, client),
        )
        ppl.right = data.verify.MathEqual("voted", symbolic=symbolic, mode="drop")
        ppl.solution = data.verify.Calculations("reasoning", tolerance=tolerance, mode="drop")
        for step, operator in as_conversation(input_key, "reasoning").items():
            ppl.add(step, operator)
        ppl.training = data.shape.Select(["messages", *keep_keys])
    return ppl


EXAMPLE: Final[tuple[Record, ...]] = (
    {
        "question": "Anna has 48 eggs and sells half of them. How many are left?",
        "answer": "She sells 48/2=<<48/2=24>>24 eggs, and 48-24=<<48-24=24>>24 are left.\n#### 24",
    },
    {"question": "What is 3 times 4?", "answer": "3*4=<<3*4=12>>12\n#### 12"},
)
