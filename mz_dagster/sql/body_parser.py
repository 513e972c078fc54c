"""Query bodies to syntax trees: the one door by which sqlglot enters.

Owns a PostgreSQL parser that is sqlglot's with its opinions removed: functions are kept as written (its builders
rotate and rename arguments), operators are those that PostgreSQL's lexer sees, with its precedence, an interval string
is never cut to its first unit, and every node knows where it stands in the text. What comes out is syntax only:
sqlglot's types, scopes and optimizer are not used.

Positions: `Body.position` gives the 1-based character to blame, in the whole text the statement came from.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from operator import attrgetter
from typing import Any, ClassVar

from sqlglot import exp
from sqlglot.dialects.materialize import Materialize
from sqlglot.errors import ErrorLevel, ParseError, TokenError
from sqlglot.tokenizer_core import Token as TheirToken
from sqlglot.tokenizer_core import TokenType

from mz_dagster.errors import Error
from mz_dagster.recursion import allow_deep_calls
from mz_dagster.sql.cursor import RESERVED
from mz_dagster.sql.errors import InvalidSyntax, StatementTooComplex, UnsupportedForm
from mz_dagster.sql.hints import GroupSizes, Hint, cut_hints
from mz_dagster.sql.interpreted_parser import MaterializeParser
from mz_dagster.sql.lexer import Token, TokenKind, tokens_of
from mz_dagster.sql.statements import SqlText
from mz_dagster.sql.type_names import INTERVAL_FIELDS

_SPANNED = (
    "_parse_expression", "_parse_disjunction", "_parse_conjunction", "_parse_equality", "_parse_comparison",
    "_parse_range", "_parse_bitwise", "_parse_term", "_parse_factor", "_parse_exponent", "_parse_unary",
    "_parse_type", "_parse_types", "_parse_column", "_parse_column_reference", "_parse_primary", "_parse_function",
    "_parse_field", "_parse_case", "_parse_select", "_parse_table", "_parse_join", "_parse_where", "_parse_group",
    "_parse_having", "_parse_order", "_parse_ordered", "_parse_limit", "_parse_offset", "_parse_with", "_parse_cte",
    "_parse_lambda", "_parse_value", "_parse_qualify", "_parse_window", "_parse_lateral", "_parse_locks",
    "_parse_derived_table_values", "_parse_unnest", "_parse_star", "_parse_id_var", "_parse_assignment",
)  # fmt: skip


#: Why there is no recursion, and what to do instead.
RECURSION_REASON = (
    "Its rounds would have to be kept as times of their own. That is planned, as WITH MUTUALLY RECURSIVE, and not "
    "there yet."
)
RECURSION_HINT = "Write out as many rounds as there can be: CTEs, each a join with the one before, and their UNION."
#: The type of a token that is one of PostgreSQL's "any other operator"; sqlglot's own use of it is given up.
_OTHER_OPERATOR = TokenType.LLRR_ARROW
#: The type of a list of constants; sqlglot's own use of it, which PostgreSQL does not know, is given up.
_CONSTANTS = TokenType.RAW_STRING
#: What is an expression if it stands alone, and what it does so before.
_ALONE = frozenset((TokenType.NUMBER, TokenType.STRING, TokenType.NULL, TokenType.PLACEHOLDER))
_BEHIND_ALONE = frozenset((TokenType.COMMA, TokenType.R_PAREN))
#: Operators with a place of their own in the grammar.
_ORDINARY = frozenset(("+", "-", "*", "/", "%", "^", "<", ">", "=", "<=", ">=", "<>", "!=", "||"))
_OPERATOR_CHARACTERS = frozenset("+-*/<>=~!@#%^&|`?")
#: The predicates that have a NOT of their own.
_NEGATED_INSIDE = (exp.Like, exp.ILike, exp.SimilarTo, exp.Between, exp.In)


class _Parser(MaterializeParser):
    """The parser of sqlglot without function builders, lambdas and intervals, and with positions."""

    FUNCTIONS: ClassVar[dict[str, Any]] = {}
    FUNCTION_PARSERS = {
        name: MaterializeParser.FUNCTION_PARSERS[name]
        for name in ("CAST", "EXTRACT", "POSITION", "SUBSTRING", "TRIM", "OVERLAY")
        if name in MaterializeParser.FUNCTION_PARSERS
    }
    NO_PAREN_FUNCTION_PARSERS = {
        name: MaterializeParser.NO_PAREN_FUNCTION_PARSERS[name]
        for name in ("ANY", "CASE", "VARIADIC")
        if name in MaterializeParser.NO_PAREN_FUNCTION_PARSERS
    }
    LAMBDAS: ClassVar[dict[TokenType, Any]] = {}
    # To look for a lambda that is none, an argument would be parsed twice, and so each of its own: 2^depth times.
    TYPED_LAMBDA_ARGS = False
    # To sqlglot a + in front is nothing; but not everything may stand behind one.
    UNARY_PARSERS: ClassVar[dict[TokenType, Any]] = {
        **MaterializeParser.UNARY_PARSERS,
        TokenType.PLUS: lambda self: exp.Operator(operator="+", expression=self._parse_unary()),
    }
    FACTOR = {key: value for key, value in MaterializeParser.FACTOR.items() if key is not _OTHER_OPERATOR}
    TYPE_LITERAL_PARSERS: ClassVar[dict[Any, Any]] = {}
    OPTIONAL_ALIAS_TOKEN_CTE = False
    ARRAY_CONSTRUCTORS: ClassVar[dict[str, Any]] = {"ARRAY": exp.Array}

    def _parse_bracket(self, this: Any = None) -> Any:
        """Parses subscripts; to sqlglot whatever is called array makes one, a column of that name and ARRAY() too."""
        is_subscript = self._curr is not None and self._curr.token_type is TokenType.L_BRACKET
        if is_subscript and isinstance(this, exp.Expr) and this.name.upper() in self.ARRAY_CONSTRUCTORS:
            if isinstance(this, exp.Anonymous | exp.Array | exp.Literal):
                self.raise_error("a call has no subscripts")
            is_word = self._prev.token_type is TokenType.ARRAY and this.args.get("table") is None
            this = this if is_word else exp.Paren(this=this)
        return super()._parse_bracket(this)

    def _parse_interval(self, *args: Any, **kwargs: Any) -> Any:
        if self._curr.token_type is TokenType.INTERVAL and self._next.token_type is TokenType.STRING:
            return _with_span(self, self._parse_interval_literal)
        return None

    def _parse_substring(self) -> Any:
        """Parses also `substring(text SIMILAR pattern ESCAPE character)`."""
        arguments = self._parse_csv(self._parse_bitwise)
        places: dict[str, Any] = {}
        if len(arguments) == 1 and self._match_text_seq("SIMILAR"):
            places["FROM"] = self._parse_bitwise()
            if not self._match_text_seq("ESCAPE"):
                self.raise_error("expected ESCAPE")
            places["FOR"] = self._parse_bitwise()
        while word := next((one for one in ("FROM", "FOR") if self._match_text_seq(one)), None):
            places[word] = self._parse_bitwise()
        if "FOR" in places:
            places.setdefault("FROM", exp.Literal.number(1))
        arguments += [places[one] for one in ("FROM", "FOR") if one in places]
        return self.validate_expression(exp.Substring.from_arg_list(arguments), arguments)

    def _parse_interval_literal(self) -> Any:
        """Returns `INTERVAL 'text' [fields]` with the text whole; what the fields are is in its `meta`."""
        self._advance()
        node = exp.Interval(this=self._parse_primary())
        fields = self._parse_interval_field()
        if fields and self._match_text_seq("TO"):
            fields = f"{fields} to {self._parse_interval_field()}"
        node.meta["fields"] = fields
        return node

    def _parse_types(self, *args: Any, **kwargs: Any) -> Any:
        """Parses a type, the digits of an interval's seconds included."""
        found = super()._parse_types(*args, **kwargs)
        last = "" if self._prev is None else str(self._prev.text)
        is_interval = isinstance(found, exp.DataType) and isinstance(found.this, exp.Interval)
        if is_interval and last.lower() == "second" and self._match(TokenType.L_PAREN):
            self._parse_number()
            self._match_r_paren()
        return found

    def _parse_interval_field(self) -> str:
        """Returns the name of a field, and behind that of seconds their digits in parentheses, or nothing."""
        for unit in INTERVAL_FIELDS:
            if self._match_text_seq(unit.upper()):
                if unit == "second" and self._match(TokenType.L_PAREN):
                    digits = self._parse_number()
                    self._match_r_paren()
                    return f"{unit}({digits.name if digits else ''})"
                return unit
        return ""

    def _negate_range(self, this: Any = None) -> Any:
        """Returns a predicate with NOT behind its left operand, where `x NOT NULL` is none."""
        predicate = this.this if isinstance(this, exp.Escape) else this
        if not isinstance(predicate, _NEGATED_INSIDE):
            found = next(one for one in reversed(self._tokens[: self._index]) if one.token_type is TokenType.NOT)
            raise _Misplaced(found, "NOT stands before LIKE, ILIKE, SIMILAR TO, BETWEEN and IN; write IS NOT NULL.")
        return super()._negate_range(this)

    # A grouping set is any expression; sqlglot's own stop at predicates (IS NULL, LIKE).
    def _parse_ordered(self, *args: Any, **kwargs: Any) -> Any:
        """Parses a key of an order, whose direction an operator may tell: `x USING >`."""
        ordered = super()._parse_ordered(*args, **kwargs)
        if not isinstance(ordered, exp.Ordered) or not self._match(TokenType.USING):
            return ordered
        descending = bool(self._match(TokenType.GT))
        if not (descending or self._match(TokenType.LT)):
            self.raise_error("an order goes by < or >")
        ordered.set("desc", descending)
        ordered.set("nulls_first", descending)
        for word, first in (("FIRST", True), ("LAST", False)):
            if self._match_text_seq("NULLS", word):
                ordered.set("nulls_first", first)
        return ordered

    def _parse_grouping_set(self) -> Any:
        return self._parse_grouping_sets() or self._parse_cube_or_rollup() or self._parse_disjunction()

    def _parse_cube_or_rollup(self, with_prefix: bool = False) -> Any:
        kind = {TokenType.CUBE: exp.Cube, TokenType.ROLLUP: exp.Rollup}.get(self._curr.token_type)
        if kind is None:
            return None
        self._advance()
        return self.expression(
            kind(expressions=[] if with_prefix else self._parse_wrapped_csv(self._parse_disjunction))
        )

    def _parse_join(self, *args: Any, **kwargs: Any) -> Any:
        """Returns a join, whose `alias` is the name of the columns of USING."""
        join = super()._parse_join(*args, **kwargs)
        if join is not None and join.args.get("using") and self._match(TokenType.ALIAS):
            join.set("alias", self._parse_id_var())
        return join

    # sqlglot takes WITH for the first query's own, merges the names of nested ones, and knows none for VALUES.
    def _parse_select_query(self, *args: Any, **kwargs: Any) -> Any:
        first = self._curr
        clause = self._parse_with()
        if clause is None:
            return super()._parse_select_query(*args, **kwargs)
        query: Any = None if self._curr.token_type is TokenType.WITH else self._parse_statement()
        if not isinstance(query, exp.Query | exp.Values):
            self.raise_error("WITH stands before a query")
        inner = query.unnest() if isinstance(query, exp.Subquery) else query
        if inner.args.get("with_") is not None:
            start, _ = inner.meta["span"]
            token = next(one for one in self._tokens if one.start == start)
            raise _Misplaced(token, "A query has one WITH clause, also through parentheses.")
        query.set("with_", clause)
        query.meta["span"] = (first.start, self._prev.end + 1)
        return query

    def _parse_with(self, skip_with_token: bool = False) -> Any:
        if not self._match(TokenType.WITH):
            return None
        recursive = self._match(TokenType.RECURSIVE)
        queries = self._parse_csv(self._parse_cte)
        return self.expression(exp.With(expressions=queries, recursive=recursive or None))

    def _parse_cte(self) -> Any:
        query = super()._parse_cte()
        if query is None:  # without AS: what stands behind the name and its columns is to blame
            alias: Any = self._parse_table_alias(self.ID_VAR_TOKENS)
            if not alias.args.get("columns"):
                self._match(TokenType.L_PAREN)
            self.raise_error("WITH needs AS")
        return query

    def _parse_select_or_expression(self, *args: Any, **kwargs: Any) -> Any:
        """Parses an operand that may be a query; ORDER BY and the like behind VALUES are its own, not of a call."""
        if self._curr.token_type is TokenType.VALUES and self._next.token_type in (TokenType.L_PAREN, _CONSTANTS):
            return self._parse_whole_query()
        return super()._parse_select_or_expression(*args, **kwargs)

    def _parse_derived_table_values(self, *args: Any, **kwargs: Any) -> Any:
        """Parses VALUES; as a derived table it may have behind it what any query has."""
        if self._curr.token_type is not TokenType.L_PAREN or self._next.token_type is not TokenType.VALUES:
            return super()._parse_derived_table_values(*args, **kwargs)
        self._advance()
        query = self._parse_whole_query()
        self._match_r_paren()
        alias = self._parse_table_alias()
        if not isinstance(query, exp.Values) or any(query.args.get(one) for one in ("order", "limit", "offset")):
            return self.expression(exp.Subquery(this=query, alias=alias))
        query.set("alias", alias)
        return query

    def _parse_whole_query(self) -> Any:
        return self._parse_query_modifiers(self._parse_set_operations(self._parse_select()))

    # A VALUES list stays one where a query may stand, too.
    def _values_to_select(self, values: exp.Values) -> Any:
        return values

    def _warn_unsupported(self) -> None:
        self.raise_error("not a query")

    def _parse_expression(self) -> Any:
        """Parses an expression; what stands alone, as in a long list, without a call for each precedence."""
        if self._curr.token_type in _ALONE and self._next.token_type in _BEHIND_ALONE:
            return self._parse_placeholder() or self._parse_primary()
        return super()._parse_expression()

    def _parse_unary(self) -> Any:
        return _with_span(self, self._parse_prefixed)

    def _parse_prefixed(self) -> Any:
        if not self._match(_OTHER_OPERATOR):
            return super()._parse_unary()
        # Not by self.expression(), which wants a left operand.
        return exp.Operator(operator=self._prev.text, expression=self._parse_term())

    def _parse_bitwise(self) -> Any:
        """Parses operators between + and comparisons, all of one precedence: `a || b -> c` is `(a || b) -> c`."""
        return _with_span(self, self._parse_operators)

    def _parse_operators(self) -> Any:
        left = self._parse_term()
        while self._match_set((_OTHER_OPERATOR, TokenType.DPIPE)):
            symbol, right = self._prev.text, self._parse_term()
            operation = (
                exp.DPipe(this=left, expression=right)
                if symbol == "||"
                else exp.Operator(this=left, operator=symbol, expression=right)
            )
            left = self.expression(operation)
        return left


