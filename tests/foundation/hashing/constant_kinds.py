"""Kinds of changes to code that alter a result, as pairs of sources. Run it to print the digests.

Each entry is the source of a module in which ``{n}`` is 1 or 2, in two forms: an expression, which
is the constant of a module, or whole statements, which define ``VALUE``.
"""
# ruff: noqa: E501 - one line for each kind

import json
import re
import sys
import types

from dagster_dataops.foundation.hashing.code import code_facts
from dagster_dataops.operators.definition.spec import _ENTRIES, _is_operational
from tests.registries import OperatorRegistry

_IMPORTS = """
import argparse, array, ast, asyncio, calendar, collections, configparser, contextlib, contextvars
import csv, datetime, decimal, difflib, email.message, enum, fractions, functools, graphlib, hashlib
import hmac, http.cookies, inspect, io, ipaddress, itertools, json, operator, optparse, os, pathlib
import queue, random, re, shlex, sqlite3, statistics, string, struct, textwrap, threading, time
import types, typing, urllib.parse, uuid, weakref, xml.etree.ElementTree, zoneinfo, dataclasses
import collections.abc, codecs, logging, locale, http.client, mimetypes, numbers, copy, gettext
from dataclasses import dataclass, field
from typing import Annotated, Any, NamedTuple, TypedDict, Literal, Protocol, Generic, TypeVar, NewType
import jinja2, jinja2.sandbox, pydantic, httpx, orjson, xxhash, yaml
"""
# Packages that need not be installed: the names by which entries use them.
_OPTIONAL = {
    "np": "import numpy as np",
    "pd": "import pandas as pd",
    "pa": "import pyarrow as pa",
    "pc": "import pyarrow.compute as pc",
    "pl": "import polars as pl",
    "PIL": "import PIL.Image",
    "dateutil": "import dateutil.relativedelta, dateutil.rrule",
    **{
        name: f"import {name}"
        for name in ("regex", "re2", "attrs", "sympy", "networkx", "boto3", "tqdm", "jsonschema")
    },
    "spacy": "import spacy",
}

