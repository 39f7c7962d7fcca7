package charts_test

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/trimtab-dev/trimtab/internal/probe"
	"github.com/trimtab-dev/trimtab/loop"
	operators "github.com/trimtab-dev/trimtab/operator"
	"helm.sh/helm/v4/pkg/action"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	releasev1 "helm.sh/helm/v4/pkg/release/v1"
	sigsyaml "sigs.k8s.io/yaml"
)

type idle struct{}

func (idle) Reconcile(context.Context, *loop.Run[*probe.Probe]) loop.Outcome { return loop.Done() }

// chartOfProbes returns the folder of the chart of an operator.
func chartOfProbes(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	var complaints bytes.Buffer
	code := operators.Run(t.Context(), []string{"package", dir, "--image", "example.org/probe:v1.0.0"}, io.Discard, &complaints, operators.Options{
		Name: "probes", AddToScheme: probe.AddToScheme, CRDs: probe.CRDs,
		Controllers: func() ([]operators.Controller, error) {
			return []operators.Controller{loop.New(idle{}, loop.Options[*probe.Probe]{})}, nil
		},
	})
	if code != 0 || complaints.Len() > 0 {
		t.Fatalf("exit code %d, %s", code, &complaints)
	}
	return filepath.Join(dir, "chart", "probes")
}

// TestPackageValues renders the chart of an operator with Helm, and looks at what each value changes.
func TestPackageValues(t *testing.T) {
	t.Parallel()
	chart := chartOfProbes(t)
	plain := []string{
		"ClusterRole probes", "ClusterRoleBinding probes", "CustomResourceDefinition probes.probe.trimtab.dev", "Deployment probes", "NetworkPolicy probes",
		"PodDisruptionBudget probes", "Role probes-leader-election", "RoleBinding probes-leader-election", "Service probes-metrics", "ServiceAccount probes",
		"hook ClusterRole probes-uninstall", "hook ClusterRoleBinding probes-uninstall", "hook Job probes-uninstall", "hook ServiceAccount probes-uninstall",
	}
	tests := map[string]struct {
		why, values  string
		more, less   []string // than plain
		texts, fails string   // that the manifests contain, and the error
	}{
		"none":       {why: "as it is made", texts: "image: \"example.org/probe:v1.0.0\"\n"},
		"keep":       {why: "objects survive", texts: "helm.sh/resource-policy: keep"},
		"digest":     {why: "it is no tag", values: "image: {tag: 'sha256:1234'}", texts: "image: \"example.org/probe@sha256:1234\"\n"},
		"arguments":  {why: "they follow those of the package", values: "args: [--log-level=debug]", texts: `args: ["manager","--log-level=debug"]`},
		"place":      {why: "pods and the hook run where they may", values: "nodeSelector: {a: b}\ntolerations: [{key: c}]", texts: `tolerations: [{"key":"c"}]`},
		"no CRDs":    {why: "somebody else installs them", values: "crds: {enabled: false}", less: []string{"CustomResourceDefinition probes.probe.trimtab.dev"}},
		"namespaces": {why: "no permission elsewhere", values: "namespaces: [a, b]", less: []string{"ClusterRoleBinding probes", "hook ClusterRoleBinding probes-uninstall"}, more: []string{"RoleBinding a/probes", "RoleBinding b/probes", "hook RoleBinding a/probes-uninstall", "hook RoleBinding b/probes-uninstall"}, texts: `args: ["manager","--watch-namespaces=a,b"]`},
		"namespaces, CRDs go": {
			why: "objects elsewhere would go with them", values: "namespaces: [a]\ncrds: {keep: false}",
			less: []string{"ClusterRoleBinding probes"}, more: []string{"RoleBinding a/probes"}, texts: `args: ["uninstall","--policy=refuse","--timeout=4m","--"]`,
		},
		"orphan":     {why: "the hook stops the operator", values: "uninstall: {policy: orphan}", more: []string{"hook Role probes-uninstall-stop", "hook RoleBinding probes-uninstall-stop"}, texts: `"--policy=orphan"`},
		"monitoring": {why: "it needs other operators", values: "metrics: {serviceMonitor: {enabled: true}, prometheusRule: {enabled: true}, dashboard: {enabled: true}}", more: []string{"ServiceMonitor probes", "PrometheusRule probes", "ConfigMap probes-dashboard"}, texts: "Objects of kind {{ $labels.kind }} have been failed"},
		"nothing besides": {
			why: "each can be left out", values: "metrics: {service: {enabled: false}}\nnetworkPolicy: {enabled: false}\npodDisruptionBudget: {enabled: false}",
			less: []string{"Service probes-metrics", "NetworkPolicy probes", "PodDisruptionBudget probes"},
		},
		"orphan without CRDs": {why: "one contradicts the other", values: "uninstall: {policy: orphan}\ncrds: {keep: false}", fails: "uninstall.policy=orphan leaves objects, and crds.keep=false deletes all of them; choose one of the two"},
		"policy":              {why: "a typo", values: "uninstall: {policy: keep}", fails: "uninstall/policy"},
		"a number as a name":  {why: "it is a namespace like others", values: "namespaces: ['123']", less: []string{"ClusterRoleBinding probes", "hook ClusterRoleBinding probes-uninstall"}, more: []string{"RoleBinding 123/probes", "hook RoleBinding 123/probes-uninstall"}},
		"no name":             {why: "it would be an object of somebody's choice", values: "namespaces: [\"a\\n---\\nkind: ClusterRoleBinding\"]", fails: "namespaces/0"},
		"no policy":           {why: "null takes the default away", values: "uninstall: {policy: null}", fails: "missing property 'policy'"},
		"unknown":             {why: "a typo", values: "replica: 2", fails: "replica"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, text, err := rendered(t, chart, tt.values)
			if tt.fails != "" {
				if err == nil || !strings.Contains(err.Error(), tt.fails) {
					t.Errorf("%s: error %v, want one with %q", tt.why, err, tt.fails)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			want := slices.DeleteFunc(slices.Concat(plain, tt.more), func(o string) bool { return slices.Contains(tt.less, o) })
			slices.Sort(want)
			slices.Sort(got)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tt.why, diff)
			}
			if !strings.Contains(text, tt.texts) {
				t.Errorf("%s: want %q in\n%s", tt.why, tt.texts, text)
			}
		})
	}
}