class _Misplaced(Exception):
    """A token that sqlglot takes where PostgreSQL has no place for it."""

    def __init__(self, token: TheirToken, hint: str) -> None:
        super().__init__(hint)
        self.token, self.hint = token, hint


def _with_span(parser: Any, parse: Any, *args: Any, **kwargs: Any) -> Any:
    before = parser._index
    first = parser._curr
    node = parse(*args, **kwargs)
    if isinstance(node, exp.Expr) and first and parser._index > before and "span" not in node.meta:
        node.meta["span"] = (first.start, parser._prev.end + 1)
    return node


def _spanned(name: str) -> Any:
    original = getattr(_Parser, name)

    # A dozen of these are nested in each operand: it looks around as little as it can.
    def parse(self: Any, *args: Any, **kwargs: Any) -> Any:
        before, first = self._index, self._curr
        node = original(self, *args, **kwargs)
        if self._index > before and isinstance(node, exp.Expr) and first and "span" not in node.meta:
            # A left operand that is handed in stands before the current token: the span would lie.
            if any(isinstance(one, exp.Expr) for one in (*args, *kwargs.values())):
                return node
            node.meta["span"] = (first.start, self._prev.end + 1)
        return node

    return parse


for _name in _SPANNED:
    if hasattr(_Parser, _name):
        setattr(_Parser, _name, _spanned(_name))

