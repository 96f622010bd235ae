// Package demo holds the project that varve demo runs, and the order of its days: files and their story only.
package demo

import (
	"embed"
	"io/fs"
)

//go:embed all:files
var files embed.FS

// Files gives the project's files: varve.yaml, datasets, models, landing.
func Files() fs.FS {
	sub, err := fs.Sub(files, "files")
	if err != nil {
		panic(err) // "files" is a valid path
	}
	return sub
}

// Day is one day of the demo.
type Day struct {
	// Day is the logical day.
	Day string
	// Datasets are those that have files of the day, in the order to run them.
	Datasets []string
	// Story tells what comes that day, and what is to be seen after it.
	Story []string
}

// Days gives the demo's days, in order.
func Days() []Day {
	return []Day{
		{Day: "2026-01-05", Datasets: []string{"customers", "sales", "customer"}, Story: []string{
			"customers: the first file brings 501 Rahul, 502 Anita and 503 Karan; Karan has no effective date, so his history begins this day",
			"sales: 9001 is Rahul's sale of 2024, made in Bengaluru",
			"customer: C100 comes as Delhi@10 twice and Mumbai@20, C200 as Pune@10; C300 comes as Bengaluru@30, before its past",
		}},
		{Day: "2026-01-06", Datasets: []string{"customers", "sales", "customer"}, Story: []string{
			"customers: Rahul moves to Pune, which opens a version; Anita's phone is corrected, which opens none; 504 Priya is new",
			"sales: 9004 is Rahul's sale of 2026, made in Pune; 9001 stays Bengaluru's",
			"customer: C300's Delhi@10 comes late and changes only history; C200 is deleted @40; the source sends its first file again under another name, which changes nothing",
		}},
		{Day: "2026-01-07", Datasets: []string{"customers", "customer"}, Story: []string{
			"customers: a row with too many fields and a row without a key go to quarantine; the good row repeats what is known, and no table changes",
			"customer: C300's Mumbai@20 comes last and is not the latest; C200's Nagpur@15 comes after its delete and does not bring it back; a broken line goes to quarantine",
		}},
		{Day: "2026-01-08", Datasets: []string{"customer"}, Story: []string{
			"customer: C100's Chennai@15 comes late: it takes its place in history, and Mumbai stays current",
		}},
	}
}
