package operator_test

import (
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/trimtab-dev/trimtab/internal/manifest"
	"github.com/trimtab-dev/trimtab/operator"
	"github.com/trimtab-dev/trimtab/trace/tracetest"
)

// packaged runs the command package, and returns the files by their paths.
func packaged(t *testing.T, o operator.Options, args ...string) map[string]string {
	t.Helper()
	dir := t.TempDir()
	got := runArgs(t, o, append([]string{"package", dir}, args...)...)
	if got.Code != 0 || got.ErrOut != "" {
		t.Fatalf("exit code %d, complaint %q", got.Code, got.ErrOut)
	}
	files := map[string]string{}
	err := fs.WalkDir(os.DirFS(dir), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(filepath.Join(dir, name))
		files[name] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, name := range slices.Sorted(maps.Keys(files)) {
		names = append(names, filepath.Join(dir, name))
	}
	if want := strings.Join(names, "\n") + "\n"; got.Out != want {
		t.Errorf("it printed (-want +got):\n%s", cmp.Diff(want, got.Out))
	}
	return files
}

// kinds returns the kinds and names of the objects in YAML, in their order.
func kinds(t *testing.T, text string) []string {
	t.Helper()
	var out []string
	err := manifest.Split([]byte(text), func(document []byte) error {
		var o struct {
			Kind     string
			Metadata struct{ Name string }
		}
		err := yaml.Unmarshal(document, &o)
		out = append(out, o.Kind+" "+o.Metadata.Name)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestPackage(t *testing.T) {
	files := packaged(t, probeOperator(), "--image", "example.org/probe:v1.2.3", "--", "--greeting", "ahoy")
	want := runArgs(t, probeOperator(), "manifests", "--image", "example.org/probe:v1.2.3", "--", "--greeting", "ahoy").Out
	if !strings.HasPrefix(files["install.yaml"], want) {
		t.Error("install.yaml does not begin with what manifests prints")
	}
	if diff := cmp.Diff([]string{"PodDisruptionBudget probe-operator", "NetworkPolicy probe-operator", "Service probe-operator-metrics"},
		kinds(t, strings.TrimPrefix(files["install.yaml"], want))); diff != "" {
		t.Errorf("after that, install.yaml has (-want +got):\n%s", diff)
	}
	var base strings.Builder
	for _, name := range []string{"crds", "namespace", "access", "manager", "surroundings"} {
		base.WriteString(files["kustomize/base/"+name+".yaml"] + "---\n")
	}
	if diff := cmp.Diff(kinds(t, files["install.yaml"]), kinds(t, base.String())); diff != "" {
		t.Errorf("the base for kustomize differs (-install.yaml +base):\n%s", diff)
	}
	for _, name := range []string{"chart/probe-operator/Chart.yaml", "chart/probe-operator/values.yaml", "chart/probe-operator/templates/manager.yaml", "chart/probe-operator/templates/uninstall.yaml", "olm/manifests/probe-operator.clusterserviceversion.yaml"} {
		tracetest.Compare(t, "testdata/package-"+filepath.Base(name), files[name], *update)
	}
}

// TestPackageVersion: Helm and OLM take only semantic versions, and tags need not be one.
func TestPackageVersion(t *testing.T) {
	tests := map[string]struct {
		why, image, version, want string
	}{
		"a version":     {why: "as it is", image: "example.org/p:1.2.3", want: "1.2.3"},
		"with a v":      {why: "as Go has it", image: "example.org/p:v1.2.3-rc.1", want: "1.2.3-rc.1"},
		"another tag":   {why: "the chart says which image it is for", image: "example.org:5000/p:main_2", want: "0.0.0-main-2"},
		"no tag":        {why: "the port of a registry is no tag", image: "example.org:5000/p", want: "0.0.0-latest"},
		"of its own":    {why: "who says it knows", image: "example.org/p:main", version: "2.0.0", want: "2.0.0"},
		"zeros in vain": {why: "Helm refuses 01.2.3", image: "example.org/p:01.2.3", want: "0.0.0-01-2-3"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			files := packaged(t, probeOperator(), "--image", tt.image, "--version", tt.version)
			if got := files["chart/probe-operator/Chart.yaml"]; !strings.Contains(got, "\nversion: "+tt.want+"\n") {
				t.Errorf("%s: want version %s in\n%s", tt.why, tt.want, got)
			}
		})
	}
}

// TestPackageOfOthers: what does not fit an operator is left out of its package.
func TestPackageOfOthers(t *testing.T) {
	global := probeOperator()
	global.CRDs = changedCRDs("scope: Namespaced", "scope: Cluster")
	files := packaged(t, global, "--", "--metrics-address=0")
	chart := "chart/probe-operator/"
	if text := files[chart+"values.yaml"]; strings.Contains(text, "namespaces:") || strings.Contains(text, "serviceMonitor:") {
		t.Errorf("an operator of a cluster-scoped kind without metrics has these values:\n%s", text)
	}
	for _, name := range []string{chart + "templates/metrics.yaml", chart + "templates/servicemonitor.yaml", "kustomize/components/monitoring/servicemonitor.yaml"} {
		if files[name] != "" {
			t.Errorf("an operator without metrics has %s", name)
		}
	}
	if text := files[chart+"templates/access.yaml"]; strings.Contains(text, ".Values.namespaces") {
		t.Error("the permissions depend on namespaces")
	}
}

func TestPackageRefuses(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "dist")
	tests := map[string]struct {
		why  string
		args []string
		want string
	}{
		"no folder":   {why: "it would be anywhere", args: nil, want: "0 folders are named; name the one to write to, as in probe-operator package dist"},
		"two folders": {why: "one is a mistake", args: []string{dir, dir}, want: "2 folders are named"},
		"no version":  {why: "Helm would refuse the chart", args: []string{dir, "--version", "one"}, want: `"one" is no semantic version, such as 1.2.3; set --version`},
		"a flag":      {why: "the manager would refuse it", args: []string{dir, "--", "--no-such"}, want: "flags of the manager: unknown flag: --no-such"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got := runArgs(t, probeOperator(), append([]string{"package"}, tt.args...)...)
			if got.Code != 1 || got.Out != "" || !strings.Contains(got.ErrOut, tt.want) {
				t.Errorf("%s: exit code %d, output %q, error %q; want 1, nothing, and %q", tt.why, got.Code, got.Out, got.ErrOut, tt.want)
			}
			if _, err := os.Stat(dir); err == nil {
				t.Error("it wrote something")
			}
		})
	}
}