_DIALECT = Materialize()
# Subscripts stay as they are written.
_DIALECT.INDEX_OFFSET = 0


@dataclass(frozen=True, slots=True)
class Body:
    """A parsed query or expression.

    Attributes:
        root: The syntax tree.
        text: What was parsed.
        tokens: Our own tokens of the text.
        hints: The group size hints that were cut out of it.
    """

    root: exp.Expr
    text: SqlText
    tokens: tuple[Token, ...]
    hints: tuple[Hint, ...] = ()
    _spans: dict[int, tuple[exp.Expr, tuple[int, int] | None]] = field(default_factory=dict, compare=False, repr=False)
    _parameters: list[int] = field(default_factory=list, compare=False, repr=False)  # where they begin

    def span(self, node: exp.Expr) -> tuple[int, int] | None:
        """Returns the node's first offset and the one behind its last, within `text`; None if unknown."""
        known = self._spans.get(id(node))
        if known is None:
            self._find_spans(node)
            known = self._spans[id(node)]
        around = known[1]
        return around and node.meta.get("span", around)

    def _find_spans(self, node: exp.Expr) -> None:
        """Notes, of a node and all below it, what their own spans cover together: each is looked at once."""
        pending = [node]
        found: list[exp.Expr] = []
        while pending:
            one = pending.pop()
            if id(one) not in self._spans:
                found.append(one)
                pending += one.iter_expressions()
        for one in reversed(found):
            spans = [span for child in one.iter_expressions() if (span := self._spans[id(child)][1]) is not None]
            if (at := _own_span(one)) is not None:
                spans.append(at)
            around = (min(start for start, _ in spans), max(end for _, end in spans)) if spans else None
            self._spans[id(one)] = one, around  # with the node, whose id is then no other's

    def position(self, node: exp.Expr) -> int:
        """Returns the 1-based position of the node's first character in the whole text."""
        found: exp.Expr | None = node
        while found is not None:
            span = self.span(found)
            if span is not None:
                return self.text.offset + span[0] + 1
            found = found.parent
        return self.text.offset + 1

    def operator_position(self, node: exp.Expr) -> int:
        """Returns the position of the operator between the operands of `node`, as PostgreSQL's errors have it."""
        left, right = node.args.get("this"), node.args.get("expression")
        if isinstance(left, exp.Expr) and isinstance(right, exp.Expr):
            before, behind = self.span(left), self.span(right)
            if before and behind:
                for token in self.tokens[self._token_at(before[1]) :]:
                    if token.start >= behind[0]:
                        break
                    if not token.is_symbol(")"):
                        return self.text.offset + token.start + 1
        return self.position(node)

    def tokens_from(self, offset: int, count: int) -> tuple[Token, ...]:
        """Returns the first tokens that begin at an offset or behind it."""
        at = self._token_at(offset)
        return self.tokens[at : at + count]

    def _token_at(self, offset: int) -> int:
        """Returns which token is the first that begins at an offset or behind it."""
        return bisect_left(self.tokens, offset, key=attrgetter("start"))

    def check_name(self, node: exp.Expr, *, alias: bool = False, label: bool = False) -> None:
        """Raises unless `node` is a word that may name something here: sqlglot lets reserved words and literals pass.

        Args:
            node: An identifier.
            alias: Whether it names a relation or, without AS, a column: the words of joins are then excluded too.
            label: Whether it is the name of an output column, which may be any word behind AS.
        """
        span = self.span(node)
        if span is None:
            return
        number = self._token_at(span[0])
        for token in self.tokens[number : number + 1]:
            before = self.tokens[number - 1] if number else None
            if token.start != span[0]:
                continue
            if label and before is not None and before.is_word("as") and token.kind is TokenKind.WORD:
                return
            reserved = token.kind is TokenKind.WORD and (
                token.value in RESERVED or ((alias or label) and token.value in _JOIN_WORDS)
            )
            if reserved or token.kind not in (TokenKind.WORD, TokenKind.QUOTED):
                raise _syntax_error(self.text, self.text.text, self.tokens, token.start)

    def follows_directly(self, node: exp.Expr, word: str) -> bool:
        """Returns whether the token right before `node` is `word`."""
        span = self.span(node)
        number = 0 if span is None else self._token_at(span[0])
        return number > 0 and self.tokens[number - 1].is_word(word)

    def group_sizes(self, select: exp.Select) -> GroupSizes:
        """Returns the group size hints of `select`."""
        first = self._first_item(select)
        for hint in self.hints:
            # Of all SELECTs, the hint's own is the one whose items begin next behind the word.
            later = [at for one in self.root.find_all(exp.Select) if (at := self._first_item(one)) > hint.select]
            if later and first == min(later):
                return hint.sizes
        return GroupSizes()

    def _first_item(self, select: exp.Select) -> int:
        spans = [self.span(one) for one in (select.args.get("distinct"), *select.expressions) if one is not None]
        return min((span[0] for span in spans if span is not None), default=-1)

    def source(self, node: exp.Expr) -> str:
        """Returns the node's text as written."""
        span = self.span(node)
        return self.text.text[span[0] : span[1]] if span else ""

    def parameter(self, node: exp.Expr) -> int:
        """Returns the 0-based number of the `?` that `node` is, in its statement."""
        span = self.span(node)
        assert span is not None
        if not self._parameters:
            self._parameters.extend(token.start for token in self.tokens if token.kind is TokenKind.PARAMETER)
        return self.text.parameters_before + bisect_left(self._parameters, span[0])

    def keyword_position(self, word: str, node: exp.Expr) -> int:
        """Returns the position of the first `word` within `node` or behind it; else the node's."""
        span = self.span(node)
        if span is not None:
            for token in self.tokens[self._token_at(span[0]) :]:
                if token.is_word(word):
                    return self.text.offset + token.start + 1
        return self.position(node)


