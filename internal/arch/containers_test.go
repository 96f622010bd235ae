package arch

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/dotenv"
	"github.com/compose-spec/compose-go/v2/loader"
	"github.com/compose-spec/compose-go/v2/types"
	"github.com/stretchr/testify/require"
)

// pinned is an image reference with a version for its tag, and maybe a digest.
var pinned = regexp.MustCompile(`^[a-z0-9./-]+:v?[0-9]+\.[0-9]+[A-Za-z0-9.-]*(@sha256:[0-9a-f]{64})?$`)

// compose loads docker-compose.yml the way Docker does, with nothing in the environment but the given file's settings.
func compose(t *testing.T, env map[string]string) (*types.Project, error) {
	t.Helper()
	dir, err := filepath.Abs(root)
	require.NoError(t, err)
	return loader.LoadWithContext(t.Context(), types.ConfigDetails{
		WorkingDir:  dir,
		ConfigFiles: []types.ConfigFile{{Filename: filepath.Join(dir, "docker-compose.yml")}},
		Environment: env,
	})
}

// settings reads .env.example.
func settings(t *testing.T) map[string]string {
	t.Helper()
	env, err := dotenv.Read(filepath.Join(root, ".env.example"))
	require.NoError(t, err)
	return env
}

func TestComposeFileIsValidWithTheExampleSettings(t *testing.T) {
	t.Parallel()
	p, err := compose(t, settings(t))
	require.NoError(t, err)
	require.ElementsMatch(t, []string{"postgresql", "temporal", "temporal-ui", "versitygw", "worker"}, p.ServiceNames())
	for name, s := range p.Services {
		if s.Build == nil {
			require.Regexp(t, pinned, s.Image, "service %s", name)
		}
		for _, port := range s.Ports {
			require.Equal(t, "127.0.0.1", port.HostIP, "service %s: port %d", name, port.Target)
		}
		for other, d := range s.DependsOn {
			require.Equal(t, types.ServiceConditionHealthy, d.Condition, "service %s waits for %s", name, other)
			require.NotNil(t, p.Services[other].HealthCheck, "service %s waits for %s, which tells no health", name, other)
		}
	}
	worker := p.Services["worker"]
	require.NotNil(t, worker.Build)
	require.Equal(t, types.ShellCommand{"worker", "--project", "/project"}, worker.Command)
	require.Contains(t, worker.DependsOn, "temporal")
	require.Contains(t, worker.DependsOn, "versitygw")
}

func TestComposeFileRefusesToStartWithoutSecrets(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"POSTGRES_USER", "POSTGRES_PASSWORD", "S3_ACCESS_KEY", "S3_SECRET_KEY"} {
		env := settings(t)
		delete(env, name)
		_, err := compose(t, env)
		require.ErrorContains(t, err, name)
	}
}

func TestExampleSettingsAreExactlyWhatTheComposeFileReads(t *testing.T) {
	t.Parallel()
	body, err := os.ReadFile(filepath.Join(root, "docker-compose.yml"))
	require.NoError(t, err)
	read := map[string]bool{}
	for _, m := range regexp.MustCompile(`[^$]\$\{([A-Z0-9_]+)`).FindAllStringSubmatch(string(body), -1) {
		read[m[1]] = true
	}
	for name := range settings(t) {
		require.True(t, read[name], "%s is set and never read", name)
		delete(read, name)
	}
	require.Empty(t, read, "read and not in .env.example")
}

// instruction is one line of a Dockerfile, its continuations joined.
type instruction struct{ name, rest string }

// dockerfile parses as much of the format as the repository's Dockerfile uses.
func dockerfile(t *testing.T) []instruction {
	t.Helper()
	body, err := os.ReadFile(filepath.Join(root, "Dockerfile"))
	require.NoError(t, err)
	var out []instruction
	text := strings.ReplaceAll(string(body), "\\\n", " ")
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		name, rest, ok := strings.Cut(line, " ")
		require.True(t, ok, "an instruction without arguments: %q", line)
		require.Contains(t, []string{"FROM", "RUN", "COPY", "USER", "WORKDIR", "ENTRYPOINT"}, name)
		out = append(out, instruction{name: name, rest: strings.Join(strings.Fields(rest), " ")})
	}
	return out
}

func TestDockerfileBuildsTheBinaryAndRunsItWithoutRoot(t *testing.T) {
	t.Parallel()
	var stages []string
	last := map[string]string{}
	var run []string
	for _, i := range dockerfile(t) {
		if i.name == "FROM" {
			image, stage, _ := strings.Cut(i.rest, " AS ")
			require.Regexp(t, pinned, image)
			stages = append(stages, stage)
			last = map[string]string{}
		}
		if i.name == "RUN" {
			run = append(run, i.rest)
		}
		if from, ok := strings.CutPrefix(i.rest, "--from="); ok && i.name == "COPY" {
			stage, _, _ := strings.Cut(from, " ")
			require.Contains(t, stages, stage)
		}
		last[i.name] = i.rest
	}
	require.True(t, slices.ContainsFunc(run, func(s string) bool {
		return strings.Contains(s, "CGO_ENABLED=1 go build") && strings.HasSuffix(s, " ./cmd/varve")
	}), "a cgo build of ./cmd/varve")
	require.Equal(t, `["varve"]`, last["ENTRYPOINT"])
	require.NotEmpty(t, last["USER"])
	require.NotContains(t, []string{"root", "0"}, last["USER"])
}

// TestBuildImageHasTheToolchainOfTheModule keeps the image from falling behind go.mod.
func TestBuildImageHasTheToolchainOfTheModule(t *testing.T) {
	t.Parallel()
	body, err := os.ReadFile(filepath.Join(root, "go.mod"))
	require.NoError(t, err)
	version := regexp.MustCompile(`(?m)^go (\S+)$`).FindSubmatch(body)
	require.NotNil(t, version)
	require.Equal(t, "golang:"+string(version[1])+"-trixie AS build", dockerfile(t)[0].rest)
}

// TestImageContextHasEveryFolderOfTheBuild keeps .dockerignore from hiding a package from the image's build.
func TestImageContextHasEveryFolderOfTheBuild(t *testing.T) {
	t.Parallel()
	body, err := os.ReadFile(filepath.Join(root, ".dockerignore"))
	require.NoError(t, err)
	shown := strings.Split(string(body), "\n")
	r, err := load(root)
	require.NoError(t, err)
	for _, f := range r.files {
		folder, _, _ := strings.Cut(f.path, "/")
		require.Contains(t, shown, "!"+folder)
	}
}
