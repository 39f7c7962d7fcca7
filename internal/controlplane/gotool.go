package controlplane

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"
)

// gotool runs the go command for one source.
type gotool struct {
	path string
	dir  string
	env  []string
	// scratch is the folder for temporary files of the go command.
	scratch string
	meter   *meter
	// what describes what is built, for messages; mains are its packages.
	what  string
	mains []string
}

// newGo finds the go command and, if src is a published version, downloads it. scratch is the folder
// for temporary files of the go command, so that an interruption leaves none elsewhere.
func newGo(ctx context.Context, name string, src source, scratch string, m *meter) (*gotool, error) {
	tool, err := exec.LookPath(name)
	if err != nil {
		return nil, fmt.Errorf("build the control plane: %w; "+
			"install Go 1.26 or later (https://go.dev/dl), or name a devcluster binary in %s", err, EnvBinary)
	}
	dir, work, err := src.folder(ctx, tool)
	if err != nil {
		return nil, err
	}
	return &gotool{
		path:    tool,
		dir:     dir,
		env:     []string{"GOWORK=" + work, "GOTMPDIR=" + scratch, "TMPDIR=" + scratch}, // the linker uses TMPDIR
		scratch: scratch,
		meter:   m,
		what:    "the control plane",
		mains:   []string{clusterMain},
	}, nil
}

// goCommand returns a go command that builds for this machine, even if the environment selects
// another one.
func goCommand(ctx context.Context, path, dir string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Dir = dir
	cmd.Env = append(cmd.Environ(), "GOOS="+runtime.GOOS, "GOARCH="+runtime.GOARCH)
	OwnGroup(cmd)
	cmd.Cancel = func() error { return interruptGroup(cmd) }
	cmd.WaitDelay = 5 * time.Second
	return cmd
}

// download downloads a published module and returns its folder.
func download(ctx context.Context, goTool, module, version string) (string, error) {
	cmd := goCommand(ctx, goTool, os.TempDir(), "mod", "download", "-json", module+"@"+version)
	cmd.Env = append(cmd.Env, "GOWORK=off")
	out, err := cmd.Output()
	var got struct{ Dir, Error string }
	if parsed := json.Unmarshal(out, &got); err == nil && parsed == nil && got.Dir != "" {
		return got.Dir, nil
	}
	if ctx.Err() != nil {
		return "", fmt.Errorf("download the control plane's modules: %w", context.Cause(ctx))
	}
	if signalled(err) {
		return "", fmt.Errorf("download the control plane's modules: %w", err)
	}
	if got.Error == "" && err != nil {
		got.Error = err.Error()
	}
	return "", noModules(got.Error)
}

func noModules(why string) error {
	return fmt.Errorf("download the control plane's modules: %s; %s", why, needsProxy)
}

const needsProxy = "the first build needs access to a Go module proxy (see go env GOPROXY)"

// stale counts the packages that are not in the build cache. It downloads missing modules.
func (g *gotool) stale(ctx context.Context) (int, error) {
	var out bytes.Buffer
	downloads := 0
	said, err := g.run(ctx, &out, func(line string) {
		if strings.HasPrefix(line, "go: downloading ") {
			downloads++
			g.meter.set(Downloading, downloads, 0)
		}
	}, append([]string{"list", "-mod=readonly", "-buildvcs=false", "-deps", "-f", "{{if .Stale}}{{.ImportPath}}{{end}}"}, g.mains...)...)
	if err == nil {
		// Commands always count as stale, because their binaries are not installed.
		return max(0, len(bytes.Fields(out.Bytes()))-len(g.mains)), nil
	}
	if ctx.Err() != nil || signalled(err) {
		return 0, g.failed(ctx, "load the source of "+g.what, said, err)
	}
	first, _, _ := strings.Cut(said, "\n") // a missing module is reported once for each package that needs it
	return 0, fmt.Errorf("%w; if modules are missing, %s", g.failed(ctx, "load the source of "+g.what, first, err), needsProxy)
}

// signalled reports whether the go command was ended by a signal, so that its error says nothing about
// the build.
func signalled(err error) bool {
	exit, ok := errors.AsType[*exec.ExitError](err)
	return ok && exit.ExitCode() == -1
}