def parse_body(text: SqlText) -> Body:
    """Returns the tree of a query.

    Raises:
        InvalidSyntax: It is not one.
    """
    body = _parse(text, text.text)
    if not isinstance(body.root, exp.Query | exp.Values | exp.Table):
        raise InvalidSyntax("syntax error: this is not a query", position=text.offset + 1)
    return body


def parse_scalar(text: SqlText) -> Body:
    """Returns the tree of a scalar expression."""
    prefix = "SELECT "
    body = _parse(SqlText(text.text, text.offset - len(prefix), text.parameters_before), prefix + text.text)
    root = body.root
    if not isinstance(root, exp.Select) or len(root.expressions) != 1:
        raise InvalidSyntax("syntax error: this is not one expression", position=text.offset + 1)
    expression = root.expressions[0]
    extra = {name: value for name, value in root.args.items() if value and name != "expressions"}
    if extra or isinstance(expression, exp.Alias | exp.Star):
        raise InvalidSyntax("syntax error: this is not one expression", position=text.offset + 1)
    return replace(body, root=expression)


def _parse(text: SqlText, sql: str) -> Body:
    sql = _with_plain_literals(sql)
    sql, hints = cut_hints(sql, tokens_of(sql), text.offset)
    tokens = tokens_of(sql)
    try:
        theirs = _DIALECT.tokenize(_with_short_constants(sql, tokens))
    except TokenError:
        raise InvalidSyntax("syntax error: the text cannot be split into tokens", position=text.offset + 1) from None
    _check_tokens(text, sql, tokens, theirs)
    _check_lists(text, sql, tokens)
    _check_recursion(text, tokens)
    parser = _Parser(dialect=_DIALECT, error_level=ErrorLevel.IMMEDIATE)
    allow_deep_calls()
    try:
        trees = parser.parse(_with_operators(tokens, theirs), sql)
    except _Misplaced as found:
        raise _syntax_error(text, sql, tokens, found.token.start, found.hint) from None
    except ParseError:
        current = parser._curr
        raise _syntax_error(text, sql, tokens, current.start if current else None) from None
    except Error:
        raise
    except RecursionError:
        raise StatementTooComplex(
            "the query is nested too deeply", hint="Split it into views or CTEs.", position=text.offset + 1
        ) from None
    except (AttributeError, AssertionError, TypeError, ValueError, IndexError, KeyError):
        raise _syntax_error(text, sql, tokens, parser._curr.start if parser._curr else None) from None
    if len(trees) != 1 or trees[0] is None:
        raise InvalidSyntax("syntax error: a single query is expected", position=text.offset + 1)
    tree = trees[0]
    for node in tree.walk():
        if isinstance(node, exp.Command):
            raise InvalidSyntax("syntax error: this is not a query", position=text.offset + 1)
    return Body(tree, SqlText(sql, text.offset, text.parameters_before), tokens, hints)


