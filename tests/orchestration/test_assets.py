"""How a project looks in Dagster: keys, dependencies, partitions, metadata; and how users change it."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import dagster as dg
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mz_dagster import MzDagsterTranslator, MzResource, Project, StepResult, build_mz_asset_specs, mz_assets
from mz_dagster.adapter import Engine, ProjectObject
from mz_dagster.adapter.annotations import MAX_KINDS, parse_annotations
from mz_dagster.errors import ProgrammingError
from mz_dagster.orchestration import partition_key, partitions_of, tick_of
from mz_dagster.orchestration.frontier_checks import frontier_check_specs
from tests.project_objects import load_objects

SQL = """
CREATE SOURCE orders (id integer NOT NULL, customer text, amount integer, PRIMARY KEY (id))
FROM FILES (FOLDER 'landing/orders', PATTERN '*.jsonl') FORMAT JSON ENVELOPE UPSERT;
CREATE SOURCE customers (name text NOT NULL, branch integer NOT NULL, city text, PRIMARY KEY (name, branch))
FROM FILES (FOLDER 'landing/customers', PATTERN '*.csv') FORMAT CSV ENVELOPE UPSERT;
CREATE VIEW named AS SELECT o.id, o.amount, c.city FROM orders o JOIN customers c ON c.name = o.customer;
-- What was ordered where.
--
-- @owner team:sales
-- @group marts
-- @tag domain=sales
-- @kind kafka
-- @freshness warn 30 min, fail 2 h
CREATE MATERIALIZED VIEW ordered AS SELECT id, amount * 2 AS twice, city FROM named;
CREATE INDEX ordered_by_city ON ordered (city);
CREATE INDEX named_by_city ON named (city);
COMMENT ON COLUMN ordered.twice IS 'the amount, doubled';
CREATE TABLE notes (note text) IN TIMELINE other;
CREATE MATERIALIZED VIEW noted AS SELECT note FROM notes;
"""
PRINTS_BUT_NO_BREAKS = st.text(st.characters(codec="utf-8", exclude_categories=("Cc", "Zl", "Zp")), max_size=70)


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """A project of two timelines, for which nothing is started."""
    (tmp_path / "mz.toml").write_text("[project]\ntimeline = 'feed'\n[timelines.other]\n")
    (tmp_path / "assets").mkdir()
    (tmp_path / "assets" / "orders.sql").write_text(SQL)
    return Project.load(tmp_path)


@pytest.fixture
def specs(project: Project) -> Mapping[str, dg.AssetSpec]:
    return by_name(build_mz_asset_specs(project))


def by_name(specs: list[dg.AssetSpec]) -> Mapping[str, dg.AssetSpec]:
    return {spec.key.to_user_string(): spec for spec in specs}


def lineage_of(spec: dg.AssetSpec) -> dict[str, set[str]]:
    found = spec.metadata["dagster/column_lineage"].deps_by_column
    return {
        column: {f"{one.asset_key.to_user_string()}.{one.column_name}" for one in deps}
        for column, deps in found.items()
    }


class Prefixed(MzDagsterTranslator):
    def get_asset_spec(self, obj: ProjectObject) -> dg.AssetSpec:
        spec = super().get_asset_spec(obj)
        return spec.replace_attributes(key=spec.key.with_prefix("mz"), group_name="mine")


def test_sources_views_and_indexes_are_assets_and_plain_views_are_looked_through(
    specs: Mapping[str, dg.AssetSpec],
) -> None:
    reads = {name: {dep.asset_key.to_user_string() for dep in spec.deps} for name, spec in specs.items()}
    assert reads == {
        "orders": set(),
        "customers": set(),
        "ordered": {"orders", "customers", "named_by_city"},
        "ordered_by_city": {"ordered"},
        "named_by_city": {"orders", "customers"},
    }


def test_assets_outside_are_dependencies_also_those_of_plain_views(project: Project) -> None:
    text = SQL.replace("CREATE VIEW named", "-- @dep crm/branches\nCREATE VIEW named")
    text = text.replace("-- @kind kafka", "-- @dep prices\n-- @dep crm/branches")
    (project.assets / "orders.sql").write_text(text)
    specs = by_name(build_mz_asset_specs(project))
    reads = {name: {dep.asset_key.to_user_string() for dep in spec.deps} for name, spec in specs.items()}
    assert reads["ordered"] == {"orders", "customers", "named_by_city", "prices", "crm/branches"}
    assert reads["ordered_by_city"] == {"ordered"}
    assert reads["named_by_city"] == {"orders", "customers", "crm/branches"}


def test_assets_outside_may_have_partitions_of_their_own(project: Project) -> None:
    text = SQL.replace("CREATE VIEW named", "-- @dep branches\nCREATE VIEW named").replace(
        "-- @kind kafka", "-- @dep prices"
    )
    (project.assets / "orders.sql").write_text(text)

    @dg.asset(partitions_def=dg.DailyPartitionsDefinition("2024-01-01"))
    def branches() -> None: ...

    @dg.asset(partitions_def=dg.StaticPartitionsDefinition(["a", "b"]))
    def prices() -> None: ...

    @mz_assets(project=project)
    def steps(context: dg.AssetExecutionContext, mz: MzResource) -> Iterator[StepResult]:
        yield from mz.step(context)

    dg.Definitions.validate_loadable(
        dg.Definitions([branches, prices, steps], resources={"mz": MzResource(project_dir=str(project.root))})
    )


def test_a_specification_tells_what_the_comment_says(specs: Mapping[str, dg.AssetSpec]) -> None:
    ordered = specs["ordered"]
    assert ordered.description == "What was ordered where."
    assert ordered.owners == ["team:sales"]
    assert ordered.group_name == "marts"
    assert ordered.tags["domain"] == "sales"
    assert ordered.kinds == {"view", "spark", "deltalake", "kafka"}
    assert ordered.freshness_policy == dg.FreshnessPolicy.time_window(timedelta(hours=2), timedelta(minutes=30))
    customers = specs["customers"]
    assert (customers.description, customers.freshness_policy) == (None, None)
    assert customers.kinds == {"source", "csv", "deltalake"}


def test_a_specification_shows_columns_with_comments_nullability_and_keys(specs: Mapping[str, dg.AssetSpec]) -> None:
    schema = specs["ordered"].metadata["dagster/column_schema"]
    assert [(column.name, column.type, column.description) for column in schema.columns] == [
        ("id", "integer", None),
        ("twice", "integer", "the amount, doubled"),
        ("city", "text", None),
    ]
    assert [column.constraints.nullable for column in schema.columns] == [False, True, True]
    assert specs["ordered_by_city"].metadata["dagster/column_schema"].columns[1].description == "the amount, doubled"
    orders = specs["orders"].metadata["dagster/column_schema"]
    assert [column.constraints.unique for column in orders.columns] == [True, False, False]
    assert list(orders.constraints.other) == []
    customers = specs["customers"].metadata["dagster/column_schema"]
    assert list(customers.constraints.other) == ["unique (name, branch)"]


def test_a_specification_shows_its_sql_its_plan_and_where_it_stands(
    specs: Mapping[str, dg.AssetSpec], project: Project
) -> None:
    metadata = specs["ordered"].metadata
    assert metadata["mz/sql"].value.startswith("```sql\nCREATE MATERIALIZED VIEW ordered AS")
    assert "DeltaJoin" in specs["named_by_city"].metadata["mz/plan"].value
    assert "Read named_by_city (index of named)" in metadata["mz/plan"].value
    assert "writes per step: at most 1" in metadata["mz/plan"].value
    assert "mz/plan" not in specs["orders"].metadata
    (reference,) = metadata["dagster/code_references"].code_references
    assert reference.file_path == str(project.assets / "orders.sql")
    line = SQL.splitlines()[reference.line_number - 1]
    assert line.startswith("CREATE MATERIALIZED VIEW ordered")
    versions = {name: spec.code_version for name, spec in specs.items()}
    assert all(versions.values())
    assert len(set(versions.values())) == len(versions)


def test_a_backtick_in_the_sql_does_not_end_the_code_block(tmp_path: Path) -> None:
    (tmp_path / "assets").mkdir()
    (tmp_path / "assets" / "a.sql").write_text("CREATE MATERIALIZED VIEW m AS SELECT '```' AS a")
    (spec,) = build_mz_asset_specs(Project.load(tmp_path))
    assert spec.metadata["mz/sql"].value == "````sql\nCREATE MATERIALIZED VIEW m AS SELECT '```' AS a\n````"


def test_column_lineage_goes_through_plain_views_to_columns_of_assets(specs: Mapping[str, dg.AssetSpec]) -> None:
    expected = {"id": {"orders.id"}, "twice": {"orders.amount"}, "city": {"customers.city"}}
    assert lineage_of(specs["ordered"]) == expected
    assert lineage_of(specs["ordered_by_city"]) == {name: {f"ordered.{name}"} for name in expected}
    assert lineage_of(specs["named_by_city"])["amount"] == {"orders.amount"}
    readable = "```text\nid     orders.id\ntwice  orders.amount\ncity   customers.city\n```"
    assert specs["ordered"].metadata["mz/lineage"].value == readable
    assert "dagster/column_lineage" not in specs["orders"].metadata


def test_a_translator_changes_keys_and_with_them_dependencies_and_lineage(project: Project) -> None:
    specs = by_name(build_mz_asset_specs(project, translator=Prefixed()))
    ordered = specs["mz/ordered"]
    read = {"mz/orders", "mz/customers", "mz/named_by_city"}
    assert {dep.asset_key.to_user_string() for dep in ordered.deps} == read
    assert lineage_of(ordered)["city"] == {"mz/customers.city"}
    assert ordered.group_name == "mine"
    assert ordered.freshness_policy is not None


def test_what_a_translator_says_an_asset_reads_is_kept(project: Project) -> None:
    class Fed(MzDagsterTranslator):
        def get_asset_spec(self, obj: ProjectObject) -> dg.AssetSpec:
            spec = super().get_asset_spec(obj)
            if obj.name == "orders":
                return spec.replace_attributes(deps=[dg.AssetKey("shop")])
            mapped = dg.AssetDep("orders", partition_mapping=dg.AllPartitionMapping())
            return spec.replace_attributes(deps=[mapped]) if obj.name == "ordered" else spec

    specs = by_name(build_mz_asset_specs(project, translator=Fed()))
    assert [dep.asset_key for dep in specs["orders"].deps] == [dg.AssetKey("shop")]
    assert {dep.asset_key.to_user_string(): dep.partition_mapping for dep in specs["ordered"].deps} == {
        "orders": dg.AllPartitionMapping(),
        "customers": None,
        "named_by_city": None,
    }


@given(
    st.tuples(
        st.sampled_from(["owner", "group", "tag", "kind"]),
        st.one_of(
            PRINTS_BUT_NO_BREAKS,
            st.from_regex(r"(team:)?[A-Za-z0-9._%+/=@-]{1,70}", fullmatch=True),
            st.from_regex(r"[a-z._+-]{1,5}@[a-z.-]{1,9}\.[A-Za-z|]{1,8}", fullmatch=True),
            st.from_regex(r"[a-z/._-]{1,64}(=[a-z._-]{0,64})?", fullmatch=True),
        ),
    )
)
def test_what_an_annotation_may_say_dagster_takes(annotation: tuple[str, str]) -> None:
    name, value = annotation
    try:
        found, _ = parse_annotations([f"@{name} {value}"])
    except ProgrammingError:
        return
    dg.AssetSpec("a", owners=found.owners, group_name=found.group, tags=dict(found.tags), kinds=set(found.kinds))


def test_with_all_kinds_that_annotations_may_add_dagster_takes_every_object(project: Project) -> None:
    for one in load_objects(project):
        if one.definition.kind != "view":
            kinds = tuple(f"k{i}" for i in range(MAX_KINDS))
            full = replace(one, annotations=replace(one.annotations, kinds=kinds))
            assert len(MzDagsterTranslator().get_asset_spec(full).kinds) == MAX_KINDS + (
                2 if one.definition.kind == "table" else 3
            )


def test_each_timeline_has_its_own_assets_op_and_partitions(project: Project) -> None:
    @mz_assets(project=project)
    def feed(context: dg.AssetExecutionContext, mz: MzResource) -> Iterator[StepResult]:
        yield from mz.step(context)

    @mz_assets(project=project, timeline="other")
    def other(context: dg.AssetExecutionContext, mz: MzResource) -> Iterator[StepResult]:
        yield from mz.step(context)

    defs = dg.Definitions(assets=[feed, other], resources={"mz": MzResource(project_dir=str(project.root))})
    dg.Definitions.validate_loadable(defs)
    graph = defs.resolve_asset_graph()
    assert graph.get(dg.AssetKey("noted")).partitions_def == partitions_of(project, "other")
    assert graph.get(dg.AssetKey("ordered")).partitions_def == partitions_of(project, "feed")
    assert {key.to_user_string() for key in other.keys} == {"notes", "noted"}
    assert (feed.op.name, other.op.name) == ("mz_feed", "mz_other")


def test_a_timeline_may_have_a_name_that_no_op_may_have(tmp_path: Path) -> None:
    (tmp_path / "mz.toml").write_text("[project]\ntimeline = 'my-feed 2'\n")
    (tmp_path / "assets").mkdir()
    (tmp_path / "assets" / "t.sql").write_text("CREATE TABLE t (a integer)")
    project = Project.load(tmp_path)

    @mz_assets(project=project)
    def feed(context: dg.AssetExecutionContext, mz: MzResource) -> Iterator[StepResult]:
        yield from mz.step(context)

    assert feed.op.name == "mz_my_feed_2"
    dg.Definitions.validate_loadable(dg.Definitions(assets=[feed], resources={"mz": MzResource(project_dir=".")}))


def test_an_object_may_have_a_name_that_no_op_may_have(tmp_path: Path) -> None:
    (tmp_path / "assets").mkdir()
    names = ["it's one", "it_s one", "größe", "a/b", "order count"]
    views = [f'CREATE MATERIALIZED VIEW "{name}" AS SELECT note FROM notes;' for name in names]
    (tmp_path / "assets" / "all.sql").write_text("CREATE TABLE notes (note text);" + "\n".join(views))

    @mz_assets(project=Project.load(tmp_path))
    def stepped() -> Iterator[StepResult]:
        yield from ()

    told = {str(spec.metadata["mz/name"]): spec.key.to_user_string() for spec in stepped.specs}
    assert told.keys() == {"notes", *names}
    assert len(set(told.values())) == 6
    assert told["notes"] == "notes"
    assert told["order count"].startswith("order_count_")


def test_an_unknown_timeline_is_refused_with_those_that_are_there(project: Project) -> None:
    with pytest.raises(ProgrammingError, match='no timeline "fed"') as caught:
        build_mz_asset_specs(project, timeline="fed")
    assert caught.value.hint == 'Its timelines are "feed", "other".'


def test_views_over_two_timelines_are_refused_and_told(project: Project, caplog: pytest.LogCaptureFixture) -> None:
    before = set(by_name(build_mz_asset_specs(project)))
    (project.assets / "both.sql").write_text("CREATE MATERIALIZED VIEW b AS SELECT id FROM orders, notes")
    assert set(by_name(build_mz_asset_specs(project))) == before
    assert "two timelines" in caplog.text


def test_a_bad_file_is_the_fault_of_its_asset_alone(project: Project) -> None:
    with Engine(project) as engine:
        engine.apply()
    before = by_name(build_mz_asset_specs(project))
    path = project.assets / "orders.sql"
    path.write_text(SQL + "\nCREATE VIEW notes_too AS SELECT nothing FROM notes;\n")
    assert by_name(build_mz_asset_specs(project)).keys() == before.keys()
    path.write_text(SQL.replace("twice, city FROM named", "twice, town FROM named"))
    after = by_name(build_mz_asset_specs(project))
    assert after.keys() == before.keys()
    assert "orders.sql:" in str(after["ordered"].description)
    assert "orders.sql:" in str(after["ordered"].metadata["mz/fault"].value)
    assert after["ordered"].deps == before["ordered"].deps
    assert "mz/fault" not in after["orders"].metadata


def test_the_op_takes_tags_a_pool_and_a_retry_policy(project: Project) -> None:
    retries = dg.RetryPolicy(max_retries=2)

    @mz_assets(project=project, name="step", op_tags={"team": "ops"}, pool="spark", retry_policy=retries)
    def feed(context: dg.AssetExecutionContext, mz: MzResource) -> Iterator[StepResult]:
        yield from mz.step(context)

    assert feed.op.name == "step"
    assert feed.op.tags == {"team": "ops", "mz/timeline": "feed"}
    assert feed.op.pool == "spark"
    assert feed.op.retry_policy == retries
    assert feed.backfill_policy == dg.BackfillPolicy.single_run()
    assert feed.can_subset


def test_the_checks_of_frontiers_come_with_the_assets(project: Project) -> None:
    @mz_assets(project=project, translator=Prefixed())
    def feed(context: dg.AssetExecutionContext, mz: MzResource) -> Iterator[StepResult]:
        yield from mz.step(context)

    specs = build_mz_asset_specs(project, translator=Prefixed())
    assert {spec.key for spec in feed.check_specs} == {spec.key for spec in frontier_check_specs(specs)}
    assert {spec.asset_key for spec in feed.check_specs} == feed.keys


def test_everything_arrives_in_loaded_definitions(project: Project) -> None:
    @mz_assets(project=project)
    def feed(context: dg.AssetExecutionContext, mz: MzResource) -> Iterator[StepResult]:
        yield from mz.step(context)

    defs = dg.Definitions(assets=[feed], resources={"mz": MzResource(project_dir=str(project.root))})
    dg.Definitions.validate_loadable(defs)
    loaded = {spec.key: spec for spec in defs.resolve_all_asset_specs()}
    for spec in build_mz_asset_specs(project):
        found = loaded[spec.key]
        assert found.partitions_def == partitions_of(project, "feed")
        for field in ("description", "owners", "tags", "code_version", "freshness_policy", "metadata"):
            assert getattr(found, field) == getattr(spec, field), (spec.key, field)
        assert found.group_name == (spec.group_name or "default")
        assert {dep.asset_key for dep in found.deps} == {dep.asset_key for dep in spec.deps}


def test_the_demos_assets_are_described_owned_and_grouped() -> None:
    specs = by_name(build_mz_asset_specs(Project.load(Path(__file__).resolve().parents[2])))
    assert not [name for name, spec in specs.items() if not (spec.description and spec.owners and spec.group_name)]
    assert {name for name, spec in specs.items() if spec.freshness_policy} == {"flights", "departures"}
    assert lineage_of(specs["departures"])["dest_airport"] == {"airports.name"}
    assert lineage_of(specs["repeat_delays"])["previous_delay"] == {"flights.dep_delay"}
    described = {
        f"{name}.{column.name}": column.description
        for name, spec in specs.items()
        for column in spec.metadata["dagster/column_schema"].columns
        if column.description
    }
    assert described["flights.distance"] == "miles"
    assert described["departures.delay_class"] == described["departures_by_route.delay_class"]


@given(st.integers(0, 253_402_300_799_999), st.integers(0, 253_402_300_799_999))
def test_partition_keys_sort_as_ticks_and_tell_them(left: int, right: int) -> None:
    assert tick_of(partition_key(left)) == left
    assert (partition_key(left) < partition_key(right)) == (left < right)


@pytest.mark.parametrize("key", ["2013-01-01", "2013-01-01T00:00:00.000+01:00", "2013-01-01T00:00:00Z"])
def test_other_forms_are_no_partition_keys(key: str) -> None:
    with pytest.raises((ValueError, TypeError)):
        tick_of(key)