EXPRESSIONS = """
1 + {n}
1.5 * {n}
'a{n}'
b'a{n}'
bytearray(b'a{n}')
memoryview(b'a{n}')
complex({n}, 1)
10 ** 30 + {n}
-0.0 if {n} == 1 else 0.0
1 if {n} == 1 else True
1 if {n} == 1 else 1.0
1 if {n} == 1 else '1'
'1' if {n} == 1 else b'1'
None if {n} == 1 else False
Ellipsis if {n} == 1 else NotImplemented
float('nan') if {n} == 1 else float('inf')
[1, {n}]
(1, {n})
{{1, {n} + 1}}
frozenset({{1, {n} + 1}})
{{'a': {n}}}
{{{n}: 'a'}}
[1, 2] if {n} == 1 else (1, 2)
[] if {n} == 1 else ()
{{1}} if {n} == 1 else frozenset({{1}})
b'a' if {n} == 1 else bytearray(b'a')
b'a' if {n} == 1 else memoryview(b'a')
{{'a': 1, 'b': 2}} if {n} == 1 else {{'b': 2, 'a': 1}}
{{'x': {{'a': 1, 'b': 2}}}} if {n} == 1 else {{'x': {{'b': 2, 'a': 1}}}}
[{{'a': 1, 'b': 2}}] if {n} == 1 else [{{'b': 2, 'a': 1}}]
{{'a': [1]}} if {n} == 1 else {{'a': (1,)}}
[[1], [2]] if {n} == 1 else [(1,), [2]]
{{'a': 1}} if {n} == 1 else collections.OrderedDict(a=1)
{{'a': 1}} if {n} == 1 else types.MappingProxyType({{'a': 1}})
{{'a': 1}} if {n} == 1 else collections.defaultdict(int, a=1)
{{'a': 1}} if {n} == 1 else collections.UserDict(a=1)
{{'a': 1}} if {n} == 1 else collections.Counter(a=1)
[1] if {n} == 1 else collections.UserList([1])
'a' if {n} == 1 else collections.UserString('a')
[1] if {n} == 1 else collections.deque([1])
[1] if {n} == 1 else array.array('i', [1])
range(1) if {n} == 1 else [0]
range(3, 9, {n})
slice(0, {n})
types.SimpleNamespace(weight={n})
types.SimpleNamespace(a=1, b=2) if {n} == 1 else types.SimpleNamespace(b=2, a=1)
types.SimpleNamespace(f=lambda x: x + {n})
types.SimpleNamespace(inner=types.SimpleNamespace(a={n}))
types.MappingProxyType({{'a': {n}}})
types.MappingProxyType({{'a': 1, 'b': 2}} if {n} == 1 else {{'b': 2, 'a': 1}})
argparse.Namespace(weight={n})
argparse.Namespace(a=[{n}])
optparse.Values({{'a': {n}}})
collections.ChainMap({{'a': {n}}})
collections.ChainMap({{'a': 1}}, {{'a': {n}}})
collections.UserDict(a={n})
collections.UserList([{n}])
collections.UserString('a{n}')
collections.OrderedDict(a={n})
collections.OrderedDict(a=1, b=2) if {n} == 1 else collections.OrderedDict(b=2, a=1)
collections.Counter('a' * {n})
collections.Counter(a=1, b=1) if {n} == 1 else collections.Counter(b=1, a=1)
collections.defaultdict(lambda: {n})
collections.defaultdict(int if {n} == 1 else list)
collections.defaultdict(int, a={n})
collections.deque([1, {n}])
collections.deque([1], maxlen={n})
collections.namedtuple('P', 'a b')(1, {n})
collections.namedtuple('P', 'a' if {n} == 1 else 'b')(1)
array.array('i', [{n}])
array.array('i' if {n} == 1 else 'l', [1])
{{'a': {n}}}.keys() | {{{n}}}
{{{n}: 1}}.keys()
{{1: {n}}}.values()
{{1: {n}}}.items()
datetime.date(2024, 1, {n})
datetime.datetime(2024, 1, {n})
datetime.datetime(2024, 1, 1, tzinfo=datetime.timezone(datetime.timedelta(hours={n})))
datetime.datetime(2024, 10, 27, 2, 30, fold={n} - 1)
datetime.time({n})
datetime.timedelta({n})
datetime.timezone(datetime.timedelta(hours={n}))
zoneinfo.ZoneInfo('Europe/Paris' if {n} == 1 else 'Europe/Berlin')
time.struct_time((2024, 1, {n}, 0, 0, 0, 0, 1, 0))
decimal.Decimal('1.{n}')
decimal.Decimal('1.0' if {n} == 1 else '1.00')
decimal.Context(prec={n})
fractions.Fraction({n}, 7)
uuid.UUID(int={n})
pathlib.Path('a{n}')
pathlib.PurePosixPath('a{n}')
pathlib.PureWindowsPath('a{n}')
pathlib.PurePosixPath('a') if {n} == 1 else pathlib.PureWindowsPath('a')
ipaddress.ip_address('10.0.0.{n}')
ipaddress.ip_network('10.0.{n}.0/24')
urllib.parse.urlsplit('http://h/{n}')
re.compile('a{n}')
re.compile('a', re.I if {n} == 1 else re.M)
re.compile(b'a') if {n} == 1 else re.compile("b'a'")
re.compile('{n}').sub
regex.compile('a{n}')
regex.compile('a', regex.I if {n} == 1 else regex.M)
regex.compile(r'\\L<w>', w=['a{n}'])
re2.compile('a{n}')
re2.compile('a' + '({n})')
string.Template('$a {n}')
string.Formatter() if {n} == 1 else string.Template('a')
struct.Struct('i' if {n} == 1 else 'l')
random.Random({n})
random.Random({n}).random()
np.random.default_rng({n})
np.random.RandomState({n})
itertools.count({n})
itertools.count(1, {n})
itertools.repeat('a', {n})
itertools.cycle([{n}, 3])
itertools.chain([{n}], [3])
itertools.islice([1, 2, 3], {n})
itertools.product([1, {n}])
iter([1, {n}])
iter(({n}, 1))
iter({{'a': {n}}}.items())
enumerate([1, {n}])
reversed([1, {n}])
zip([1], [{n}])
map(str, [{n}])
filter(None, [1, {n}])
(x for x in [1, {n}])
operator.attrgetter('a{n}')
operator.attrgetter('a', 'b{n}')
operator.itemgetter({n})
operator.methodcaller('a', {n})
operator.methodcaller('a', k={n})
operator.add if {n} == 1 else operator.sub
str.upper if {n} == 1 else str.lower
'a{n}'.join
len if {n} == 1 else max
functools.partial(int, base={n} + 8)
functools.partial(max, {n})
functools.partial(dict, a=1, b=2) if {n} == 1 else functools.partial(dict, b=2, a=1)
functools.partial(functools.partial(max, {n}), 3)
functools.partial(lambda a, b: a + {n}, 1)
functools.partialmethod(max, {n})
functools.cmp_to_key(lambda a, b: {n})
functools.cmp_to_key(lambda a, b: {n})(3)
functools.lru_cache(lambda x: x + {n})
functools.singledispatch(lambda x: x + {n})
functools.reduce(operator.add, [1, {n}])
configparser.ConfigParser({{'a': '{n}'}})
http.cookies.SimpleCookie('a={n}')
email.message.EmailMessage()['a'] if {n} == 1 else email.message.EmailMessage()
xml.etree.ElementTree.fromstring('<a b="{n}"/>')
xml.etree.ElementTree.ElementTree(xml.etree.ElementTree.fromstring('<a b="{n}"/>'))
ast.parse('a + {n}')
compile('a + {n}', 'x', 'eval')
inspect.Signature([inspect.Parameter('a{n}', inspect.Parameter.POSITIONAL_ONLY)])
graphlib.TopologicalSorter({{1: [{n} + 1]}})
textwrap.TextWrapper(width={n} + 10)
difflib.Differ() if {n} == 1 else difflib.SequenceMatcher(a='x')
calendar.Calendar({n})
statistics.NormalDist({n})
shlex.shlex('a {n}')
csv.get_dialect('excel' if {n} == 1 else 'unix')
json.JSONEncoder(indent={n})
json.JSONEncoder(sort_keys={n} == 1)
json.JSONDecoder(parse_float=float if {n} == 1 else decimal.Decimal)
hashlib.sha256(b'{n}')
hashlib.blake2b(b'a', salt=b'{n}')
hashlib.shake_128(b'{n}')
hmac.new(b'{n}', b'a', 'sha256')
xxhash.xxh64(b'{n}')
xxhash.xxh64(seed={n})
io.StringIO('a{n}')
io.BytesIO(b'a{n}')
contextvars.ContextVar('a', default={n})
contextlib.suppress(KeyError if {n} == 1 else ValueError)
contextlib.nullcontext({n})
weakref.ref(logging.Logger) if {n} == 1 else weakref.ref(logging.Handler)
queue.Queue({n})
codecs.lookup('utf-8' if {n} == 1 else 'latin-1')
sqlite3.connect(':memory:') if {n} == 1 else sqlite3
enum.Enum('E', 'A B').A if {n} == 1 else enum.Enum('E', 'A B').B
enum.Enum('E', {{'A': {n}}}).A
enum.IntEnum('E', {{'A': {n}}}).A
enum.Flag('E', 'A B')(3 if {n} == 1 else 1)
re.RegexFlag(2 if {n} == 1 else 8)
list[int] if {n} == 1 else list[str]
int | str if {n} == 1 else int | float
Literal['a{n}']
typing.Optional[int] if {n} == 1 else typing.Optional[str]
dict[str, int] if {n} == 1 else dict[str, str]
Annotated[int, {n}]
types.MethodType(lambda self, x: x, {n})
(lambda x: x + {n})
(lambda x, y={n}: x + y)
(lambda *x: x) if {n} == 1 else (lambda x: x)
(lambda x, y: x - y) if {n} == 1 else (lambda y, x: y - x)
(lambda *, a=1: a) if {n} == 1 else (lambda a=1: a)
(lambda n: lambda x: x + n)({n})
{{'f': lambda x: x + {n}}}
[lambda x: x * {n}]
property(lambda self: {n})
staticmethod(lambda: {n})
type('T', (), {{'a': {n}}})
type('T', (), {{'a': {n}}})()
type('T', (dict,), {{}})(a={n})
type('T', (list,), {{}})([{n}])
type('T', (tuple,), {{}})([{n}])
type('T', (set,), {{}})([{n}])
type('T', (str,), {{}})('{n}')
type('T', (int,), {{}})({n})
type('T', (float,), {{}})({n})
type('T', (bytes,), {{}})(b'{n}')
1 if {n} == 1 else type('T', (int,), {{}})(1)
'a' if {n} == 1 else type('T', (str,), {{}})('a')
np.array([{n}, 5])
np.array([1, 2]) if {n} == 1 else np.array([1, 2], dtype='int8')
np.array([[1, 2]]) if {n} == 1 else np.array([1, 2])
np.array(['a{n}'])
np.array([{n}, 'a'], dtype=object)
np.zeros({n})
np.float64({n})
np.float64(1) if {n} == 1 else 1.0
np.int64({n})
np.int64(1) if {n} == 1 else np.int32(1)
np.bool_({n} == 1)
np.str_('a{n}')
np.datetime64('2024-01-0{n}')
np.timedelta64({n}, 's')
np.dtype('int8' if {n} == 1 else 'int16')
np.dtype([('a', 'int8' if {n} == 1 else 'int16')])
np.array([(1, {n})], dtype=[('a', 'i4'), ('b', 'i4')])[0]
np.ma.array([1, 2], mask=[0, {n} - 1])
np.matrix([[{n}]])
np.add if {n} == 1 else np.multiply
np.vectorize(lambda x: x + {n})
np.poly1d([1, {n}])
np.frompyfunc(lambda x: x + {n}, 1, 1)
np.errstate(divide='ignore' if {n} == 1 else 'raise')
np.finfo('float32' if {n} == 1 else 'float64')
pd.Series([{n}])
pd.Series([1], name='a{n}')
pd.Series([1], index=['a{n}'])
pd.DataFrame({{'a': [{n}]}})
pd.DataFrame({{'a': [1], 'b': [2]}}) if {n} == 1 else pd.DataFrame({{'b': [2], 'a': [1]}})
pd.DataFrame({{'a': ['x{n}']}})
pd.Index([{n}])
pd.Timestamp(2024, 1, {n})
pd.Timedelta(days={n})
pd.Interval(0, {n})
pd.Categorical(['a'], categories=['a', 'b{n}'])
pd.NaT if {n} == 1 else pd.NA
pd.offsets.Day({n})
pa.array([{n}])
pa.scalar({n})
pa.table({{'a': [{n}]}})
pa.schema([('a', pa.int8() if {n} == 1 else pa.int16())])
pa.int8() if {n} == 1 else pa.int16()
pa.record_batch({{'a': [{n}]}})
pa.chunked_array([[{n}]])
pa.field('a{n}', pa.int8())
pc.field('a') > {n}
pl.Series([{n}])
pl.DataFrame({{'a': [{n}]}})
pl.col('a') + {n}
pl.LazyFrame({{'a': [{n}]}})
pl.Int8 if {n} == 1 else pl.Int16
pl.Datetime('us' if {n} == 1 else 'ms')
jinja2.Template('a{n}')
jinja2.Template('a b')if {n} == 1 else jinja2.Template('a  b')
jinja2.Environment(loader=jinja2.DictLoader({{'a': '{n}'}}))
jinja2.Environment(trim_blocks={n} == 1)
jinja2.Environment().from_string('{{{{ a{n} }}}}')
pydantic.TypeAdapter(int if {n} == 1 else str)
pydantic.TypeAdapter(Literal['a{n}'])
pydantic.create_model('M', a=(int, {n}))
pydantic.create_model('M', a=(int, 0))(a={n})
pydantic.SecretStr('a{n}')
attrs.make_class('A', ['a'])({n})
attrs.make_class('A', {{'a': attrs.field(default={n})}})
attrs.make_class('A', {{'a': attrs.field(default=1, metadata={{'k': {n}}})}})
attrs.make_class('A', {{'a': attrs.field(default=1, converter=int if {n} == 1 else float)}})
sympy.Symbol('a{n}')
sympy.sympify('x + {n}')
networkx.Graph([(1, {n} + 1)])
dateutil.relativedelta.relativedelta(days={n})
dateutil.rrule.rrule(dateutil.rrule.DAILY, count={n}, dtstart=datetime.datetime(2024, 1, 1))
PIL.Image.new('L', (1, 1), {n})
httpx.Headers({{'a': '{n}'}})
httpx.URL('http://h/{n}')
httpx.Client(base_url='http://h{n}')
orjson.Fragment(b'{n}')
dataclasses.make_dataclass('D', [('a', int, {n})])
dataclasses.make_dataclass('D', [('a', int)])({n})
dataclasses.make_dataclass('D', [('a', int, field(default=1, metadata={{'k': {n}}}))])
dataclasses.make_dataclass('D', [('a', list, field(default_factory=list if {n} == 1 else dict))])
dataclasses.make_dataclass('D', [('a', int, field(default=1, repr={n} == 1))])
dataclasses.make_dataclass('D', [('a', int, field(default=1, compare={n} == 1))])
dataclasses.make_dataclass('D', [('a', int)], order={n} == 1)
dataclasses.make_dataclass('D', [('a', int)], frozen={n} == 1)
(lambda deep: [deep := [deep] for _ in range(150)] and deep)({n}) and functools.reduce(lambda a, _: [a], range(150), {n})
functools.reduce(lambda a, _: {{'k': a}}, range(150), {n})
functools.reduce(lambda a, _: types.SimpleNamespace(k=a), range(150), {n})
functools.reduce(lambda a, _: (a,), range(250), {n})
({n}).__add__
{{'a': {n}}}.get
np.array([1, {n}]).sum
__import__('ctypes').c_int({n})
weakref.WeakSet() if {n} == 1 else weakref.WeakKeyDictionary()
[types, re] if {n} == 1 else [types, io]
__import__('typing_extensions').TypeAliasType('T', int if {n} == 1 else str)
time.gmtime({n})
np.random.Generator(np.random.PCG64({n}))
np.rec.array([(1, {n})], dtype=[('a', 'i4'), ('b', 'i4')])
np.ndindex(1, {n})
np.polynomial.Polynomial([1, {n}])
pd.MultiIndex.from_tuples([(1, {n})])
pd.Series([1], dtype='category' if {n} == 1 else 'int64')
pd.DataFrame({{'a': [1]}}, index=['{n}'])
pd.Period('2024-0{n}')
pd.Timestamp(2024, 1, 1, tz='UTC' if {n} == 1 else 'Europe/Paris')
pd.arrays.IntervalArray.from_breaks([0, 1, {n} + 1])
pl.Series(['a'], dtype=pl.Categorical) if {n} == 1 else pl.Series(['a'])
pl.Schema({{'a': pl.Int8 if {n} == 1 else pl.Int16}})
pl.when(pl.col('a') > {n}).then(1)
pa.dictionary(pa.int8(), pa.string() if {n} == 1 else pa.large_string())
pa.py_buffer(b'a{n}')
pa.compute.MatchSubstringOptions('a{n}')
jinja2.Environment(undefined=jinja2.StrictUndefined if {n} == 1 else jinja2.Undefined)
jinja2.Environment(autoescape={n} == 1)
jinja2.sandbox.SandboxedEnvironment().from_string('a{n}')
httpx.Timeout({n})
httpx.QueryParams({{'a': '{n}'}})
yaml.safe_load('a: [1, {n}]')
urllib.parse.ParseResult('http', 'h{n}', '', '', '', '')
email.message_from_string('Subject: a{n}')
inspect.signature(lambda a: a) if {n} == 1 else inspect.signature(lambda b: b)
ast.Constant({n})
codecs.CodecInfo(str, str, name='a{n}')
"""