def _is_cut_short(token: Token) -> bool:
    """Returns whether sqlglot's lexer does not see a token: a list of constants, or a number with an exponent.

    In `1e4+1` it takes the sign for one of the exponent's.
    """
    return token.kind is TokenKind.CONSTANTS or (token.kind is TokenKind.NUMBER and "e" in token.value.lower())


def _with_short_constants(sql: str, tokens: tuple[Token, ...]) -> str:
    """Returns the text with a digit in the place of each constant that `_is_cut_short`; nothing else moves."""
    pieces: list[str] = []
    at = 0
    for token in tokens:
        if _is_cut_short(token):
            pieces += [sql[at : token.start], "0".ljust(token.end - token.start)]
            at = token.end
    return "".join([*pieces, sql[at:]])


def _with_plain_literals(sql: str) -> str:
    """Returns the text with literals and names of other forms, such as `E'...'`, as plain ones; nothing else moves."""
    pieces: list[str] = []
    at = 0
    for token in tokens_of(sql):
        if token.kind in (TokenKind.STRING, TokenKind.QUOTED) and sql[token.start] not in "'\"":
            quote = "'" if token.kind is TokenKind.STRING else '"'
            plain = quote + token.value.replace(quote, quote * 2) + quote
            room = token.end - token.start
            if len(plain) <= room:
                pieces += [sql[at : token.start], plain.ljust(room)]
                at = token.end
    return "".join([*pieces, sql[at:]])


