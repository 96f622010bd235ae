package schemas

import (
	"regexp"

	"gopkg.in/yaml.v3"
)

// Project is a project's settings: varve.yaml.
type Project struct {
	// Warehouse holds everything varve writes.
	Warehouse Location
	// Landing holds what sources send.
	Landing  Location
	Temporal Temporal
	Limits   Limits
}

// Location is a folder or a part of a bucket. Exactly one of Path and S3 is set.
type Location struct {
	// Path is a folder, relative to the project's.
	Path string
	// S3 is bucket or bucket/prefix. Credentials come from the environment, as every AWS client takes them.
	S3 string
	// Endpoint is the URL of a store that is not Amazon's.
	Endpoint string
	Region   string
	// PathStyle puts the bucket in the path of a URL, not in its host.
	PathStyle bool
}

// DefaultTaskQueue is the queue of the workers of a project that names none.
const DefaultTaskQueue = "varve"

// Temporal says which Temporal service runs the project's workflows, and where varve dev serves one.
type Temporal struct {
	// Address of the service that varve worker joins. Default from the environment, as every Temporal client takes it.
	Address string
	// Namespace. Default from the environment, else default.
	Namespace string
	// TaskQueue of the project's workers. Default DefaultTaskQueue.
	TaskQueue string
	// Port and UIPort of varve dev, on loopback. Default 7233 and 8233, or free ones where those are taken.
	Port, UIPort int
}

// Limits bound what a process takes.
type Limits struct {
	// MemoryMiB bounds what DuckDB takes. Default 0, which is 1024 a stage.
	MemoryMiB int
	// CacheBytes is how much room copies of a warehouse's immutable files may take on the local disk. Default 0, no copies.
	CacheBytes int64
}

var bucket = regexp.MustCompile(`^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9](/[^/\s]+)*$`)

// ParseProject reads varve.yaml. The error is a *Problems with all that is wrong, by line.
func ParseProject(src []byte) (Project, error) {
	none := func(string) string { return "" }
	r := &reader{lines: map[string]int{}, later: laterInProject, home: none}
	p := Project{Temporal: Temporal{TaskQueue: DefaultTaskQueue}}
	memory := int64(0)
	if root := r.document(src); root != nil {
		r.mapping(root, "", []field{
			{"warehouse", r.location(&p.Warehouse)},
			{"landing", r.location(&p.Landing)},
			{"temporal", func(n *yaml.Node, path string) {
				r.mapping(n, path, []field{
					{"address", r.text(&p.Temporal.Address)},
					{"namespace", r.text(&p.Temporal.Namespace)},
					{"task_queue", r.text(&p.Temporal.TaskQueue)},
					{"port", r.number(&p.Temporal.Port, 0, 65535)},
					{"ui_port", r.number(&p.Temporal.UIPort, 0, 65535)},
				})
			}},
			{"limits", func(n *yaml.Node, path string) {
				r.mapping(n, path, []field{{"memory", r.size(&memory)}, {"cache", r.size(&p.Limits.CacheBytes)}})
			}},
		})
		if root.Kind == yaml.MappingNode {
			r.checkProject(p, memory)
		}
	}
	if len(r.problems) > 0 {
		return Project{}, &Problems{List: sorted(r.problems)}
	}
	p.Limits.MemoryMiB = int(memory >> 20)
	return p, nil
}

// laterInProject is later for varve.yaml.
func laterInProject(name string) (string, bool) {
	switch name {
	case "azure", "gcs":
		return "use a folder or s3", true
	}
	return "", false
}

func (r *reader) checkProject(p Project, memory int64) {
	r.require("warehouse", "as warehouse: warehouse, a folder beside varve.yaml")
	r.require("landing", "as landing: landing, a folder beside varve.yaml")
	if p.Warehouse != (Location{}) && p.Warehouse == p.Landing {
		r.addAt("landing", "is the warehouse too", "keep what sources send apart from what varve writes")
	}
	const least = 256 << 20 // bytes; DuckDB does not work with less
	if memory > 0 && memory < least {
		r.addAt("limits.memory", "is less than 256MiB", "")
	}
	if r.has("limits.cache") && p.Warehouse.Path != "" {
		r.addAt("limits.cache", "is for a warehouse in s3", "leave it out: a warehouse on the local disk needs no copies")
	}
	const leastCache = 64 << 20 // bytes; a quarter of it is the largest file that is kept
	if p.Limits.CacheBytes > 0 && p.Limits.CacheBytes < leastCache {
		r.addAt("limits.cache", "is less than 64MiB", "")
	}
	if p.Temporal.Port != 0 && p.Temporal.Port == p.Temporal.UIPort {
		r.addAt("temporal.ui_port", "is port too", "")
	}
}

// location reads a folder, or a mapping.
func (r *reader) location(to *Location) func(*yaml.Node, string) {
	return func(n *yaml.Node, path string) {
		if n.Kind == yaml.ScalarNode {
			r.text(&to.Path)(n, path)
			r.checkFolder(path, to.Path)
			return
		}
		secret := func(n *yaml.Node, path string) {
			r.add(n.Line, path, "credentials do not belong in a file", "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or use a profile")
		}
		r.mapping(n, path, []field{
			{"path", r.text(&to.Path)},
			{"s3", r.text(&to.S3)},
			{"endpoint", r.text(&to.Endpoint)},
			{"region", r.text(&to.Region)},
			{"path_style", r.boolean(&to.PathStyle)},
			{"access_key", secret},
			{"secret_key", secret},
		})
		if n.Kind != yaml.MappingNode {
			return
		}
		r.checkLocation(path, *to)
	}
}

func (r *reader) checkLocation(path string, l Location) {
	r.checkFolder(path+".path", l.Path)
	switch {
	case r.has(path+".path") == r.has(path+".s3"):
		r.addAt(path, "needs either path or s3", `as {s3: "bucket/prefix"}`)
	case l.S3 != "" && !bucket.MatchString(l.S3):
		r.addAt(path+".s3", "must be bucket or bucket/prefix, without s3:// and without a / at its end", "")
	}
	if !r.has(path + ".s3") {
		for _, name := range []string{"endpoint", "region", "path_style"} {
			if r.has(path + "." + name) {
				r.addAt(path+"."+name, "is for s3", "leave it out")
			}
		}
	}
}

var scheme = regexp.MustCompile(`^[a-z0-9]+://`)

func (r *reader) checkFolder(path, folder string) {
	if scheme.MatchString(folder) {
		r.addAt(path, "must be a folder", `a store is named as {s3: "bucket/prefix"}`)
	}
}
