import pickle

import pytest

from dagster_dataops.errors import DefinitionError, UnfitRecordError
from dagster_dataops.library.chat.rendering_jinja import ChatTemplate, Part
from tests.each import each

MESSAGES = [
    {"role": "user", "content": "<é>"},
    {"role": "assistant", "content": "ab"},
    {"role": "user", "content": ""},
    {"role": "assistant", "content": "cd"},
]
TAG = "{% generation %}{{ m.content }}{% endgeneration %}"
LOOP = "{% for m in messages %}<{% if m.role == 'assistant' %}TAG{% endif %}>{% endfor %}"
# Templates of ours, with what transformers 5.24.0 writes for MESSAGES.
WRITTEN = [
    ("  {% if true %}\n  A\n  {% endif %}\nB\n", "  A\nB"),
    ("{{- ' a ' -}}  \n b{#- c -#}  x {# d #}\ny", " a bx y"),
    ("{{ {'k': '<é&>', 'n': none, 't': true, 'f': 1.0} | tojson }}",
     '{"k": "<é&>", "n": null, "t": true, "f": 1.0}'),
    ("{{ {'b': 1, 'a': 'é'} | tojson(ensure_ascii=true, sort_keys=true, separators=(',', ':')) }}",
     '{"a":"\\u00e9","b":1}'),
    ("{{ [1] | tojson(indent=2) }}", "[\n  1\n]"),
    (("{% set ns = namespace(n=0) %}{% for m in messages %}{% set ns.n = ns.n + 1 %}{% endfor %}"
     "{{ ns.n }}"), "4"),
    ("{{ dict(a=1) }}{{ dict.fromkeys(['a']) | tojson }}{{ dict.__class__ }}",
     '{\'a\': 1}{"a": null}'),
    ("{{ missing }}|{{ missing is defined }}|{{ messages[9] }}|{{ messages[0].nothing }}",
     "|False||"),
    ("{{ '<b>' | e }}{{ messages[0].content }}", "&lt;b&gt;<é>"),
    (("{% for m in messages %}{% if loop.first %}{% continue %}{% endif %}{{ loop.index }}"
     "{% if loop.index > 2 %}{% break %}{% endif %}{% endfor %}"), "23"),
    (("{% macro show(m, n=2) -%}\n [{{ m.role }}{{ n }}]\n{%- endmacro %}"
     "{{ show(messages[0]) | trim }}{{ show(messages[1], n=3) }}"), "[user2][assistant3]"),
    ("{{ messages | map(attribute='role') | join(',') }}", "user,assistant,user,assistant"),
    ("{{ messages[0] }}", "{'role': 'user', 'content': '<é>'}"),
    ("{{ messages[::-1][0].content[:1] ~ 7 // 2 ~ 7 / 2 ~ '%s-%d' % ('a', 2) }}", "c33.5a-2"),
    ("{% generation %}\n  A\n{% endgeneration %}\nB\n", "  A\nB"),
    ("{{ lipsum is defined }}{{ cycler is defined }}{{ range(3) | list }}", "TrueTrue[0, 1, 2]"),
]  # fmt: skip
REFUSED = [
    ("{{ missing.more }}", "'missing' is undefined"),
    ("{{ messages[0].nothing.more }}", "no attribute 'nothing'"),
    ("{{ ''.__class__.__mro__ }}", "unsafe"),
    ("{{ '{0.__class__.__mro__}'.format(1) }}", "unsafe"),
    ("{{ '{a.__class__.__mro__}'.format_map({'a': 1}) }}", "unsafe"),
    ("{{ ('{0.__class__.__mro__}' | attr('format'))(1) }}", "unsafe"),
    ("{{ messages.append(1) }}", "unsafe"),
    ("{% set _ = messages[0].update({'a': 1}) %}", "unsafe"),
    ("{% set ns = namespace(_x=1) %}", "_x"),
    ("{% set ns = namespace() %}{% set ns._x = 1 %}", "_x"),
    ("{{ raise_exception('no ' + messages[0].role) }}", "no user"),
    ("{{ 1 / 0 }}", "division"),
    ("{{ 'a' + 1 }}", "str"),
    ("{{ messages[0].nothing | tojson }}", "not JSON"),
    ("{% call f() %}{% endcall %}", "'f' is undefined"),
    ("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}", "recursion"),
    ("{% for i in range(90000) %}{% for j in range(90000) %}0123456789{% endfor %}{% endfor %}",
     "more than 50,000,000 characters"),
]  # fmt: skip