STATEMENTS = {
    "an attribute of a class": "class C:\n    a = {n}\nVALUE = C",
    "an attribute named _": "class C:\n    _ = {n}\nVALUE = C",
    "an attribute named __": "class C:\n    __ = {n}\nVALUE = C",
    "an attribute named _a_": "class C:\n    _a_ = {n}\nVALUE = C",
    "an attribute named __prompt__": "class C:\n    __prompt__ = 'a{n}'\nVALUE = C",
    "a private attribute": "class C:\n    __a = {n}\nVALUE = C",
    "a namespace of a class": "class C:\n    a = types.SimpleNamespace(b={n})\nVALUE = C",
    "an array of a class": "class C:\n    a = np.array([{n}])\nVALUE = C",
    "a partial method": "class C:\n    def g(self, n): return n\n    k = functools.partialmethod(g, {n})\nVALUE = C",
    "a single dispatch method": "class C:\n    @functools.singledispatchmethod\n    def g(self, a): return {n}\nVALUE = C",
    "a registered single dispatch": "@functools.singledispatch\ndef f(a): return 0\n@f.register\ndef _(a: int): return {n}\nVALUE = f",
    "a cached property": "class C:\n    @functools.cached_property\n    def g(self): return {n}\nVALUE = C",
    "a property": "class C:\n    @property\n    def g(self): return {n}\nVALUE = C",
    "a static method": "class C:\n    @staticmethod\n    def g(): return {n}\nVALUE = C",
    "a descriptor": "class D:\n    def __init__(self, n): self.n = n\n    def __get__(self, o, t): return self.n\nclass C:\n    a = D({n})\nVALUE = C",
    "a metaclass": "class M(type):\n    k = {n}\nclass C(metaclass=M): pass\nVALUE = C",
    "a base": "class B:\n    k = {n}\nclass C(B): pass\nVALUE = C",
    "a class keyword": "class B:\n    def __init_subclass__(cls, k): cls.k = k\nclass C(B, k={n}): pass\nVALUE = C",
    "an instance": "class C:\n    def __init__(self, a): self.a = a\nVALUE = C({n})",
    "an instance with slots": "class C:\n    __slots__ = ('a',)\n    def __init__(self, a): self.a = a\nVALUE = C({n})",
    "an instance with private state": "class C:\n    def __init__(self, a): self.__a = a\nVALUE = C({n})",
    "an instance with __enter__": "class C:\n    def __init__(self, a): self._a = a\n    def __enter__(self): return self\n    def __exit__(self, *e): pass\nVALUE = C({n})",
    "the order of attributes": "class C:\n    def __init__(self, d): self.__dict__.update(d)\nVALUE = C({{'a': 1, 'b': 2}} if {n} == 1 else {{'b': 2, 'a': 1}})",
    "an object in an object": "class C:\n    def __init__(self, a): self.a = a\nVALUE = C(C(np.array([{n}])))",
    "where a cycle leads": "class C: pass\nx, y = C(), C()\nx.o = y\ny.o = x if {n} == 1 else y\nVALUE = x",
    "a callable object": "class C:\n    def __init__(self, a): self.a = a\n    def __call__(self, x): return self.a\nVALUE = C({n})",
    "a bound method": "class C:\n    def __init__(self, a): self.a = a\n    def m(self): return self.a\nVALUE = C({n}).m",
    "a class method": "class C:\n    k = {n}\n    @classmethod\n    def m(cls): return cls.k\nVALUE = C.m",
    "a default": "def f(a={n}): return a\nVALUE = f",
    "a default array": "def f(a=np.array([{n}])): return a\nVALUE = f",
    "a default of a keyword": "def f(*, a=types.SimpleNamespace(b={n})): return a\nVALUE = f",
    "a closure": "def make(n):\n    def f(x): return n\n    return f\nVALUE = make(np.array([{n}]))",
    "a closure over a list": "def make(n):\n    def f(x): return n\n    return f\nVALUE = make([{n}])",
    "an attribute of a function": "def f(x): return f.k\nf.k = types.SimpleNamespace(a={n})\nVALUE = f",
    "a decorator with an argument": "def times(n):\n    def wrap(f):\n        @functools.wraps(f)\n        def inner(x): return f(x) * n\n        return inner\n    return wrap\n@times({n})\ndef f(x): return x\nVALUE = f",
    "a dataclass": "@dataclass\nclass D:\n    a: int = {n}\nVALUE = D",
    "metadata of a dataclass": "@dataclass\nclass D:\n    a: int = field(default=1, metadata={{'k': {n}}})\nVALUE = D",
    "a default of a dataclass with slots": "@dataclass(slots=True)\nclass D:\n    a: int = {n}\nVALUE = D",
    "a factory": "@dataclass\nclass D:\n    a: list = field(default_factory=lambda: [{n}])\nVALUE = D",
    "the order of fields": "@dataclass\nclass D:\n    {a}: int = 0\n    {b}: int = 0\nVALUE = D",
    "an instance of a dataclass": "@dataclass\nclass D:\n    a: Any\nVALUE = D(np.array([{n}]))",
    "a frozen instance with slots": "@dataclass(frozen=True, slots=True)\nclass D:\n    a: Any\nVALUE = D({n})",
    "a named tuple": "class P(NamedTuple):\n    a: int = {n}\nVALUE = P",
    "an instance of a named tuple": "class P(NamedTuple):\n    a: int\nVALUE = P({n})",
    "a typed dict": "class T(TypedDict):\n    a: Literal['a{n}']\nVALUE = T",
    "an enum": "class E(enum.Enum):\n    A = {n}\nVALUE = E",
    "an enum member": "class E(enum.Enum):\n    A = {n}\nVALUE = E.A",
    "a method of an enum": "class E(enum.Enum):\n    A = 1\n    def f(self): return {n}\nVALUE = E.A",
    "an enum with objects": "class E(enum.Enum):\n    A = types.SimpleNamespace(k={n})\nVALUE = E",
    "the order of an enum": "E = enum.Enum('E', 'A B' if {n} == 1 else 'B A')\nVALUE = E",
    "a default of a pydantic model": "class M(pydantic.BaseModel):\n    a: int = {n}\nVALUE = M",
    "a description of a field": "class M(pydantic.BaseModel):\n    a: int = pydantic.Field(1, description='{n}')\nVALUE = M",
    "a validator": "class M(pydantic.BaseModel):\n    a: int\n    @pydantic.field_validator('a')\n    @classmethod\n    def v(cls, a): return a + {n}\nVALUE = M",
    "a config of a model": "class M(pydantic.BaseModel):\n    model_config = pydantic.ConfigDict(str_max_length={n})\n    a: str\nVALUE = M",
    "an instance of a model": "class M(pydantic.BaseModel):\n    a: Any\nVALUE = M(a={n})",
    "a private attribute of a model": "class M(pydantic.BaseModel):\n    _a: int = pydantic.PrivateAttr({n})\nVALUE = M()",
    "a factory of a model": "class M(pydantic.BaseModel):\n    a: list = pydantic.Field(default_factory=lambda: [{n}])\nVALUE = M",
    "an annotated validator": "class M(pydantic.BaseModel):\n    a: Annotated[int, pydantic.AfterValidator(lambda a: a + {n})]\nVALUE = M",
    "an attrs class": "@attrs.define\nclass A:\n    a: int = {n}\nVALUE = A",
    "an attrs factory": "@attrs.define\nclass A:\n    a: list = attrs.field(factory=lambda: [{n}])\nVALUE = A",
    "an attrs validator": "@attrs.define\nclass A:\n    a: int = attrs.field(default=0, validator=attrs.validators.lt({n}))\nVALUE = A",
    "a filter of an environment": "E = jinja2.Environment()\nE.filters['f'] = lambda x: x + '{n}'\nVALUE = E",
    "a global of an environment": "E = jinja2.Environment()\nE.globals['g'] = {n}\nVALUE = E",
    "a dispatch table": "def a(x): return x\ndef b(x): return x + 1\nVALUE = {{'k': a if {n} == 1 else b}}",
    "a table of objects": "VALUE = {{'k': np.array([{n}]), 'l': types.SimpleNamespace(m=decimal.Decimal({n}))}}",
    "a nested table": "VALUE = [{{'k': ({{'l': collections.ChainMap({{'m': {n}}})}},)}}]",
    "a set of objects": "VALUE = {{decimal.Decimal({n}), fractions.Fraction({n}, 3)}}",
    "a config file": "VALUE = configparser.ConfigParser()\nVALUE.read_string('[a]\\nweight={n}')",
    "a parser": "VALUE = argparse.ArgumentParser(prog='p')\nVALUE.add_argument('--a', default={n})",
    "an e-mail": "VALUE = email.message.EmailMessage()\nVALUE['Subject'] = 'a{n}'",
    "a lock": "VALUE = types.SimpleNamespace(lock=threading.Lock(), a={n})",
    "a queue": "VALUE = queue.Queue()\nVALUE.put({n})",
    "an object of an exec": "exec('def g(x): return x + {n}')\nVALUE = g",
    "a password": "PASSWORD = 'a{n}'\nVALUE = lambda: PASSWORD",
    "a salt": "SALT = b'a{n}'\nVALUE = lambda: SALT",
    "a key of a signature": "SIGNING_KEY = b'a{n}'\nVALUE = lambda: SIGNING_KEY",
    "a private key": "PRIVATE_KEY = 'a{n}'\nVALUE = lambda: PRIVATE_KEY",
    "an encryption key": "ENCRYPTION_KEY = 'a{n}'\nVALUE = lambda: ENCRYPTION_KEY",
    "a copied class": "class C:\n    a = {n}\nVALUE = copy.copy(C())",
    "a generic": "T = TypeVar('T')\nclass C(Generic[T]):\n    a = {n}\nVALUE = C[int]",
    "a protocol": "class C(Protocol):\n    a: int = {n}\nVALUE = C",
    "a template string": "VALUE = string.Template('$x {n}').substitute",
    "an iterator of a class": "class C:\n    def __iter__(self): yield {n}\nVALUE = C()",
    "a coroutine function": "async def f(x): return {n}\nVALUE = f",
    "a generator function": "def f(x): yield {n}\nVALUE = f",
    "a text with slots": "class T(str):\n    __slots__ = ('k',)\nVALUE = T('a')\nVALUE.k = {n}",
    "a named tuple with an attribute": "class P(collections.namedtuple('P', 'a')):\n    pass\nVALUE = P(1)\nVALUE.k = {n}",
    "a dict with an attribute": "class D(dict):\n    pass\nVALUE = D(a=1)\nVALUE.k = {n}",
    "a list with an attribute": "class D(list):\n    pass\nVALUE = D([1])\nVALUE.k = {n}",
    "a set with an attribute": "class D(set):\n    pass\nVALUE = D([1])\nVALUE.k = {n}",
    "a mapping of its own": "class M(collections.abc.Mapping):\n    def __init__(self, d): self.d = d\n    def __getitem__(self, k): return self.d[k]\n    def __iter__(self): return iter(self.d)\n    def __len__(self): return len(self.d)\nVALUE = M({{'a': {n}}})",
    "the total of a typed dict": "class T(TypedDict, total={n} == 1):\n    a: int\nVALUE = T",
    "the boundary of flags": "class F(enum.Flag, boundary=enum.KEEP if {n} == 1 else enum.EJECT):\n    A = 1\nVALUE = F",
    "a dunder of the module": "__prompt__ = 'a{n}'\nVALUE = lambda: __prompt__",
    "the version of the module": "__version__ = '{n}'\nVALUE = lambda: __version__",
    "a docstring that is read": "def f():\n    'Say {n}.'\nVALUE = lambda: f.__doc__",
    "a docstring of a class that is read": "class C:\n    'Say {n}.'\n    def f(self): return self.__doc__\nVALUE = C",
    "the docstring of a module that is read": "__doc__ = 'Say {n}.'\nVALUE = lambda: __doc__",
    "a slot of a base": "class B:\n    __slots__ = ('a',)\nclass C(B):\n    __slots__ = ('b',)\nVALUE = C()\nVALUE.a = {n}\nVALUE.b = 1",
    "a getstate": "class C:\n    def __init__(self, a): self.a = a\n    def __getstate__(self): return {{'b': self.a}}\nVALUE = C({n})",
    "a reduce": "class C:\n    def __init__(self, a): self.a = a\n    def __reduce__(self): return C, (self.a,)\nVALUE = C({n})",
    "a lazily filled cache": "class C:\n    cache = {{}}\nC.cache['a'] = {n}\nVALUE = C",
    "a wrapped partial": "VALUE = functools.update_wrapper(functools.partial(max, {n}), max)",
    "a composed function": "def compose(*fs): return lambda x: functools.reduce(lambda a, f: f(a), fs, x)\nVALUE = compose(str, functools.partial(int, base={n} + 8))",
    "a class in a table": "class A:\n    k = {n}\nVALUE = {{'a': [A]}}",
    "an instance of a generic": "T = TypeVar('T')\nclass C(Generic[T]):\n    def __init__(self, a): self.a = a\nVALUE = C[int]({n})",
    "a counter of instances": "class C:\n    made = 0\n    def __init__(self): C.made += 1\nVALUE = [C() for _ in range({n})]",
    "a comparison by key": "VALUE = sorted([1, 2], key=lambda x: x * (1 if {n} == 1 else -1))",
}