def _syntax_error(
    text: SqlText, sql: str, tokens: tuple[Token, ...], offset: int | None, hint: str | None = None
) -> InvalidSyntax:
    for token in tokens:
        if offset is not None and token.start == offset and token.kind is not TokenKind.END:
            near = sql[token.start : token.end]
            return InvalidSyntax(f'syntax error at or near "{near}"', hint=hint, position=text.offset + offset + 1)
    return InvalidSyntax("syntax error at end of input", position=text.offset + len(sql) + 1)


def _check_tokens(text: SqlText, sql: str, ours: tuple[Token, ...], theirs: Iterable[Any]) -> None:
    """Refuses text in which sqlglot sees other literals or quoted names than PostgreSQL's lexer does."""
    seen = {token.start: token for token in theirs}
    for token in ours:
        if token.kind in (TokenKind.STRING, TokenKind.QUOTED):
            other = seen.get(token.start)
            if other is None or other.text != token.value:
                raise UnsupportedForm(
                    f"the literal {sql[token.start : token.end]} is not supported",
                    detail="It cannot be read beyond doubt.",
                    hint="Write it with plain single quotes.",
                    position=text.offset + token.start + 1,
                )
        elif token.kind is TokenKind.PARAMETER and token.value != "?":
            raise UnsupportedForm(
                f"the parameter {token.value} is not supported",
                hint="Parameters are written as ?.",
                position=text.offset + token.start + 1,
            )


