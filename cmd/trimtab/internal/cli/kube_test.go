package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"net"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/cmd/trimtab/internal/model"
	"github.com/trimtab-dev/trimtab/internal/probe"
	"github.com/trimtab-dev/trimtab/internal/thing"
	"github.com/trimtab-dev/trimtab/testenv"
)

// TestKube runs the commands that ask a cluster.
func TestKube(t *testing.T) {
	t.Parallel()
	cfg := testenv.Start(t)
	testenv.InstallFS(t, cfg, probe.AllCRDs)
	c, namespace, file := testenv.Client(t, cfg, probe.AddToScheme), testenv.Namespace(t, cfg), testenv.Kubeconfig(t, cfg)
	p := &probe.Probe{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "a"}, Spec: probe.ProbeSpec{Size: 11}}
	if err := c.Create(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	p.Status.ObservedGeneration, p.Status.State, p.Status.Message = 1, "TooLarge", "spec.size is more\nthan 10"
	for _, kind := range []string{"Ready", "Stalled"} {
		status := metav1.ConditionTrue
		if kind == "Ready" {
			status = metav1.ConditionFalse
		}
		meta.SetStatusCondition(&p.Status.Conditions, metav1.Condition{Type: kind, Status: status, Reason: "TooLarge", Message: p.Status.Message, ObservedGeneration: 1})
	}
	if err := c.Status().Update(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = taken.Close() })
	for name, tc := range map[string]struct {
		args []string
		code int
		want []string
	}{
		"why":            {[]string{"why", "probe/a"}, 0, []string{"Probe/a is not ready for ", "1  Probe/a  TooLarge  spec.size is more than 10  ◀ root cause", "Root cause     Told: spec.size is more", "Not the cause  not paused · generation 1 was observed", "What to do     correct what it says"}},
		"why, two words": {[]string{"why", "probes.probe.trimtab.dev", "a"}, 0, []string{"Probe/a is not ready"}},
		"status":         {[]string{"status", "probes"}, 0, []string{"NOT READY 1 of 1\n  TooLarge  Probe  " + namespace + "/a  ", "spec.size is more than 10\nREADY 0"}},
		"tree":           {[]string{"tree", "probe/a"}, 0, []string{"NAME     STATE     READY  AGE  MESSAGE\nProbe/a  TooLarge  ✗"}},
		"no such object": {[]string{"why", "probe/b"}, 1, []string{"trimtab: Probe " + namespace + "/b does not exist"}},
		"no such kind":   {[]string{"why", "prob/b"}, 1, []string{`the cluster has no kind "prob"; kubectl api-resources lists`}},
		"no name":        {[]string{"tree", "probe"}, 1, []string{`"probe" names no object; write KIND/NAME`}},
		"three words":    {[]string{"why", "probe/a", "b"}, 1, []string{`"probe/a b" names no object; write KIND/NAME`}},
		"ui for all":     {[]string{"ui", "--address", "0.0.0.0:0"}, 1, []string{"--address 0.0.0.0:0: use 127.0.0.1:PORT"}},
		"ui, taken port": {[]string{"ui", "--address", taken.Addr().String()}, 1, []string{"address already in use; use another port, or 0 for a free one"}},
		"ui, elsewhere":  {[]string{"ui", "--operator", "http://10.0.0.1:8082"}, 1, []string{"--operator http://10.0.0.1:8082: use http://127.0.0.1:PORT; an operator answers on loopback only, and kubectl port-forward"}},
		"ui, no port":    {[]string{"ui", "--operator", "http://127.0.0.1"}, 1, []string{"--operator http://127.0.0.1: use http://127.0.0.1:PORT; an operator answers on loopback only, and kubectl port-forward"}},
		"ui, no scheme":  {[]string{"ui", "--operator", "127.0.0.1:8082"}, 1, []string{"--operator 127.0.0.1:8082: use http://127.0.0.1:PORT; an operator answers on loopback only, and kubectl port-forward"}},
		"ui, https":      {[]string{"ui", "--operator", "https://127.0.0.1:8082"}, 1, []string{"--operator https://127.0.0.1:8082: use http://127.0.0.1:PORT; an operator answers on loopback only, and kubectl port-forward"}},
		"ui, a path":     {[]string{"ui", "--operator", "http://127.0.0.1:8082/debug/trace"}, 1, []string{"--operator http://127.0.0.1:8082/debug/trace: use http://127.0.0.1:PORT; an operator answers on loopback only, and kubectl port-forward"}},
		"output":         {[]string{"why", "probe/a", "-o", "yaml"}, 1, []string{`--output: "yaml" is not known; use json, or leave it out`}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			code, out := ask(t.Context(), append(tc.args, "-n", namespace, "--kubeconfig", file)...)
			if code != tc.code {
				t.Errorf("exit code %d", code)
			}
			for _, want := range tc.want {
				if !strings.Contains(out, want) {
					t.Errorf("printed\n%s\nwhich lacks %q", out, want)
				}
			}
		})
	}
	t.Run("JSON", func(t *testing.T) {
		t.Parallel()
		_, out := ask(t.Context(), "why", "probe/a", "-o", "json", "-n", namespace, "--kubeconfig", file)
		var e model.Explanation
		if err := json.Unmarshal([]byte(out), &e); err != nil {
			t.Fatalf("%v in %s", err, out)
		}
		if e.Cause == nil || e.Cause.Code != model.Told || len(e.Chain) != 1 || e.Chain[0].Name != "a" {
			t.Errorf("%+v", e)
		}
	})
}

