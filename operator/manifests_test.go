package operator_test

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/trimtab-dev/trimtab/internal/probe"
	"github.com/trimtab-dev/trimtab/loop"
	"github.com/trimtab-dev/trimtab/operator"
	"github.com/trimtab-dev/trimtab/trace/tracetest"
)

var update = flag.Bool("update", false, "accept what is printed now into testdata")

// ran is what one run of an operator's command line did.
type ran struct {
	Code   int
	Out    string
	ErrOut string
}

func runArgs(t *testing.T, o operator.Options, args ...string) ran {
	t.Helper()
	var out, errOut bytes.Buffer
	code := operator.Run(t.Context(), args, &out, &errOut, o)
	return ran{code, out.String(), errOut.String()}
}

func TestPrintedManifests(t *testing.T) {
	tests := map[string]struct {
		why  string
		args []string
	}{
		"rbac":                   {why: "what to apply after a permission was added", args: []string{"rbac"}},
		"all":                    {why: "a whole installation, flags passed on", args: []string{"--namespace", "ops", "--image", "example.org/probe:v1", "--", "--greeting", "ahoy", "--health-address", ":9000", "--metrics-address=0"}},
		"rbac in two namespaces": {why: "no permission elsewhere", args: []string{"rbac", "--", "--watch-namespaces=a,b"}},
		"by default":             {why: "everything has a default", args: nil},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			o := probeOperator()
			o.CRDs = nil // the CRD is as it was generated, see TestCRDsAreUnchanged
			got := runArgs(t, o, append([]string{"manifests"}, tt.args...)...)
			want := "probe-operator: warning: operator.Options.CRDs contains no CRD for Probe.probe.trimtab.dev; the cluster must have it already\n"
			if slices.Contains(tt.args, "rbac") {
				want = "" // roles do not depend on it
			}
			if got.Code != 0 || got.ErrOut != want {
				t.Fatalf("%s: exit code %d, complaint %q, want 0, %q", tt.why, got.Code, got.ErrOut, want)
			}
			tracetest.Compare(t, "testdata/manifests-"+strings.ReplaceAll(name, " ", "-")+".yaml", got.Out, *update)
		})
	}
}

func TestCRDsAreUnchanged(t *testing.T) {
	names, err := fs.Glob(probe.CRDs, "crds/*.yaml")
	if err != nil || len(names) != 1 {
		t.Fatalf("files %q, error %v", names, err)
	}
	file, err := fs.ReadFile(probe.CRDs, names[0])
	if err != nil {
		t.Fatal(err)
	}
	got := runArgs(t, probeOperator(), "manifests", "crds")
	if diff := cmp.Diff(asObject(t, file), asObject(t, []byte(got.Out))); diff != "" {
		t.Errorf("the definition that installs differs from the generated one (-generated +printed):\n%s", diff)
	}
}

