"""Tells which engines can read a table, as a line for each table: its path, then the engines' names."""

import pathlib
import sys

import deltalake
import duckdb
import duckdb_extension_delta
import polars

# DuckDB with the extension that came as a package: nothing is downloaded.
connection = duckdb.connect(config={"allow_unsigned_extensions": "true", "autoinstall_known_extensions": "false"})
extensions = pathlib.Path(duckdb_extension_delta.__file__).parent / "extensions"
connection.load_extension(str(extensions / f"v{duckdb.__version__}" / "delta.duckdb_extension"))


def with_deltalake(path):
    reader = deltalake.QueryBuilder().register("t", deltalake.DeltaTable(path)).execute("SELECT count(*) FROM t")
    reader.read_all()


def with_duckdb(path):
    connection.execute("SELECT count(*) FROM delta_scan(?)", [path]).fetchall()


def with_polars(path):
    polars.scan_delta(path).select(polars.len()).collect()


for path in sys.argv[1:]:
    can = []
    for engine, read in (("delta-rs 1.6", with_deltalake), ("DuckDB delta", with_duckdb), ("polars", with_polars)):
        try:
            read(path)
            can.append(engine)
        except BaseException as error:  # what Rust panics with is not an Exception
            print(path, engine, str(error).replace("\n", " ")[:300], file=sys.stderr)
    print("\t".join([path, *can]))
