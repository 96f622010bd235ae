package delta

import (
	"slices"
	"strconv"
	"strings"
)

// tableFeature is a feature that a table may have, and what the known engines make of a table that has it.
type tableFeature struct {
	name string
	// reads says that a reader must know it too; otherwise it concerns writers only.
	reads bool
	// managed says that a catalog, not the log in the store, has the say over the table.
	managed bool
	// clients has a letter for each of clientNames: w reads and writes, a reads and appends, r reads, - neither.
	clients string
}

// clientNames are the engines of the table below, in its order.
func clientNames() []string {
	return []string{"Spark with Delta 4", "Databricks", "delta-rs 1.6", "DuckDB delta", "polars", "Trino"}
}

// tableFeatures are the features of the protocol. PROTOCOL.md, Valid Feature Names in Table Features; the letters are from
// the engines' own lists. What an engine's documentation does not list counts as not supported.
func tableFeatures() []tableFeature {
	both := func(name, clients string) tableFeature {
		return tableFeature{name: name, reads: true, clients: clients}
	}
	write := func(name, clients string) tableFeature { return tableFeature{name: name, clients: clients} }
	return []tableFeature{
		write("appendOnly", "wwwaww"), write("invariants", "wwwaww"), write("checkConstraints", "wwwrww"),
		write("changeDataFeed", "wwwaww"), write("generatedColumns", "wwwrwr"), write("allowColumnDefaults", "wwrrrr"),
		both("columnMapping", "wwwr-w"), write("identityColumns", "wwrrrr"), both("deletionVectors", "wwwaww"),
		write("rowTracking", "wwrarr"), both("timestampNtz", "wwwrww"), write("domainMetadata", "wwrarr"),
		both("v2Checkpoint", "wwwr-r"), write("icebergCompatV1", "wwrrrr"), write("icebergCompatV2", "wwrrrr"),
		write("icebergCompatV3", "wwrrrr"), write("clustering", "wwrarr"), write("liquid", "rwrrrr"), // the early name of clustering
		both("vacuumProtocolCheck", "ww-r-w"),
		write("inCommitTimestamp", "wwrarr"), both("typeWidening", "ww-r-r"), both("typeWidening-preview", "ww-r-r"),
		both("variantType", "wwwrw-"), both("variantType-preview", "wwwrw-"), both("variantShredding", "ww-r--"),
		both("variantShredding-preview", "ww-r--"), write("checkpointProtection", "wwrrrr"),
		write("materializePartitionColumns", "wwrrrr"), write("collations", "rwrrrr"), write("collations-preview", "rwrrrr"),
		both("geospatial", "-w----"),
		{name: "catalogManaged", reads: true, managed: true, clients: "------"},
		{name: "catalogOwned-preview", reads: true, managed: true, clients: "------"},
		{name: "coordinatedCommits-preview", managed: true, clients: "rrrrrr"},
	}
}

// featureNamed finds a feature.
func featureNamed(name string) (tableFeature, bool) {
	all := tableFeatures()
	i := slices.IndexFunc(all, func(f tableFeature) bool { return f.name == name })
	if i < 0 {
		return tableFeature{}, false
	}
	return all[i], true
}

// Client is what a known engine can do with a table.
type Client struct {
	Name string `json:"name"`
	// CannotRead says why the engine cannot read the table, and CannotWrite why it cannot write it; both are empty where it
	// can.
	CannotRead  string `json:"cannot_read,omitempty"`
	CannotWrite string `json:"cannot_write,omitempty"`
	// AppendOnly says that the engine writes by adding rows only.
	AppendOnly bool `json:"append_only,omitempty"`
}

// Clients tells which of the known engines can read and write a table of a protocol, by the table's path.
func Clients(p Protocol) []Client {
	features := p.Features()
	out := make([]Client, len(clientNames()))
	for i, name := range clientNames() {
		out[i] = client(p, features, name, i)
	}
	return out
}

// client is one of Clients.
func client(p Protocol, features []string, name string, i int) Client {
	out := Client{Name: name, AppendOnly: strings.HasPrefix(name, "DuckDB")}
	var reads, writes []string
	if p.MinReaderVersion > featureReader {
		reads = append(reads, "minReaderVersion "+strconv.Itoa(p.MinReaderVersion))
	}
	if p.MinWriterVersion > featureWriter {
		writes = append(writes, "minWriterVersion "+strconv.Itoa(p.MinWriterVersion))
	}
	for _, feature := range features {
		f, known := featureNamed(feature)
		if !known {
			f = tableFeature{reads: slices.Contains(p.ReaderFeatures, feature), clients: strings.Repeat("-", len(clientNames()))}
		}
		switch f.clients[i] {
		case 'w':
		case 'a':
			out.AppendOnly = true
		case '-':
			if f.reads && p.MinReaderVersion > 1 { // with 1 it may be allowed, and cannot be there
				reads = append(reads, feature)
			}
			writes = append(writes, feature)
		default:
			writes = append(writes, feature)
		}
	}
	out.CannotRead = lacks(reads)
	if out.CannotWrite = lacks(append(writes, missing(reads, writes)...)); out.CannotWrite != "" {
		out.AppendOnly = false
	}
	return out
}

// missing gives what is in a list and not in another.
func missing(list, other []string) []string {
	var out []string
	for _, s := range list {
		if !slices.Contains(other, s) {
			out = append(out, s)
		}
	}
	return out
}

// lacks says what is not supported, empty where nothing is.
func lacks(what []string) string {
	if len(what) == 0 {
		return ""
	}
	return "does not support " + strings.Join(what, ", ")
}

// Features are the features that a protocol asks of its clients, by name, those that old versions imply among them.
// PROTOCOL.md, Table Features.
func (p Protocol) Features() []string {
	var out []string
	if p.MinWriterVersion < featureWriter {
		implied := [][]string{
			2: {"appendOnly", "invariants"}, 3: {"checkConstraints"}, 4: {"changeDataFeed", "generatedColumns"},
			5: {"columnMapping"}, 6: {"identityColumns"},
		}
		for version := 0; version <= p.MinWriterVersion; version++ {
			out = append(out, implied[version]...)
		}
	}
	out = append(out, p.WriterFeatures...)
	out = append(out, p.ReaderFeatures...)
	if p.MinReaderVersion == 2 {
		out = append(out, "columnMapping")
	}
	slices.Sort(out)
	return slices.Compact(out)
}