def source_of(name: str, number: int) -> str:
    """Return the source of one entry."""
    given = STATEMENTS.get(name, f"VALUE = {name}")
    a, b = "ab" if number == 1 else "ba"
    text = given.format(n=number, a=a, b=b)
    return f"{_imports(given)}{text}\ndef target(row): return VALUE\n"


def _imports(given: str) -> str:
    """Return the imports that an entry needs."""
    found = [text for name, text in _OPTIONAL.items() if re.search(rf"\b{name}\.", given)]
    return "\n".join([_IMPORTS, *found, ""])


def _is_installed(name: str) -> bool:
    try:
        exec(_imports(STATEMENTS.get(name, name)), {})  # noqa: S102
    except ImportError:
        return False
    return True


HARMLESS = [
    "logging.getLogger('a{n}')",
    "logging.LoggerAdapter(logging.getLogger('a'), {{'a': {n}}})",
    "threading.Lock()",
    "threading.RLock()",
    "threading.Event()",
    "threading.Semaphore({n})",
    "threading.local()",
    "asyncio.Semaphore({n})",
    "concurrent.futures.ThreadPoolExecutor({n})",
    "multiprocessing.Lock()",
    "ssl.create_default_context()",
    "os.environ",
    "sys.stdout",
    "httpx.Client(base_url='http://h', timeout={n})",
    "httpx.AsyncClient(base_url='http://h', timeout={n})",
    "boto3.client('s3', region_name='eu-west-1')",
    "tqdm.tqdm(disable=True)",
    "functools.lru_cache(maxsize={n})(len)",
    "weakref.WeakValueDictionary()",
    "TypeVar('T')",
    "re.compile('a')",
    "jsonschema.Draft7Validator({{'type': 'object', 'required': ['a', 'b', 'c']}})",
    "spacy.blank('en')",
    "pydantic.TypeAdapter(list[int])",
    "types.SimpleNamespace(words={{'a', 'b', 'c', 'd'}})",
    "type('T', (set,), {{}})('abcdef')",
    "{{'a': 'b', 'c': 'd'}}.keys()",
    "{{'k': {{'a', 'b', 'c'}}, 'l': frozenset('defg')}}",
    "{{'headers': {{'Authorization': 'a{n}', 'x': '1'}}}}",
    "{{'x-api-key': 'a{n}'}}",
    "[('Authorization', 'a{n}'), ('x', '1')]",
    "types.SimpleNamespace(api_key='a{n}', model='m')",
    "OPERATIONAL",
]
_HARMLESS_IMPORTS = """
import concurrent.futures, multiprocessing, ssl, sys
from dagster_dataops import Operational
OPERATIONAL: Annotated[Any, Operational] = object()
"""