def _check_recursion(text: SqlText, tokens: Sequence[Token]) -> None:
    """Refuses `WITH MUTUALLY RECURSIVE`, of which the parser has no form."""
    for first, second, third in zip(tokens, tokens[1:], tokens[2:], strict=False):
        if first.is_word("with") and second.is_word("mutually") and third.is_word("recursive"):
            raise UnsupportedForm(
                "WITH MUTUALLY RECURSIVE is not supported",
                detail=RECURSION_REASON,
                hint=RECURSION_HINT,
                position=text.offset + second.start + 1,
            )


def _with_operators(ours: tuple[Token, ...], theirs: list[TheirToken]) -> list[TheirToken]:
    """Returns sqlglot's tokens with every operator that has no place of its own in the grammar as one token.

    So are what was cut short, of which lists become a node that only `IN` knows (`sql/constant_lists.py`).
    """
    operators = {
        token.start: (_OTHER_OPERATOR, token)
        for token in ours
        if token.kind is TokenKind.SYMBOL and token.value not in _ORDINARY and set(token.value) <= _OPERATOR_CHARACTERS
    }
    constants = {
        token.start: (_CONSTANTS if token.kind is TokenKind.CONSTANTS else TokenType.NUMBER, token)
        for token in ours
        if _is_cut_short(token)
    }
    # To sqlglot not every reserved word may name an output column.
    single = operators | constants | {token.start: (TokenType.VAR, token) for token in _labels(ours)}
    found: list[TheirToken] = []
    behind = -1
    for token in theirs:
        if token.start in single:
            kind, own = single[token.start]
            found.append(TheirToken(kind, own.value, token.line, token.col, own.start, own.end - 1))
            behind = own.end
        elif token.token_type is TokenType.QDCOLON:  # a parameter that is cast
            for kind, start, end in ((TokenType.PLACEHOLDER, 0, 1), (TokenType.DCOLON, 1, 3)):
                place = token.start + start, token.start + end - 1
                found.append(TheirToken(kind, token.text[start:end], token.line, token.col, *place))
        elif token.start >= behind:
            found.append(token)
    return found