func TestCommandLine(t *testing.T) {
	broken := probeOperator()
	broken.Controllers = func() ([]operator.Controller, error) { return nil, errors.New("--greeting is empty") }
	unregistered := probeOperator()
	unregistered.AddToScheme = nil
	global := probeOperator()
	global.CRDs = changedCRDs("scope: Namespaced", "scope: Cluster")
	mute := probeOperator()
	mute.CRDs = changedCRDs("    subresources:\n      status: {}\n", "")
	tests := map[string]struct {
		why     string
		options operator.Options
		args    []string
		want    string // in the only line on standard error
	}{
		"unknown flag":    {why: "a typo", args: []string{"--greting", "x"}, want: "unknown flag: --greting; see probe-operator manager --help"},
		"unknown command": {why: "a typo", args: []string{"manger"}, want: `unknown command "manger" for "probe-operator"`},
		"unknown part":    {why: "a typo", args: []string{"manifests", "crd"}, want: `unknown manifests "crd"; use crds, rbac or all`},
		"two parts":       {why: "all covers it", args: []string{"manifests", "crds", "rbac"}, want: "too many arguments"},
		"unknown flag of manager": {
			why: "it would fail in the cluster, later", args: []string{"manifests", "--", "--no-such"},
			want: "flags of the manager: unknown flag: --no-such",
		},
		"unregistered kind": {
			why: "the type is what to look for", options: unregistered, args: []string{"manifests"},
			want: "probe-operator: the kind of a controller is not registered; add it in operator.Options.AddToScheme: no kind is registered for the type probe.Probe\n",
		},
		"port by chance":     {why: "a manifest has to know the port", args: []string{"manifests", "--", "--health-address=:0"}, want: "--health-address :0: manifests need a numeric port"},
		"log level":          {why: "a typo", args: []string{"--log-level", "loud"}, want: `--log-level "loud": use debug, info, warn or error`},
		"log format":         {why: "a typo", args: []string{"--log-format", "xml"}, want: `--log-format "xml": use text, json or auto`},
		"author's own check": {why: "its sentence comes out as it is", options: broken, args: []string{"manifests"}, want: "probe-operator: --greeting is empty\n"},
		"namespaces of a global kind": {
			why: "a role in a namespace cannot grant it", options: global, args: []string{"manifests", "--", "--watch-namespaces=a"},
			want: "--watch-namespaces: Probe is cluster-scoped; omit the flag",
		},
		"no status": {
			why: "a marker was forgotten, and every object would be silent", options: mute, args: []string{"manifests"},
			want: "probe-operator: the CRD of Probe has no status subresource, so status could not be written; " +
				"put //+kubebuilder:subresource:status above type Probe and generate the CRD again\n",
		},
		"no name": {why: "every problem at once", options: operator.Options{Name: "Not A Label"}, want: "neither Controllers nor Setup"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			o := tt.options
			if o.Name == "" {
				o = probeOperator()
			}
			got := runArgs(t, o, tt.args...)
			if got.Code != 1 || got.Out != "" || !strings.Contains(got.ErrOut, tt.want) {
				t.Errorf("%s: exit code %d, output %q, error %q; want 1, nothing, and %q", tt.why, got.Code, got.Out, got.ErrOut, tt.want)
			}
		})
	}
}

func TestHelpAndVersion(t *testing.T) {
	for arg, want := range map[string]string{"version": "probe-operator ", "--help": "manifests", "-h": "manager"} {
		got := runArgs(t, probeOperator(), arg)
		if got.Code != 0 || !strings.Contains(got.Out, want) {
			t.Errorf("%s: exit code %d, output %q; want 0 and %q", arg, got.Code, got.Out, want)
		}
	}
	got := runArgs(t, probeOperator(), "manager", "--help")
	if !strings.Contains(got.Out, "--greeting") || !strings.Contains(got.Out, "--leader-elect") {
		t.Errorf("help does not show the operator's own and the common flags:\n%s", got.Out)
	}
}

// withNeeds is an operator whose one controller has extra needs.
func withNeeds(needs ...loop.Need) operator.Options {
	o := probeOperator()
	o.Controllers = func() ([]operator.Controller, error) {
		word := ""
		return []operator.Controller{loop.New(greeter{&word}, loop.Options[*probe.Probe]{Needs: needs})}, nil
	}
	return o
}

func TestRules(t *testing.T) {
	gvk := func(group, kind string) schema.GroupVersionKind {
		return schema.GroupVersionKind{Group: group, Version: "v1", Kind: kind}
	}
	own := []string{
		"events.k8s.io: events: create,patch",
		"probe.trimtab.dev: probes: get,list,watch,patch",
		"probe.trimtab.dev: probes/status: patch",
	}
	tests := map[string]struct {
		why   string
		needs []loop.Need
		want  []string
	}{
		"none": {why: "what the loop itself uses", want: own},
		"the same twice": {
			why:   "two controllers may need the same",
			needs: []loop.Need{{GroupVersionKind: gvk("probe.trimtab.dev", "Probe"), Verbs: []string{"watch", "get"}}},
			want:  own,
		},
		"merged by resource, grouped by verbs": {
			why: "few rules are easier to review",
			needs: []loop.Need{
				{GroupVersionKind: gvk("", "Service"), Verbs: []string{"patch", "get"}},
				{GroupVersionKind: gvk("", "ConfigMap"), Verbs: []string{"get"}},
				{GroupVersionKind: gvk("", "ConfigMap"), Verbs: []string{"patch"}},
				{GroupVersionKind: gvk("networking.k8s.io", "NetworkPolicy"), Verbs: []string{"impersonate", "delete", "bind"}},
				{GroupVersionKind: gvk("networking.k8s.io", "Ingress"), Subresource: "status", Verbs: []string{"get"}},
			},
			want: append([]string{": configmaps,services: get,patch"}, append(own[:1:1],
				"networking.k8s.io: ingresses/status: get",
				"networking.k8s.io: networkpolicies: delete,bind,impersonate",
				own[1], own[2])...),
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			objects, err := operator.Manifests(withNeeds(tt.needs...), operator.ManifestOptions{})
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, r := range find[*rbacv1.ClusterRole](t, objects).Rules {
				got = append(got, fmt.Sprintf("%s: %s: %s", strings.Join(r.APIGroups, ","), strings.Join(r.Resources, ","), strings.Join(r.Verbs, ",")))
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tt.why, diff)
			}
		})
	}
}

