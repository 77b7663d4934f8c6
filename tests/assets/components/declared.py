"""A defs.yaml of one operator, and the keywords of build_definitions that it gives."""

NODE = """
source: texts.jsonl
modules: [operators.py]
operators:
  - name: marked
    operator: "{group}.mark"
"""


def keywords_of(project, attributes, node=""):
    """Return the keywords that a defs.yaml gives to `build_definitions`."""
    path = project.write(f"{NODE}{node}{attributes}")
    with project.sandbox.build_component_tree() as tree:
        return tree.load_component(path.parent).keywords()
