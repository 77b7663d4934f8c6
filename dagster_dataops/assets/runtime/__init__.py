"""Parts that run inside a step: resource, progress, events, and facts about the step's run.

Modules here may use the step's context; they define no assets and read no inputs.
"""