func TestNeedsThatCannotBe(t *testing.T) {
	_, err := operator.Manifests(withNeeds(
		loop.Need{GroupVersionKind: probe.GroupVersion.WithKind("Gone"), Verbs: []string{"get"}},
		loop.Need{GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: "Pod"}},
	), operator.ManifestOptions{})
	for _, want := range []string{"no CRD of the operator defines Gone.probe.trimtab.dev", "must have a kind and verbs"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want every problem at once, among them %q; got: %v", want, err)
		}
	}
}

func TestStrayFilesAmongCRDs(t *testing.T) {
	for name, tt := range map[string]struct{ why, content, want string }{
		"another kind": {why: "would be lost silently", content: "kind: ConfigMap\n", want: "x.yaml: contains a ConfigMap"},
		"a typo":       {why: "would be lost silently", content: "kind: CustomResourceDefinition\nspecs: {}\n", want: `unknown field "specs"`},
	} {
		o := probeOperator()
		o.CRDs = fstest.MapFS{"x.yaml": {Data: []byte(tt.content)}, "README.md": {Data: []byte("# x")}}
		if _, err := operator.Manifests(o, operator.ManifestOptions{}); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %s: want %q, got: %v", name, tt.why, tt.want, err)
		}
	}
}

// The pod must outlive the manager's own patience, or the kubelet kills it in mid-pass.
func TestGracePeriodFollowsTheFlag(t *testing.T) {
	objects, err := operator.Manifests(probeOperator(), operator.ManifestOptions{Args: []string{"--shutdown-timeout=2m"}})
	if err != nil {
		t.Fatal(err)
	}
	if got := *find[*appsv1.Deployment](t, objects).Spec.Template.Spec.TerminationGracePeriodSeconds; got != 130 {
		t.Errorf("grace period %d s, want 130: two minutes and a margin", got)
	}
}

func find[T client.Object](t *testing.T, objects []client.Object) T {
	t.Helper()
	for _, o := range objects {
		if typed, ok := o.(T); ok {
			return typed
		}
	}
	t.Fatalf("no %T among the manifests", *new(T))
	panic("unreachable")
}

func asObject(t *testing.T, data []byte) map[string]any {
	t.Helper()
	var m map[string]any
	if err := yaml.Unmarshal(data, &m); err != nil {
		t.Fatal(err)
	}
	return m
}

// TestCredentialsAmongArguments: they are passed on as they are, and somebody is told.
func TestCredentialsAmongArguments(t *testing.T) {
	got := runArgs(t, probeOperator(), "manifests", "--", "--greeting", "nats://app:hunter2@nats:4222")
	if got.Code != 0 || !strings.Contains(got.ErrOut, `warning: "nats://(sensitive)@nats:4222" looks like it contains credentials`) || strings.Contains(got.ErrOut, "hunter2") {
		t.Errorf("exit code %d, complaint %q", got.Code, got.ErrOut)
	}
}

// TestNamesAreTaken: two controllers with one name have one field manager, which is an error before anything runs.
func TestNamesAreTaken(t *testing.T) {
	t.Parallel()
	two := func(name string) operator.Options {
		o := probeOperator()
		o.Controllers = func() ([]operator.Controller, error) {
			return []operator.Controller{
				loop.New(greeter{new("hello")}, loop.Options[*probe.Probe]{}),
				loop.New(greeter{new("hello")}, loop.Options[*probe.Probe]{Name: name}),
			}, nil
		}
		return o
	}
	const want = `the controllers of Probe.probe.trimtab.dev and of Probe.probe.trimtab.dev are both named "probe" and have one field manager, ` +
		"so each would take back what the other one writes; set Options.Name of one of them"
	if _, err := operator.Manifests(two(""), operator.ManifestOptions{Namespace: "n"}); err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	if _, err := operator.Manifests(two("probe-auditor"), operator.ManifestOptions{Namespace: "n"}); err != nil {
		t.Errorf("two controllers of one kind with names of their own: %v", err)
	}
}