// build compiles and links into the file out, and counts packages up to total. Without debugging
// information, linking is a third faster, and the compiled packages are still those of any other
// build.
func (g *gotool) build(ctx context.Context, out string, total int) error {
	begun := 0
	if total == 0 {
		g.meter.set(Linking, 0, 0)
	} else {
		g.meter.set(Compiling, 0, total)
	}
	said, err := g.run(ctx, nil, func(line string) {
		switch {
		case strings.ContainsAny(line, " \t:"): // not a package name
		case slices.ContainsFunc(g.mains, func(main string) bool {
			return strings.HasPrefix(line, rootModule) && strings.HasSuffix(line, path.Base(main))
		}):
			g.meter.set(Linking, 0, 0)
		default:
			begun++
			g.meter.set(Compiling, begun, max(begun, total))
		}
	}, append([]string{"build", "-mod=readonly", "-buildvcs=false", "-ldflags=-s -w", "-v", "-o", out}, g.mains...)...)
	if err != nil {
		return g.failed(ctx, "build "+g.what, said, err)
	}
	return nil
}

// run calls line for each line that the go command writes to standard error, and returns the lines
// that report more than progress.
func (g *gotool) run(ctx context.Context, stdout *bytes.Buffer, line func(string), args ...string) (string, error) {
	cmd := goCommand(ctx, g.path, g.dir, args...)
	cmd.Env = append(cmd.Env, g.env...)
	if stdout != nil {
		cmd.Stdout = stdout
	}
	lines := &lineWriter{line: line}
	cmd.Stderr = lines
	err := cmd.Run()
	if ctx.Err() != nil && cmd.Process != nil {
		_ = KillGroup(cmd) // for compilers that ignore the interrupt
	}
	return lines.said(), err
}

// failed returns the error for a failure of the go command.
func (g *gotool) failed(ctx context.Context, doing, said string, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("%s: %w", doing, context.Cause(ctx))
	}
	if strings.Contains(strings.ToLower(said), syscall.ENOSPC.Error()) || errors.Is(err, syscall.ENOSPC) {
		return fmt.Errorf("%s: %w; %s", doing, syscall.ENOSPC, g.room(ctx))
	}
	if said == "" {
		return fmt.Errorf("%s: %w", doing, err)
	}
	return fmt.Errorf("%s: %s", doing, said)
}

// room says how much space a first build needs in which folders, and how to select others.
func (g *gotool) room(ctx context.Context) string {
	var out bytes.Buffer
	ask := goCommand(ctx, g.path, g.dir, "env", "GOCACHE", "GOMODCACHE")
	ask.Stdout = &out
	caches := []string{"GOCACHE", "GOMODCACHE"}
	if ask.Run() == nil { // prints a line for each
		for i, folder := range strings.Split(strings.TrimSpace(out.String()), "\n") {
			if i < len(caches) && folder != "" {
				caches[i] += " (" + strings.TrimSpace(folder) + ")"
			}
		}
	}
	return fmt.Sprintf("a first build needs 3 GB in %s, and 1 GB in XDG_CACHE_HOME (%s); free some space, or set these variables to other folders",
		strings.Join(caches, " and "), g.scratch)
}

// keptLines is how many lines of the go command's output become part of an error.
const keptLines = 12

// lineWriter calls line for each line that is written to it.
type lineWriter struct {
	line func(string)
	rest []byte
	kept []string
}

// Write never fails.
func (w *lineWriter) Write(p []byte) (int, error) {
	w.rest = append(w.rest, p...)
	for {
		line, rest, found := bytes.Cut(w.rest, []byte("\n"))
		if !found {
			return len(p), nil
		}
		w.add(string(line))
		w.rest = rest
	}
}

func (w *lineWriter) add(line string) {
	w.line(line)
	if strings.ContainsAny(line, " \t") && !strings.HasPrefix(line, "go: downloading ") && len(w.kept) < keptLines {
		w.kept = append(w.kept, line)
	}
}

// said returns what was written, without progress.
func (w *lineWriter) said() string {
	if len(w.rest) > 0 {
		w.add(string(w.rest))
		w.rest = nil
	}
	return strings.Join(w.kept, "\n")
}