// ask runs a command and returns its exit code and all that it prints.
func ask(ctx context.Context, args ...string) (int, string) {
	var out bytes.Buffer
	code := Main(ctx, args, Streams{In: strings.NewReader(""), Out: &out, Err: &out})
	return code, out.String()
}

// TestAct runs the commands that set annotations.
func TestAct(t *testing.T) {
	t.Parallel()
	cfg := testenv.Start(t)
	testenv.InstallFS(t, cfg, probe.AllCRDs)
	testenv.InstallFS(t, cfg, thing.CRDs)
	c, namespace, file := testenv.Client(t, cfg, probe.AddToScheme, thing.AddToScheme), testenv.Namespace(t, cfg), testenv.Kubeconfig(t, cfg)
	p := &probe.Probe{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "a"}}
	th := &thing.Thing{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "a"}}
	for _, obj := range []client.Object{p, th} {
		if err := c.Create(t.Context(), obj); err != nil {
			t.Fatal(err)
		}
	}
	run := func(code int, want string, args ...string) {
		t.Helper()
		got, out := ask(t.Context(), append(args, "-n", namespace, "--kubeconfig", file)...)
		if got != code || !strings.Contains(out, want) {
			t.Errorf("%q: exit code %d, printed %q; want %d and %q", args, got, out, code, want)
		}
	}
	annotation := func(key string) string {
		t.Helper()
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(th), th); err != nil {
			t.Fatal(err)
		}
		return th.Annotations[key]
	}
	run(0, "Thing/a: annotation trimtab.dev/paused: true\n  Effect  the external resource is observed and reported, and not changed, until it is resumed\n          a deletion of the object goes on\n  Undo    kubectl annotate thing a trimtab.dev/paused- -n "+namespace+" --kubeconfig="+file, "pause", "thing/a")
	if got := annotation(api.AnnotationPaused); got != "true" {
		t.Errorf("paused: %q", got)
	}
	before := time.Now()
	run(0, "and not changed, until 20", "pause", "thing/a", "--for", "2h")
	if got, err := time.Parse(time.RFC3339, annotation(api.AnnotationPaused)); err != nil || got.Before(before.Add(2*time.Hour-time.Second)) {
		t.Errorf("paused until %v: %v", got, err)
	}
	run(0, "Thing/a: annotation trimtab.dev/paused is removed\n  Effect  the external resource is changed again", "resume", "thing/a")
	run(0, "Thing/a: nothing to do: it is not paused", "resume", "thing/a")
	if got, has := th.Annotations[api.AnnotationPaused], annotation(api.AnnotationPaused) != ""; has {
		t.Errorf("still paused: %q", got)
	}
	run(1, "--for: -1h0m0s is in the past", "pause", "thing/a", "--for", "-1h")
	run(1, "objects of kind Probe have no external resource that could be paused; for a component, set", "pause", "probe/a")
	run(1, "Thing "+namespace+"/b does not exist", "resume", "thing/b")

	run(0, "Thing/a: asked", "reconcile", "thing/a", "--wait", "0")
	if annotation(api.AnnotationReconcile) == "" {
		t.Error("the annotation is not set")
	}
	run(1, "Thing/a: no operator has acted on it within 1s; what says more: kubectl trimtab why thing/a -n "+namespace+" --kubeconfig="+file, "reconcile", "thing/a", "--wait", "1s")
	acted := make(chan struct{})
	go func() { // the operator
		defer close(acted)
		p := testenv.Wait(t, c, p, "the request", func(p *probe.Probe) bool { return p.Annotations[api.AnnotationReconcile] != "" })
		p.Status.HandledReconcile, p.Status.State, p.Status.Message = p.Annotations[api.AnnotationReconcile], "Succeeded", "all is\nwell"
		if err := c.Status().Update(t.Context(), p); err != nil {
			t.Error(err)
		}
	}()
	run(0, "Probe/a: reconciled. Succeeded: all is well", "reconcile", "probe/a")
	<-acted // the command may see the write before the writer has its answer
}
