// Package scaffold holds the project that varve init makes: files only.
package scaffold

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