def harmless_source(name: str, number: int) -> str:
    """Return the source of an entry whose digest is the same for both numbers."""
    use = "OPERATIONAL" if name == "OPERATIONAL" else "VALUE"
    value = name.format(n=number)
    return f"{_imports(name)}{_HARMLESS_IMPORTS}VALUE = {value}\ndef target(row): return {use}\n"


def facts_of(source: str, *, option: bool = False) -> list[object]:
    """Return the digest of ``target`` in a module with that source, and what is reported of it.

    Args:
        source: The source of the module.
        option: Whether to return this of its ``VALUE`` as an option of an operator.
    """
    module = types.ModuleType("constants_of_mine")
    sys.modules[module.__name__] = module
    exec(compile(source, "constants_of_mine.py", "exec"), vars(module))  # noqa: S102
    if option:
        use = ask(value=vars(module)["VALUE"]).__dataops__
        return [use.options_digest, *use.unknown_options]
    found = code_facts(vars(module)["target"], _is_operational, "constants_of_mine", _ENTRIES)
    return [found.digest, *found.unknown]


@OperatorRegistry(None)("data.kinds")
def ask(row: dict, value: object = None) -> dict:
    """Return a record."""
    return row


def _measured() -> dict[str, dict[str, list[list[object]]]]:
    names = list(filter(_is_installed, [*filter(None, EXPRESSIONS.splitlines()), *STATEMENTS]))
    pairs = {name: [source_of(name, n) for n in (1, 2)] for name in names}
    return {
        "code": {name: [facts_of(one) for one in pair] for name, pair in pairs.items()},
        "options": {
            name: [facts_of(one, option=True) for one in pair] for name, pair in pairs.items()
        },
        "harmless": {
            name: [facts_of(harmless_source(name, n)) for n in (1, 2)]
            for name in filter(_is_installed, HARMLESS)
        },
    }


if __name__ == "__main__":
    sys.stdout.write(json.dumps(_measured()))
