"""Reads a table as other engines do, and tells of each: its rows, those that a filter leaves, and the column i."""

import pathlib
import sys

import deltalake
import duckdb
import duckdb_extension_delta
import polars
import pyarrow

path = sys.argv[1]


def tell(engine, rows, some):
    print(engine, len(rows), len(some), sorted(rows))


def deltalake_column(query):
    reader = deltalake.QueryBuilder().register("t", deltalake.DeltaTable(path)).execute(query)
    return pyarrow.table(reader).column("i").to_pylist()


tell("deltalake", deltalake_column("SELECT i FROM t"), deltalake_column("SELECT i FROM t WHERE i = 2 AND s > ''"))

# DuckDB with the extension that came as a package: nothing is downloaded.
connection = duckdb.connect(config={"allow_unsigned_extensions": "true", "autoinstall_known_extensions": "false"})
extensions = pathlib.Path(duckdb_extension_delta.__file__).parent / "extensions"
connection.load_extension(str(extensions / f"v{duckdb.__version__}" / "delta.duckdb_extension"))


def duckdb_column(query):
    return [row[0] for row in connection.execute(query, [path]).fetchall()]


tell("duckdb", duckdb_column("SELECT i FROM delta_scan(?)"), duckdb_column("SELECT i FROM delta_scan(?) WHERE i = 2"))

if "v2Checkpoint" not in (deltalake.DeltaTable(path).protocol().reader_features or []):  # polars refuses the feature
    frame = polars.scan_delta(path)
    tell("polars", frame.select("i").collect()["i"].to_list(), frame.filter(polars.col("i") == 2).select("i").collect()["i"].to_list())
