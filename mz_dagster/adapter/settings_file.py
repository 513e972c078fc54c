"""The settings that `mz.toml` may have: their keys, what each allows, and what holds where the file says nothing.

Unknown settings are refused, so that a typing error never silently means the default. Paths are relative to the
project's root, never to a process's working directory. In a text, `${NAME}` stands for a variable of the environment
(`$${NAME}` for itself), so that secrets need not stand in the file; those of an object store stay references. An error
names file, key and what is allowed, and repeats no value that could be secret.

It is loaded where a project is opened, not before: pydantic takes 0.04 s.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainValidator,
    TypeAdapter,
    ValidationError,
    ValidationInfo,
    create_model,
    model_validator,
)
from pydantic_core import PydanticCustomError

from mz_dagster.adapter.setting_values import DURATION_UNITS_MS, BadSettings, parse_duration_ms
from mz_dagster.catalog.url import BadCatalogUrl, CatalogUrl
from mz_dagster.disk import path_of
from mz_dagster.storage.append import LEASE_MS
from mz_dagster.storage.object_store import OBJECT_STORES, ObjectStore, Secret, Web
from mz_dagster.storage.spark.config import IDLE_SECONDS, PLAN_BYTES, START_SECONDS

_VARIABLE = re.compile(r"(\$?)\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_OBJECT = r"(s3|gs|az)://[A-Za-z0-9][A-Za-z0-9._-]*(/[A-Za-z0-9._=-]+)+"
_BUCKET = r"(s3|gs|az)://[A-Za-z0-9][A-Za-z0-9._-]*(/[A-Za-z0-9._=-]+)*/?"
_REFERENCE = r"\$\{[A-Za-z_][A-Za-z0-9_]*\}|file:.+"
_URL = r"https?://[^/@\s]+(/[^@\s]*)?"

#: What pydantic's errors ask for, by its names of them.
_ALLOWED = {
    "bool_type": "true or false",
    "dict_type": "a table",
    "greater_than_equal": "a whole number, not negative",
    "int_type": "a whole number, not negative",
    "list_type": "a list of texts",
    "model_type": "a table",
    "string_too_short": "a text",
    "string_type": "a text",
}


def read_settings(values: Mapping[str, Any], root: Path, path: Path) -> dict[str, Any]:
    """Returns the attributes of `Project` that the values of its file say, with paths relative to `root`.

    Raises:
        BadSettings: One of them is unknown, or not allowed.
    """
    try:
        settings = _Settings.model_validate(values, context=root)
        given: dict[str, Any] = {}
        for key, table in settings:
            given |= dict(table) if isinstance(table, _Attributes) else {key: table}
        return {**given, "timelines": {given["timeline"]: TimelineSettings(), **given["timelines"]}}
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
    key = ".".join(map(str, first["loc"]))
    said = {"message": f"{{at}} must be {_ALLOWED.get(first['type'], first['msg'])}", **first.get("ctx", {})}
    at = f'setting "{key}" in "{path}"'
    places = {"{at}": at, "{key}": key, "{in}": f"{key}." if key else "", "{path}": str(path)}
    for place, name in places.items():
        said |= {part: text.replace(place, name) for part, text in said.items() if isinstance(text, str)}
    hint = said.get("hint", "All settings are in docs/project.md.")
    raise BadSettings(said["message"], detail=said.get("detail"), hint=hint)


def _refused(message: str, **more: str | None) -> PydanticCustomError:
    """Returns an error in which `{at}` is key and file of the setting, `{in}` what begins the keys of a table."""
    return PydanticCustomError("refused", "refused", {"message": message, **more})


def _expanded(value: Any) -> Any:
    """Returns a text with variables of the environment in the place of their names."""
    return _VARIABLE.sub(_variable, value) if isinstance(value, str) else value


def _variable(found: re.Match[str]) -> str:
    escaped, name = found.groups()
    if escaped:
        return found[0][1:]
    if name not in os.environ:
        raise _refused(
            f'the environment has no variable "{name}", which {{at}} names',
            hint="Set it where this process is started; write $${...} for the text itself.",
        )
    return os.environ[name]


Text = Annotated[str, Field(min_length=1), BeforeValidator(_expanded)]
Count = Annotated[int, Field(ge=0)]
_TEXT: TypeAdapter[str] = TypeAdapter(Text)


def _duration(value: Any) -> int:
    found = parse_duration_ms(_expanded(value)) if isinstance(value, str) else None
    if found is None:
        raise _refused(f"{{at}} must be a duration such as '7 d'; the units are {', '.join(DURATION_UNITS_MS)}")
    return found


def _unless(forever: str) -> BeforeValidator:
    """Returns what reads a duration, or None of the word that says that it never ends."""
    return BeforeValidator(lambda value: None if _expanded(value) == forever else _duration(value))


def _below_root(value: Any, info: ValidationInfo[Path]) -> Path:
    text = _TEXT.validate_python(value)
    return info.context / path_of(text)


def _usual_workers() -> int:
    """Returns one for each further processor that this process may use, up to three."""
    return min(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1, 4) - 1


def _catalog_url(value: Any, info: ValidationInfo[Path]) -> CatalogUrl:
    try:
        return CatalogUrl.parse(_TEXT.validate_python(value), info.context)
    except BadCatalogUrl as error:
        raise _refused(f"{{at}}: {error.message}", detail=error.detail, hint=error.hint) from None


def _conf(value: Any) -> dict[str, str]:
    if not isinstance(value, dict) or not all(isinstance(one, str | int | float) for one in value.values()):
        raise _refused('{at} must be a table of settings, with quoted names: "spark.driver.memory" = "4g"')
    return {key: str(one).lower() if isinstance(one, bool) else str(_expanded(one)) for key, one in value.items()}


def _of_form(form: str, message: str, hint: str) -> AfterValidator:
    """Returns what refuses a text of another form, without repeating it."""

    def check(text: str) -> str:
        if re.fullmatch(form, text) is None:
            raise _refused(f"{{at}} {message}", hint=hint)
        return text

    return AfterValidator(check)


def _between(least_ms: int, most_ms: float, detail: str, hint: str) -> AfterValidator:
    """Returns what refuses durations that are too short or too long."""

    def check(duration_ms: int | None) -> int | None:
        if duration_ms is not None and not least_ms <= duration_ms <= most_ms:
            raise _refused(f'setting "{{key}}" is {duration_ms} ms in "{{path}}"', detail=detail, hint=hint)
        return duration_ms

    return AfterValidator(check)


def _enough(memory: int | None) -> int | None:
    if memory is not None and memory < 1 << 29:
        raise _refused(
            f'setting "{{key}}" is {memory} in "{{path}}"',
            detail="A process takes some 300 MB before it has read anything.",
            hint="Use a number of bytes, 536870912 or more, or leave it out.",
        )
    return memory


Duration = Annotated[int, BeforeValidator(_duration)]
DurationOrAll = Annotated[int | None, _unless("all")]
DurationOrNever = Annotated[int | None, _unless("never")]
Below = Annotated[Path, BeforeValidator(_below_root)]
_WRITE_URI = "Write s3://bucket/prefix, gs://bucket/prefix or az://container/prefix."
_PREFIX = _of_form(_BUCKET, "must name a prefix in a bucket", _WRITE_URI)
BucketUri = Annotated[Text, _PREFIX, AfterValidator(lambda uri: uri.rstrip("/"))]
_WHERE_SECRET = 'Write "${VARIABLE}", a variable of the environment, or "file:PATH".'
Reference = Annotated[str, _of_form(_REFERENCE, "must say where the secret is", _WHERE_SECRET)]
Endpoint = Annotated[Text, _of_form(_URL, "must be a URL without a user", "Write https://host, or https://host:port.")]


class _Table(BaseModel):
    """A table of settings; what it does not know is told when what it knows is right."""

    model_config = ConfigDict(extra="allow", strict=True, frozen=True, hide_input_in_errors=True)

    @model_validator(mode="after")
    def _knows_all(self) -> Self:
        for key in self.model_extra or ():
            known = sorted(f"{{in}}{field.alias or name}" for name, field in type(self).model_fields.items())
            raise _refused(
                f'unknown setting "{{in}}{key}" in "{{path}}"',
                detail=f"Known are {', '.join(known)}.",
                hint="Remove it, or correct its name; docs/project.md lists all settings.",
            )
        return self


class _Attributes(_Table):
    """A table whose settings are attributes of `Project`, by the names of its fields."""


class TimelineSettings(_Table):
    """How a timeline tells time.

    Attributes:
        clock: A file that holds the feed's own time as epoch milliseconds, or None for the wall clock. The feed
            promises: whatever it drops after it wrote T into the file belongs to a time after T.
    """

    clock: Below | None = None


class SparkSettings(_Table):
    """Which Spark runs the steps; at most one of `remote` and `master`.

    Attributes:
        remote: A Spark Connect URL, `sc://host:port`.
        master: A classic master, `local[2]` or `spark://host:port`.
        conf: Spark's own settings, passed through.
        folder: Where the local server keeps its files; projects that name the same one share a server. None: the
            project's own.
        idle_ms: After how long without use the local server ends, in milliseconds; None: never.
        start_ms: How long to wait for a Spark to start, and for a named one to show that it is fit, in milliseconds.
        plan_operators: Nothing is created of which a step would have Spark plan more operators at once: it takes
            minutes then.
        plan_bytes: A larger plan is not sent to Spark.
    """

    remote: Text | None = Field(default=None, repr=False)
    master: Text | None = None
    conf: Annotated[Mapping[str, str], PlainValidator(_conf)] = Field(default={}, repr=False)
    folder: Below | None = None
    idle_ms: Annotated[
        DurationOrNever,
        _between(
            60_000,
            math.inf,
            "A server that ends so soon ends between two steps, and starting one takes 15 s.",
            "Use a duration from '1 min' on, or 'never'; the default is '15 min'.",
        ),
    ] = Field(default=round(IDLE_SECONDS * 1000), alias="idle")
    start_ms: Duration = Field(default=round(START_SECONDS * 1000), alias="start")
    plan_operators: Count = 10_000
    plan_bytes: Count = PLAN_BYTES

    @model_validator(mode="after")
    def _one_spark(self) -> Self:
        if self.remote is not None and self.master is not None:
            raise _refused(
                'settings spark.remote and spark.master exclude each other in "{path}"',
                hint="Keep one of them; without either a local Spark Connect server is started on demand.",
            )
        if (self.remote or self.master) is not None and self.folder is not None:
            other = "remote" if self.remote else "master"
            raise _refused(
                f'settings spark.folder and spark.{other} exclude each other in "{{path}}"',
                hint="The folder is that of a local Spark Connect server, which is started where neither is set.",
            )
        return self


class _Storage(_Table):
    """The table `storage` where it names no bucket, which is all that it may do then."""

    uri: BucketUri | None = None


class BucketSettings(_Storage):
    """In which bucket the shards are; what the options of its store are is a subclass's.

    Attributes:
        uri: `s3://bucket/prefix`, or `gs`, or `az` with a container.
        copies_bytes: How many bytes of copies of its files are kept that nobody uses.
    """

    uri: BucketUri
    copies_bytes: Count = 10_000_000_000

    @property
    def store(self) -> ObjectStore:
        """What leads there; its secrets are references."""
        kind = OBJECT_STORES[type(self).__name__]
        options: list[tuple[str, str | Secret]] = []
        for option in kind.names:
            value = getattr(self, key := option.replace(" ", "_"))
            if value is not None:
                options.append((option, Secret(f"storage.{key}", value) if option in kind.secrets else value))
        return kind("storage", tuple(options))


def _bucket(values: Any) -> BucketSettings | None:
    uri = _expanded(values.get("uri")) if isinstance(values, dict) else None
    scheme = uri.partition("://")[0] if isinstance(uri, str) else ""
    stores = {scheme: name for name, kind in OBJECT_STORES.items() if kind is not Web for scheme in kind.schemes}
    if scheme not in stores:
        _Storage.model_validate(values)
        return None
    kind = OBJECT_STORES[stores[scheme]]
    types = {option: Endpoint if option == "endpoint" else Text for option in kind.names}
    types |= dict.fromkeys(kind.secrets, Reference)
    options: dict[str, Any] = {option.replace(" ", "_"): (one | None, None) for option, one in types.items()}
    return create_model(stores[scheme], __base__=BucketSettings, **options).model_validate(values)


class _Project(_Attributes):
    name: Text | None = None
    timeline: Text = "default"
    engine: Text = "auto"
    workers: Count = _usual_workers()
    memory: Annotated[Count | None, AfterValidator(_enough)] = None
    strict: bool = False


class _Catalog(_Attributes):
    catalog_url: Annotated[CatalogUrl, PlainValidator(_catalog_url)] | None = Field(default=None, alias="url")


class _Retention(_Attributes):
    retention_ms: DurationOrAll = Field(default=86_400_000, alias="keep")


class _Leases(_Attributes):
    lease_ms: Annotated[
        Duration,
        _between(
            3_000,
            3_600_000,
            "A shorter one runs out while its holder works; a longer one keeps others waiting.",
            "Use a duration from '3 s' to '1 h'; the default is '60 s'.",
        ),
    ] = Field(default=LEASE_MS, alias="duration")


class _Writes(_Attributes):
    write_deadline_ms: Duration = Field(default=30_000, alias="deadline")
    inline_rows: Count | None = None
    inline_bytes: Count | None = None


class _Reads(_Attributes):
    hot_bytes: Count | None = None
    decoded_bytes: Count | None = None
    as_of_deadline_ms: Duration = Field(default=10_000, alias="as_of_deadline")
    polls_for_reads: bool = Field(default=True, alias="poll")


class _Sources(_Attributes):
    source_folders: list[Below] = Field(default=[], alias="folders")
    expect_files_ms: Duration = Field(default=0, alias="expect_files")


class _Outputs(_Attributes):
    output_folders: list[Below] = Field(default=[], alias="folders")
    manifest: Text | None = None
    manifest_connection: Text | None = Field(default=None, alias="connection")

    @model_validator(mode="after")
    def _manifest_is_reached(self) -> Self:
        manifest, connection = self.manifest or "", self.manifest_connection
        if connection is not None and not re.fullmatch(_OBJECT, manifest):
            raise _refused(
                'setting "outputs.connection" in "{path}" leads to a manifest in a store, and none is named',
                hint='Write manifest = "s3://bucket/path.json", or gs:// or az://, or leave the connection away.',
            )
        if connection is None and "://" in manifest:
            raise _refused(
                'setting "outputs.manifest" in "{path}" is reached by no connection',
                hint='Write connection = "name", the name of a CONNECTION, beside it.',
            )
        return self


class _Hydration(_Attributes):
    hydration_deadline_ms: Duration = Field(default=3_600_000, alias="deadline")


class _Transactions(_Attributes):
    idle_transaction_ms: DurationOrNever = Field(default=600_000, alias="idle_timeout")


class _Dagster(_Attributes):
    warm_runs: bool = False


class _Settings(_Table):
    """The whole file; what is no table of attributes is an attribute itself."""

    project: _Project = _Project()
    catalog: _Catalog = _Catalog()
    retention: _Retention = _Retention()
    leases: _Leases = _Leases()
    writes: _Writes = _Writes()
    reads: _Reads = _Reads()
    sources: _Sources = _Sources()
    outputs: _Outputs = _Outputs()
    hydration: _Hydration = _Hydration()
    transactions: _Transactions = _Transactions()
    dagster: _Dagster = _Dagster()
    spark: SparkSettings = SparkSettings()
    bucket: Annotated[BucketSettings | None, PlainValidator(_bucket)] = Field(default=None, alias="storage")
    timelines: dict[str, TimelineSettings] = {}