def _labels(tokens: tuple[Token, ...]) -> list[Token]:
    """Returns the reserved words that name output columns, behind AS."""
    return [
        token
        for before, token, behind in zip(tokens, tokens[1:], tokens[2:], strict=False)
        if before.is_word("as")
        and token.is_word(*RESERVED)
        and not (behind.is_symbol("(") or behind.is_word("materialized"))
    ]


def _check_lists(text: SqlText, sql: str, tokens: tuple[Token, ...]) -> None:
    """Refuses what sqlglot lets pass although it is no SQL: commas without an item, `IN ()`, `:name`."""
    brackets = 0
    labels = {token.start for token in _labels(tokens)}
    for before, token, behind in zip(tokens, tokens[1:], (*tokens[2:], tokens[-1]), strict=False):
        brackets += before.is_symbol("[") - before.is_symbol("]")
        if (before.is_symbol("(") and token.is_symbol(",")) or (before.is_word("select") and token.is_word("as")):
            raise _syntax_error(text, sql, tokens, token.start)
        is_limit = before.is_word("limit") and before.start not in labels
        if is_limit and token.is_symbol(","):
            raise _syntax_error(text, sql, tokens, token.start)
        if before.is_word("as") and (token.kind is TokenKind.END or token.is_symbol(",", ")")):
            raise _syntax_error(text, sql, tokens, None if token.kind is TokenKind.END else token.start)
        if before.is_word("distinct") and token.is_word("on") and not behind.is_symbol("("):
            raise _syntax_error(text, sql, tokens, None if behind.kind is TokenKind.END else behind.start)
        if token.kind is TokenKind.NUMBER and (before.is_symbol(".") or before.kind is TokenKind.NUMBER):
            raise _syntax_error(text, sql, tokens, token.start)
        dangling = before.is_symbol(",") and (
            token.kind is TokenKind.END or token.is_symbol(",", ")") or token.is_word(*_CLAUSE_WORDS)
        )
        empty = before.is_word("in") and token.is_symbol("(") and behind.is_symbol(")")
        # What follows LIMIT 1 must not be a second number.
        paired = is_limit and behind.is_symbol(",")
        if dangling or before.is_symbol("{") or (before.is_symbol(":") and not brackets):
            blamed = token if dangling else before
            raise _syntax_error(text, sql, tokens, None if blamed.kind is TokenKind.END else blamed.start)
        if empty or paired:
            raise _syntax_error(text, sql, tokens, behind.start)


_JOIN_WORDS = frozenset(
    ("left", "right", "full", "inner", "outer", "cross", "natural", "join", "is", "isnull", "notnull", "like", "ilike",
     "similar", "overlaps", "between", "over", "filter", "tablesample")
)  # fmt: skip
_CLAUSE_WORDS = (
    "from", "where", "group", "having", "order", "limit", "offset", "fetch", "union", "intersect", "except", "window",
    "as", "on", "using", "join", "and", "or", "when", "then", "else", "end",
)  # fmt: skip


def _own_span(node: exp.Expr) -> tuple[int, int] | None:
    meta = node._meta or {}
    if "span" in meta:
        span: tuple[int, int] = meta["span"]
        return span
    if "start" in meta and "end" in meta:
        return meta["start"], meta["end"] + 1
    return None
