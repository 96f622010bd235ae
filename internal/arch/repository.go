package arch

import (
	"bufio"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// repository is what the law looks at.
type repository struct {
	entries   []string            // the names at the root
	files     []file              // every Go file, in order of the paths
	functions map[string][]string // the functions of a folder of typesOnly
}

// file is one Go file.
type file struct {
	path    string // below the root, slash-separated
	name    string // the package's name
	test    bool
	imports []string
	calls   []use // what it uses of the packages of typesOnly
}

// use is a name of another package.
type use struct{ folder, name string }

func (f file) folder() string { return path.Dir(f.path) }

// load reads the repository at root: every Go file outside testdata and hidden folders, whatever its build constraints.
func load(root string) (repository, error) {
	r := repository{functions: map[string][]string{}}
	ignored, err := ignores(filepath.Join(root, ".gitignore"))
	if err != nil {
		return r, fmt.Errorf("load %q: %w", root, err)
	}
	tree := os.DirFS(root)
	err = fs.WalkDir(tree, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || name == "." {
			return err
		}
		if path.Dir(name) == "." && !ignored(d.Name()) {
			r.entries = append(r.entries, name)
		}
		switch {
		case d.IsDir() && (d.Name() == "testdata" || strings.HasPrefix(d.Name(), ".")):
			return fs.SkipDir
		case d.IsDir() || path.Ext(name) != ".go" || path.Dir(name) == ".":
			return nil
		}
		return r.add(tree, name)
	})
	return r, err
}

// ignores reads the patterns of a .gitignore that can match at the root.
func ignores(name string) (func(string) bool, error) {
	f, err := os.Open(name) //nolint:gosec // the name is the caller's
	if errors.Is(err, fs.ErrNotExist) {
		return func(string) bool { return false }, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var patterns []string
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		if p := strings.Trim(strings.TrimSpace(lines.Text()), "/"); p != "" && p[0] != '#' {
			patterns = append(patterns, p)
		}
	}
	return func(entry string) bool {
		return slices.ContainsFunc(patterns, func(p string) bool {
			ok, err := path.Match(p, entry)
			return ok && err == nil
		})
	}, lines.Err()
}

// add reads one Go file.
func (r *repository) add(tree fs.FS, name string) error {
	src, err := fs.ReadFile(tree, name)
	if err != nil {
		return err
	}
	f := file{path: name, test: strings.HasSuffix(name, "_test.go")}
	folder := f.folder()
	mode := parser.ImportsOnly
	whole := slices.ContainsFunc(slices.Collect(maps.Keys(typesOnly)), func(k string) bool { return below(folder, k) || slices.Contains(typesOnly[k], folder) })
	if whole {
		mode = parser.SkipObjectResolution
	}
	parsed, err := parser.ParseFile(token.NewFileSet(), name, src, mode)
	if err != nil {
		return err
	}
	f.name = parsed.Name.Name
	for _, i := range parsed.Imports {
		imported, err := strconv.Unquote(i.Path.Value)
		if err != nil {
			return fmt.Errorf("%s: import %s: %w", name, i.Path.Value, err)
		}
		f.imports = append(f.imports, imported)
	}
	if whole && !f.test {
		r.functions[folder] = append(r.functions[folder], functions(parsed)...)
		f.calls = uses(folder, parsed)
	}
	r.files = append(r.files, f)
	return nil
}

// functions gives the names of a file's functions that are not methods.
func functions(parsed *ast.File) []string {
	var out []string
	for _, d := range parsed.Decls {
		if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil {
			out = append(out, f.Name.Name)
		}
	}
	return out
}

// uses gives what a file names of the packages of which its folder may use types only.
func uses(folder string, parsed *ast.File) []use {
	names := map[string]string{}
	for k, folders := range typesOnly {
		if !below(folder, k) {
			continue
		}
		for _, i := range parsed.Imports {
			imported := strings.TrimPrefix(strings.Trim(i.Path.Value, `"`), module+"/")
			if !slices.Contains(folders, imported) {
				continue
			}
			name := path.Base(imported)
			if i.Name != nil {
				name = i.Name.Name
			}
			names[name] = imported
		}
	}
	var out []use
	ast.Inspect(parsed, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok {
			if x, ok := s.X.(*ast.Ident); ok && names[x.Name] != "" {
				out = append(out, use{folder: names[x.Name], name: s.Sel.Name})
			}
		}
		return true
	})
	return out
}
