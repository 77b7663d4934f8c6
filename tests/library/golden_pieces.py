"""Compare pieces of texts and numbers of tokens with those that other tools made."""

from typing import Any

from dagster_dataops import data


def difference(case: dict[str, Any]) -> str:
    group, name = case["operator"].split(".")
    operator = getattr(getattr(data, group), name)(**case["options"])
    returned = operator.forward({"text": case["input"]["text"]})
    if group == "tokens":
        found: dict[str, Any] = {"tokens": returned["tokens"]}
    else:
        found = {"texts": [record["text"] for record in returned]}
    return "" if found == case["expected"] else f"{found}, expected {case['expected']}"
