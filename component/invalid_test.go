package component_test

import (
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/component"
	"github.com/trimtab-dev/trimtab/internal/bundle"
	"github.com/trimtab-dev/trimtab/testenv"
)

const twice = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 0
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - name: a
        image: a
        env: [{name: X, value: "1"}, {name: X, value: "2"}]
`

// TestInvalidManifests: the message about an invalid manifest has the words of the API server and says what to do. The
// manifest is not sent again before something changes.
func TestInvalidManifests(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		manifest, annotation, value string
		want                        string // the end of the message
		wrong, right                string // what is wrong in the manifest, and how it is mended
	}{
		"a variable twice": {
			twice, "update-policy", "ssa-override",
			`spec.template.spec.containers[name="a"].env: duplicate entries for key [name="X"]; remove one of the two, or set %/update-policy: replace, with which the last one counts`,
			`, {name: X, value: "2"}`, "",
		},
		"a number": {
			`{apiVersion: v1, kind: ConfigMap, metadata: {name: web}, data: {port: 8080}}`, "update-policy", "ssa-override",
			`data.port: expected string, got 8080; quote the value`, "8080", `"8080"`,
		},
		"a number, replaced": {
			`{apiVersion: v1, kind: ConfigMap, metadata: {name: web}, data: {port: 8080}}`, "update-policy", "replace",
			`data: expected string, got number; quote the value`, "8080", `"8080"`,
		},
		"a number, once": {
			`{apiVersion: v1, kind: ConfigMap, metadata: {name: web}, data: {port: 8080}}`, "reconcile-policy", "once",
			`data.port: expected string, got 8080; quote the value`, "8080", `"8080"`,
		},
		"a map and a number": {
			`{apiVersion: v1, kind: ConfigMap, metadata: {name: web}, data: {a: {b: c}, port: 8080}}`, "update-policy", "ssa-override",
			`data.a: expected string, got map; data.port: expected string, got 8080; write the value as text, for example after a |; quote the value`,
			`{a: {b: c}, port: 8080}`, `{a: "b", port: "8080"}`,
		},
		"a name": {
			`{apiVersion: v1, kind: ConfigMap, metadata: {name: a_b}}`, "update-policy", "ssa-override",
			`; rename the object`, "a_b", "a-b",
		},
		"a typing error": {
			`{apiVersion: v1, kind: Service, metadata: {name: web}, spec: {ports: [{port: 80}], selektor: {a: b}}}`, "update-policy", "ssa-override",
			`spec.selektor: field not declared in schema; correct the name of the field or remove it`, "selektor", "selector",
		},
		"a value that a new object gets": {
			`{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {replicas: -1, selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: a, image: a}]}}}}`,
			"ignore-after-creation", "/spec/replicas",
			`spec.replicas: Invalid value: -1: must be greater than or equal to 0; change the manifest`, "-1", "0",
		},
	}
	for _, name := range slices.Sorted(maps.Keys(tests)) {
		test := tests[name]
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			as := func(manifest string) *unstructured.Unstructured {
				u := b.manifests(manifest)[0]
				u.SetAnnotations(map[string]string{b.key(test.annotation): test.value})
				return u
			}
			u := as(test.manifest)
			b.create(u, configMap("beside", "1"))
			want := strings.ReplaceAll(test.want, "%", b.operator)
			o := b.await("Stalled", func(o *bundle.Bundle) bool {
				return o.Status.State == component.StateError && meta.IsStatusConditionTrue(o.Status.Conditions, api.ConditionStalled)
			})
			if text := o.Status.Message; !strings.HasPrefix(text, "cannot create "+u.GetKind()+" "+b.namespace+"/"+u.GetName()+": ") ||
				!strings.HasSuffix(text, want) || strings.Contains(text, "&") || strings.Contains(text, "Go ") {
				t.Errorf("message %q, want the end %q", text, want)
			}
			if meta.IsStatusConditionTrue(o.Status.Conditions, api.ConditionReconciling) {
				t.Error("it says that it goes on by itself")
			}
			b.requests.Reset()
			b.merge("them", b.named("beside"), `{"data":{"value":"theirs"}}`) // another pass, for another reason
			b.value("beside", "1")
			if sent := b.sent(); sent.Dependents != 1 {
				t.Errorf("sent again although nothing of it changed: %s", b.requests)
			}
			b.fence() // requests a pass
			if sent := b.sent(); sent.Dependents != 2 {
				t.Errorf("a pass was requested, and the manifest was not sent again: %s", b.requests)
			}
			b.change(as(strings.Replace(test.manifest, test.wrong, test.right, 1)), configMap("beside", "1"))
			b.ready()
			b.delete()
			b.gone()
		})
	}
	t.Run("the policy that accepts it", func(t *testing.T) {
		t.Parallel()
		b := newBench(t)
		u := b.manifests(twice)[0]
		u.SetAnnotations(map[string]string{b.key("update-policy"): "replace"})
		b.create(u)
		b.ready()
	})
}

// TestMissingOwner: the garbage collector deletes what belongs to an object that does not exist.
func TestMissingOwner(t *testing.T) {
	t.Parallel()
	const pause = 3 * time.Second
	b := newBench(t, func(o *options) { o.CorrectInterval = pause })
	u := b.manifests(`
apiVersion: v1
kind: ConfigMap
metadata:
  name: web
  ownerReferences: [{apiVersion: apps/v1, kind: Deployment, name: gone, uid: 3f2504e0-4f89-11d3-9a0c-0305e82c3301}]
`)[0]
	b.create(u)
	o := b.await("contended", func(o *bundle.Bundle) bool {
		return meta.IsStatusConditionTrue(o.Status.Conditions, api.ConditionContended)
	})
	message := meta.FindStatusCondition(o.Status.Conditions, api.ConditionContended).Message
	want := []string{"the garbage collector deletes it", "Deployment gone with the UID 3f2504e0-4f89-11d3-9a0c-0305e82c3301, does not exist", "metadata.ownerReferences"}
	if !containsAll(message, want) {
		t.Errorf("message %q, want %q", message, want)
	}
	b.change(configMap("web", "1"))
	b.ready()
}

// TestDeletedKind: nothing is asked about a kind that went with its component.
func TestDeletedKind(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.createAs("other", configMap("other", "1"))
	b.create(plain(b.baz()), b.bazOf("one"))
	b.ready()
	b.delete()
	b.gone()
	resource := strings.ToLower(b.baz().Kind) + "s"
	asked := func() int {
		return len(b.requests.Select(func(r testenv.Request) bool {
			return r.Resource == resource && r.Verb == "watch" && r.Code == http.StatusNotFound
		}))
	}
	within(t, "the watch to learn that the kind is gone", func() bool { return asked() > 0 })
	b.requests.Reset()
	began := time.Now()
	for i := 0; time.Since(began) < 3*time.Second; i++ { // a stream tries again after 0.8 to 1.6 s
		b.changeAs("other", configMap("other", strconv.Itoa(i+2)))
		b.readyAs("other")
	}
	if n := asked(); n > 0 {
		t.Errorf("%d more requests for a kind that is gone", n)
	}
}