// rendered returns the objects that Helm makes of a chart with values, and all manifests.
func rendered(t *testing.T, folder, values string) (objects []string, text string, err error) {
	t.Helper()
	c, err := loader.LoadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	var v map[string]any
	if err := sigsyaml.Unmarshal([]byte(values), &v); err != nil {
		t.Fatal(err)
	}
	i := action.NewInstall(action.NewConfiguration(action.ConfigurationSetLogger(slog.DiscardHandler)))
	i.DryRunStrategy, i.Replace, i.ReleaseName, i.Namespace = action.DryRunClient, true, "probes", "ops"
	r, err := i.RunWithContext(t.Context(), c, v)
	if err != nil {
		return nil, "", err
	}
	release, is := r.(*releasev1.Release)
	if !is {
		t.Fatalf("a release of type %T", r)
	}
	manifests := release.Manifest
	for _, h := range release.Hooks {
		manifests += "\n---\n" + h.Manifest
	}
	for _, document := range strings.Split(manifests, "\n---\n") {
		var o struct {
			Kind     string
			Metadata struct {
				Name, Namespace string
				Annotations     map[string]string
			}
		}
		if err := sigsyaml.Unmarshal([]byte(document), &o); err != nil {
			t.Fatalf("%v in\n%s", err, document)
		}
		if o.Kind == "" {
			continue
		}
		name := o.Kind + " "
		if o.Metadata.Annotations["helm.sh/hook"] != "" {
			name = "hook " + name
		}
		if o.Metadata.Namespace != "" && o.Metadata.Namespace != "ops" {
			name += o.Metadata.Namespace + "/"
		}
		objects = append(objects, name+o.Metadata.Name)
	}
	return objects, manifests, nil
}
