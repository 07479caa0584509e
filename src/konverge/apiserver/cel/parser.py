"""The grammar of CEL, by recursive descent.

Syntax errors have the messages of cel-go's generated parser. That parser repairs small errors (a superfluous token, a
missing one) and continues; so does this one. Upstream: cel-go parser/parser.go and parser/gen/CEL.g4.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from konverge.apiserver.cel import literals
from konverge.apiserver.cel.lexer import EOF, RANK, Token, between, tokens
from konverge.apiserver.cel.literals import LiteralError
from konverge.apiserver.cel.macros import MacroError, expand
from konverge.apiserver.cel.nesting import LIMIT, balanced, nesting, room
from konverge.apiserver.cel.nodes import (
    Call,
    Entry,
    Failed,
    FieldInit,
    Ident,
    ListExpr,
    Literal,
    MapExpr,
    Node,
    Select,
    StructExpr,
)
from konverge.apiserver.cel.source import CompileError, Problem, Source
from konverge.objects.cel_names import RESERVED

_SIZE = 100_000  # upstream: expressionSizeCodePointLimit
_START = frozenset(
    ("'['", "'{'", "'('", "'.'", "'-'", "'!'", "'true'", "'false'", "'null'", "IDENTIFIER", "STRING", "BYTES")
) | {"NUM_FLOAT", "NUM_INT", "NUM_UINT"}
_RELATIONS = {"'<'": "_<_", "'<='": "_<=_", "'>='": "_>=_", "'>'": "_>_", "'=='": "_==_", "'!='": "_!=_", "'in'": "@in"}
_SUMS = {"'+'": "_+_", "'-'": "_-_"}
_PRODUCTS = {"'*'": "_*_", "'/'": "_/_", "'%'": "_%_"}
_AFTER = frozenset((*_RELATIONS, *_SUMS, *_PRODUCTS, "'&&'", "'||'", "'?'", "'.'", "'['"))
"""Tokens that may follow a complete operand."""
_MEMBERS = frozenset(("IDENTIFIER", "ESC_IDENTIFIER"))


class _TooDeep(Exception):
    """The expression is nested too deeply."""


class _GivenUp(Exception):
    """The rest cannot be parsed; the problem is recorded."""

    partial: Node | None = None
    """What was parsed before it."""


def parse(text: str, *, bindings: bool = False) -> tuple[Source, Node]:
    """The tree of an expression, in which cel.bind() is known if `bindings`. Raises CompileError."""
    source = Source(text)
    if len(text) > _SIZE:
        message = f"expression code point size exceeds limit: size: {len(text)}, limit {_SIZE}"
        raise CompileError(source, [Problem(-1, message)])
    parser = _Parser(text, bindings=bindings)
    with room():
        tree = parser.run()
    if not parser.problems and nesting(tree) > LIMIT + 1:
        parser.problems.append(Problem(-1, "max recursion depth exceeded"))
    if parser.problems:
        raise CompileError(source, parser.problems)
    return source, tree


class _Parser:
    def __init__(self, text: str, *, bindings: bool) -> None:
        self._text = text
        self._bindings = bindings
        self._tokens, self.problems = tokens(text)
        self._at = 0
        self._depth = 0
        self._recovering = False
        self._failed_at = -1
        self._closers: list[frozenset[str]] = [frozenset((EOF,))]
        """Tokens that may follow the expression that is being parsed, innermost last."""

    def run(self) -> Node:
        try:
            tree = self._expression()
            self._expect(EOF, frozenset())
        except _GivenUp:
            return Failed(offset=0)
        except _TooDeep:
            self.problems.append(Problem(-1, f"expression recursion limit exceeded: {LIMIT}"))
            return Failed(offset=0)
        return tree

    # --- tokens

    @property
    def _token(self) -> Token:
        return self._tokens[self._at]

    def _peek(self, ahead: int = 1) -> str:
        return self._tokens[min(self._at + ahead, len(self._tokens) - 1)].kind

    def _advance(self) -> Token:
        token = self._token
        if token.kind != EOF:
            self._at += 1
        self._recovering = False
        return token

    def _take(self, kind: str) -> bool:
        """Match this token if it is the next one."""
        if self._token.kind != kind:
            return False
        self._advance()
        return True

    def _problem(self, offset: int, message: str) -> None:
        self.problems.append(Problem(offset, message))

    def _syntax(self, message: str) -> None:
        """Report an error once: not again until a token has been matched."""
        if not self._recovering:
            self._problem(self._token.offset, f"Syntax error: {message}")
        self._recovering = True

    def _give_up(self, wanted: frozenset[str]) -> _GivenUp:
        self._syntax(f"mismatched input '{_shown(self._token)}' expecting {_listed(wanted)}")
        return _GivenUp()

    def _expect(self, kind: str, after: frozenset[str]) -> Token:
        """Match this token. It may be missing where one of `after`, which may follow it, comes next."""
        if self._token.kind == kind:
            return self._advance()
        if self._peek() == kind and self._token.kind != EOF:
            self._syntax(f"extraneous input '{_shown(self._token)}' expecting {kind}")
            self._at += 1
            return self._advance()
        if self._token.kind in after:
            self._syntax(f"missing {kind} at '{_shown(self._token)}'")
            return Token(kind, "", self._token.offset)
        raise self._give_up(frozenset((kind,)))

    def _start_of(self, allowed: frozenset[str]) -> None:
        """The next token must be one of these; a single other token before it is skipped."""
        if self._token.kind in allowed:
            return
        if self._token.kind != EOF and self._peek() in allowed:
            self._syntax(f"extraneous input '{_shown(self._token)}' expecting {_listed(allowed)}")
            self._at += 1
            return
        raise self._give_up(allowed)

    def _inside(self, closers: frozenset[str], rule: Callable[[], Node]) -> Node:
        self._closers.append(closers)
        try:
            return rule()
        finally:
            self._closers.pop()

    @property
    def _follow(self) -> frozenset[str]:
        return _AFTER | self._closers[-1]

    # --- the grammar

    def _recovered(self, rule: Callable[[], Node]) -> Node:
        """Where a rule of the grammar fails, its tokens are skipped, and parsing continues after them."""
        start = self._at
        try:
            return rule()
        except _GivenUp as given_up:
            follow = _AFTER.union(*self._closers)
            if self._at == start and self._token.kind in follow - self._closers[-1] and self._failed_at == start:
                self._at += self._token.kind != EOF
            self._failed_at = self._at
            while self._token.kind not in follow and self._token.kind != EOF:
                self._at += 1
            return given_up.partial or Failed(offset=self._tokens[start].offset)

    def _expression(self) -> Node:
        return self._recovered(self._conditional)

    def _conditional(self) -> Node:
        self._depth += 1
        if self._depth > LIMIT:
            raise _TooDeep
        condition = self._either()
        if self._token.kind == "'?'":
            question = self._advance()
            yes = self._inside(frozenset(("':'",)), self._either)
            self._expect("':'", _START)
            no = self._expression()
            condition = Call(offset=question.offset, function="_?_:_", args=[condition, yes, no])
        self._depth -= 1
        return condition

    def _either(self) -> Node:
        return self._logical("'||'", "_||_", self._both)

    def _both(self) -> Node:
        return self._logical("'&&'", "_&&_", self._relation)

    def _logical(self, kind: str, function: str, rule: Callable[[], Node]) -> Node:
        terms, operators = [rule()], []
        while self._token.kind == kind:
            operators.append(self._advance().offset)
            terms.append(rule())
        return balanced(function, terms, operators) if operators else terms[0]

    def _relation(self) -> Node:
        return self._binary(_RELATIONS, self._sum)

    def _sum(self) -> Node:
        return self._binary(_SUMS, self._product)

    def _product(self) -> Node:
        return self._binary(_PRODUCTS, self._operand)

    def _operand(self) -> Node:
        return self._recovered(self._unary)

    def _binary(self, operators: dict[str, str], rule: Callable[[], Node]) -> Node:
        left = rule()
        while self._token.kind in operators:
            token = self._advance()
            right = rule()
            if not isinstance(right, Failed):
                left = Call(offset=token.offset, function=operators[token.kind], args=[left, right])
        return left

    def _unary(self) -> Node:
        self._start_of(_START)
        kind = self._token.kind
        if kind == "'-'" and self._peek() in ("NUM_INT", "NUM_FLOAT"):
            return self._members(self._primary())
        if kind not in ("'!'", "'-'"):
            return self._members(self._primary())
        first = self._advance()
        count = 1
        while self._token.kind == kind and not (kind == "'-'" and self._peek() in ("NUM_INT", "NUM_FLOAT")):
            self._advance()
            count += 1
        if self._token.kind not in _START - {"'!'", "'-'"} and not (kind == "'-'" and self._token.kind == "'-'"):
            word = "extraneous" if kind == "'!'" and self._token.kind == EOF else "mismatched"
            self._syntax(f"{word} input '{_shown(self._token)}' expecting {_listed(_START)}")
            raise _GivenUp
        operand = self._members(self._primary())
        if count % 2 == 0:
            return operand
        return Call(offset=first.offset, function="!_" if kind == "'!'" else "-_", args=[operand])

    def _members(self, node: Node) -> Node:
        while True:
            if self._token.kind == "'.'":
                node = self._member(node)
            elif self._token.kind == "'['":
                node = self._index(node)
            else:
                return node

    def _member(self, node: Node) -> Node:
        dot = self._advance()
        optional = self._take("'?'")
        if optional:
            self._optional_name()
        name = self._token
        if name.kind not in _MEMBERS:
            given_up = self._no_member(dot)
            given_up.partial = node
            raise given_up
        self._advance()
        if self._token.kind == "'('" and name.kind == "IDENTIFIER" and not optional:
            opening = self._advance()
            return self._call(opening, name.text, node, self._arguments())
        field = name.text if name.kind == "IDENTIFIER" else name.text[1:-1]
        if optional:
            literal = Literal(offset=name.offset, value=field)
            return Call(offset=dot.offset, function="_?._", args=[node, literal])
        return Select(offset=dot.offset, operand=node, field=field)

    def _no_member(self, dot: Token) -> _GivenUp:
        token = self._token
        if token.kind in ("'true'", "'false'", "'null'"):
            self._syntax(f"mismatched input '{token.text}' expecting IDENTIFIER")
        else:
            shown = "." if token.kind == EOF else f".{between(self._text[dot.offset + 1 : token.offset])}{token.text}"
            text = shown.replace("\n", "\\n").replace("\t", "\\t")
            self._syntax(f"no viable alternative at input '{text}'")
        return _GivenUp()

    def _optional_name(self) -> None:
        place = self._token.offset
        try:
            self._start_of(_MEMBERS)
        except _GivenUp:
            self._problem(place, "unsupported ident kind")
            raise

    def _index(self, node: Node) -> Node:
        opening = self._advance()
        self._start_of(_START | {"'?'"})
        optional = self._take("'?'")
        index = self._inside(frozenset(("']'",)), self._expression)
        self._expect("']'", self._follow)
        return Call(offset=opening.offset, function="_[?_]" if optional else "_[_]", args=[node, index])

    def _arguments(self) -> list[Node]:
        """The arguments between parentheses; the closing one is consumed."""
        self._start_of(_START | {"')'"})
        arguments: list[Node] = []
        while self._token.kind != "')'":
            arguments.append(self._inside(frozenset(("')'", "','")), self._expression))
            if not self._take("','"):
                break
            self._start_of(_START)
        self._expect("')'", self._follow)
        return arguments

    def _call(self, opening: Token, name: str, target: Node | None, args: list[Node]) -> Node:
        try:
            expanded = expand(opening.offset, name, target, args, bindings=self._bindings)
        except MacroError as error:
            self._problem(error.offset, str(error))
            return Failed(offset=error.offset)
        return expanded or Call(offset=opening.offset, function=name, args=args, target=target)

    def _primary(self) -> Node:
        token = self._token
        if token.kind == "'('":
            self._advance()
            node = self._inside(frozenset(("')'",)), self._expression)
            self._expect("')'", self._follow)
            return node
        if token.kind == "'['":
            return self._list()
        if token.kind == "'{'":
            return self._map()
        if token.kind in ("IDENTIFIER", "'.'"):
            return self._name()
        return self._literal()

    def _name(self) -> Node:
        start = self._token
        dot = "." if start.kind == "'.'" else ""
        if dot:
            self._advance()
            if self._token.kind != "IDENTIFIER":
                raise self._give_up(frozenset(("IDENTIFIER",)))
        name = self._advance()
        if self._is_struct():
            return self._struct(dot, name)
        opening = self._advance() if self._token.kind == "'('" else None
        args = self._arguments() if opening is not None else []
        if name.text in RESERVED:
            self._problem(start.offset, f"reserved identifier: {name.text}")
            return Failed(offset=start.offset)
        if opening is not None:
            return self._call(opening, dot + name.text, None, args)
        return Ident(offset=name.offset, name=dot + name.text)

    def _is_struct(self) -> bool:
        """`a.b.C{`: a message, if the dotted names are followed by a brace."""
        ahead = 0
        while self._peek(ahead) == "'.'" and self._peek(ahead + 1) == "IDENTIFIER":
            ahead += 2
        return self._peek(ahead) == "'{'"

    def _struct(self, dot: str, first: Token) -> Node:
        name = dot + first.text
        while self._token.kind == "'.'":
            self._advance()
            name += "." + self._advance().text
        opening = self._advance()
        fields: list[FieldInit] = []
        self._start_of(frozenset(("'}'", "','", "'?'", "IDENTIFIER", "ESC_IDENTIFIER")))
        while self._token.kind in ("'?'", "IDENTIFIER", "ESC_IDENTIFIER"):
            optional = self._take("'?'")
            field = self._advance().text.strip("`")
            colon, value = self._member_value()
            fields.append(FieldInit(offset=colon.offset, name=field, value=value, optional=optional))
            if not self._comma("'}'"):
                break
        self._expect("'}'", self._follow)
        return StructExpr(offset=opening.offset, name=name, fields=fields)

    def _member_value(self) -> tuple[Token, Node]:
        """The colon and the value of a map's entry or of a struct's field."""
        return self._expect("':'", _START), self._inside(frozenset(("'}'", "','")), self._expression)

    def _comma(self, closer: str) -> bool:
        """After an element: whether another follows. A comma may stand before the end."""
        if self._take("','"):
            return self._token.kind != closer and self._token.kind != "','"
        if self._token.kind != closer:
            self._start_of(frozenset((closer, "','")))
            return self._comma(closer)
        return False

    def _elements(self, closer: str) -> Iterator[bool]:
        """Stands before each element of a list or a map: whether it is optional. The closing token is consumed."""
        self._start_of(_START | {"'?'", closer, "','"})
        more = self._token.kind not in (closer, "','")
        self._take("','")
        while more:
            yield self._take("'?'")
            more = self._comma(closer)
        self._expect(closer, self._follow)

    def _list(self) -> Node:
        node = ListExpr(offset=self._advance().offset, items=[])
        for optional in self._elements("']'"):
            if optional:
                node.optional.add(len(node.items))
            node.items.append(self._inside(frozenset(("']'", "','")), self._expression))
        return node

    def _map(self) -> Node:
        node = MapExpr(offset=self._advance().offset, entries=[])
        for optional in self._elements("'}'"):
            key = self._inside(frozenset(("':'",)), self._expression)
            colon, value = self._member_value()
            node.entries.append(Entry(offset=colon.offset, key=key, value=value, optional=optional))
        return node

    def _literal(self) -> Node:
        sign = self._advance() if self._token.kind == "'-'" else None
        token = self._token
        offset = sign.offset if sign is not None else token.offset
        if token.kind not in _LITERALS:
            raise self._give_up(_START)
        self._advance()
        try:
            value = _LITERALS[token.kind](("-" if sign is not None else "") + token.text)
        except LiteralError as error:
            self._problem(offset, str(error))
            value = None
        return Literal(offset=offset, value=value)


_LITERALS: dict[str, Callable[[str], object]] = {
    "NUM_INT": literals.parse_int,
    "NUM_UINT": literals.parse_uint,
    "NUM_FLOAT": literals.parse_double,
    "STRING": literals.parse_string,
    "BYTES": literals.parse_bytes,
    "'true'": lambda text: True,
    "'false'": lambda text: False,
    "'null'": lambda text: None,
}


def _shown(token: Token) -> str:
    return token.text.replace("\n", "\\n").replace("\r", "\\r").replace("\t", "\\t")


def _listed(kinds: frozenset[str]) -> str:
    names = sorted(kinds, key=lambda kind: RANK[kind])
    return names[0] if len(names) == 1 else "{" + ", ".join(names) + "}"