@each("case", WRITTEN)
def test_a_template_is_rendered_as_transformers_renders_it(case: tuple[str, str]) -> None:
    template, text = case

    assert ChatTemplate(template).render({"messages": MESSAGES}).text == text


@pytest.mark.slow
@each("case", REFUSED)
def test_what_a_template_raises_is_an_error_of_the_record(case: tuple[str, str]) -> None:
    template, found = case

    with pytest.raises(UnfitRecordError, match=found):
        ChatTemplate(template).render({"messages": MESSAGES})


def test_an_error_names_the_line_of_the_template() -> None:
    for template in ("a\n\n{{ 1 / 0 }}", "{% macro f() %}\n\n{{ 1 / 0 }}{% endmacro %}\n{{ f() }}"):
        with pytest.raises(UnfitRecordError, match="line 3: division"):
            ChatTemplate(template).render({})
    with pytest.raises(DefinitionError, match="line 2 of the template"):
        ChatTemplate("a\n{% if %}")


def test_rendering_changes_nothing() -> None:
    before = [dict(message) for message in MESSAGES]
    ChatTemplate("{% for m in messages %}{% set m = 1 %}{% endfor %}").render(
        {"messages": MESSAGES}
    )

    assert before == MESSAGES


def test_a_template_is_pickled_by_its_text() -> None:
    template = pickle.loads(pickle.dumps(ChatTemplate(LOOP.replace("TAG", TAG))))

    assert template.render({"messages": MESSAGES}).text == "<><ab><><cd>"
    assert template.marked


@each(
    "template",
    [
        LOOP.replace("TAG", TAG),
        "{% macro f(m) %}TAG{% endmacro %}".replace("TAG", TAG) + LOOP.replace("TAG", "{{ f(m) }}"),
        "{% set all %}" + LOOP.replace("TAG", TAG) + "{% endset %}{{ all }}",
        "{% macro f() %}{{ caller() }}{% endmacro %}"
        + LOOP.replace("TAG", "{% call f() %}" + TAG + "{% endcall %}"),
        "{% for m in messages recursive %}<{% if m.role == 'assistant' %}TAG{% endif %}>"
        "{% endfor %}".replace("TAG", TAG),
        LOOP.replace("TAG", "{% generation %}" + TAG + "{% endgeneration %}"),
    ],
)
def test_the_place_of_what_the_assistant_writes_is_known_wherever_the_tag_is(template) -> None:
    rendered = ChatTemplate(template).render({"messages": MESSAGES})

    assert rendered.text == "<><ab><><cd>"
    assert [(part.start, part.end) for part in rendered.parts] == [(3, 5), (9, 11)]


def test_a_part_that_the_template_changes_afterwards_is_an_error() -> None:
    template = "{% macro f() %}{% generation %} a {% endgeneration %}{% endmacro %}{{ f() | trim }}"

    with pytest.raises(UnfitRecordError, match="changes what is inside"):
        ChatTemplate(template).render({})


def test_a_part_has_the_number_of_its_message() -> None:
    template = LOOP.replace("TAG", TAG + "{% generation %}!{% endgeneration %}")
    rendered = ChatTemplate(template + "{% generation %}E{% endgeneration %}").render(
        {"messages": MESSAGES}
    )

    assert rendered.parts == [
        Part(3, 5, 1), Part(5, 6, 1), Part(10, 12, 3), Part(12, 13, 3), Part(14, 15)
    ]  # fmt: skip


def test_a_name_that_is_set_inside_of_the_tag_stays_inside() -> None:
    template = "{% generation %}{% set x = 'a' %}{{ x }}{% endgeneration %}[{{ x }}]"

    assert ChatTemplate(template).render({}) == ("a[]", [Part(0, 1)])


def test_a_loop_can_be_left_inside_of_the_tag_but_not_through_it() -> None:
    loop = "{% for m in messages %}{{ m.content }}{% break %}{% endfor %}"
    rendered = ChatTemplate(f"{{% generation %}}{loop}{{% endgeneration %}}.").render(
        {"messages": MESSAGES}
    )

    assert rendered == ("<é>.", [Part(0, 3)])
    with pytest.raises(DefinitionError, match="line 1 of the template: break and continue cannot"):
        ChatTemplate(LOOP.replace("TAG", "{% generation %}{% continue %}{% endgeneration %}"))


def test_an_unknown_name_is_an_error_on_request() -> None:
    with pytest.raises(UnfitRecordError, match="undefined"):
        ChatTemplate("{{ missing }}", strict=True).render({})
