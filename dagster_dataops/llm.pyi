# The public names, and their modules; `llm.py` imports each on first use.

from dagster_dataops.assets.runtime.llm_resource import LLMResource as LLMResource
from dagster_dataops.models.calls.client import ModelClient as ModelClient
from dagster_dataops.models.dry_run import Estimate as Estimate
from dagster_dataops.models.dry_run import dry_run as dry_run
from dagster_dataops.models.json_hooks import LLMDataJson as LLMDataJson
from dagster_dataops.models.llm_operator import LLMOperator as LLMOperator
from dagster_dataops.models.replies.kept_replies import load_replies as load_replies
from dagster_dataops.models.replies.prices import Price as Price
from dagster_dataops.models.replies.reply import Reply as Reply
from dagster_dataops.models.replies.reply_store import StoredReply as StoredReply
