package state_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/history"
	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/state"
)

const (
	uid1 = "0a1b2c3d-0000-4000-8000-000000000001"
	uid2 = "0a1b2c3d-0000-4000-8000-000000000002" // the same object, made again
	uid3 = "99999999-0000-4000-8000-000000000003"
)

// object reads a manifest; resource is "databases.demo.dev".
func object(t testing.TB, resource, manifest string) state.Object {
	t.Helper()
	u := &unstructured.Unstructured{}
	b, err := yaml.YAMLToJSON([]byte(manifest))
	if err != nil {
		t.Fatal(err)
	}
	if err := u.UnmarshalJSON(b); err != nil {
		t.Fatal(err)
	}
	resource, group, _ := strings.Cut(resource, ".")
	return state.Object{Group: group, Resource: resource, Object: u}
}

// lists are those of a kind with these fields in its spec.
func lists(t testing.TB, fields string) map[string]*state.Lists {
	t.Helper()
	schema := &apiextensionsv1.JSONSchemaProps{}
	if err := yaml.UnmarshalStrict([]byte("{type: object, properties: {spec: {type: object, properties: {"+fields+"}}}}"), schema); err != nil {
		t.Fatal(err)
	}
	return state.ListsOf([]*apiextensionsv1.CustomResourceDefinition{{Spec: apiextensionsv1.CustomResourceDefinitionSpec{
		Group: "demo.dev", Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "databases"},
		Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{Storage: true, Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: schema}}},
	}}})
}

const database = `
apiVersion: demo.dev/v1
kind: Database
metadata:
  name: shop
  namespace: default
  uid: UID
  resourceVersion: "17"
  generation: 3
  creationTimestamp: "2000-01-01T00:00:00Z"
  managedFields: [{manager: me}]
  finalizers: [z.dev/b, demo.dev/a]
  labels: {fault.kubesim/touched: "5"}
  annotations:
    fault.kubesim/touched: "5"
    example.com/at: noon
spec: {size: 3, name: "yes", zones: [b, a], empty: {}, none: []}
status:
  observedGeneration: 3
  id: q-7
  lastSeen: "2000-01-01T00:03:20.5+00:00"
  text: |
    two
    lines
  conditions:
  - {type: Synced, status: "True", reason: Fine, message: "q-7 since 2000-01-01T00:00:09Z", lastTransitionTime: "2000-01-01T00:00:09Z", observedGeneration: 2}
  - {type: Ready, status: "True", reason: Fine, message: "", lastTransitionTime: "2000-01-01T00:00:09Z", observedGeneration: 3}
`

const secret = `
apiVersion: v1
kind: Secret
metadata:
  name: shop-UID
  namespace: default
  ownerReferences: [{apiVersion: demo.dev/v1, kind: Database, name: shop, uid: UID}]
data: {id: cS03, raw: /w==}
`

func with(manifest, uid string) string { return strings.ReplaceAll(manifest, "UID", uid) }

func TestOf(t *testing.T) {
	lease := object(t, "leases.coordination.k8s.io", "{apiVersion: coordination.k8s.io/v1, kind: Lease, metadata: {name: l}}")
	event := object(t, "events", "{apiVersion: v1, kind: Event, metadata: {name: e}}")
	service := object(t, "services", "{apiVersion: v1, kind: Service, metadata: {name: s}, spec: {clusterIP: 10.0.0.7, clusterIPs: [10.0.0.7], ports: [{port: 1, nodePort: 30001}]}}")
	headless := object(t, "services", "{apiVersion: v1, kind: Service, metadata: {name: h}, spec: {clusterIP: None}}")
	got := state.Of([]state.Object{
		lease, event, service, headless,
		object(t, "databases.demo.dev", with(database, uid1)), object(t, "secrets", with(secret, uid1)),
	}, []history.Resource{{Kind: "queue", ID: "q-7", Owner: uid1, State: "size 3, tag " + uid1, Ready: true}, {Kind: "queue", ID: "p-1"}}, state.Options{})
	want := history.State{
		Objects: map[string]string{
			"services s": "apiVersion: v1\nkind: Service\nmetadata:\n  name: s\nspec:\n  ports:\n  - port: 1\n",
			"services h": "apiVersion: v1\nkind: Service\nmetadata:\n  name: h\nspec:\n  clusterIP: None\n",
			"secrets default/shop-uid(databases.demo.dev default/shop)": `apiVersion: v1
data:
  id: id(queue of databases.demo.dev default/shop)
  raw: /w==
kind: Secret
metadata:
  name: shop-uid(databases.demo.dev default/shop)
  namespace: default
  ownerReferences:
  - name: shop
    apiVersion: demo.dev/v1
    kind: Database
    uid: uid(databases.demo.dev default/shop)
`,
			"databases.demo.dev default/shop": `apiVersion: demo.dev/v1
kind: Database
metadata:
  annotations:
    example.com/at: noon
  finalizers:
  - demo.dev/a
  - z.dev/b
  name: shop
  namespace: default
spec:
  empty: {}
  name: "yes"
  size: 3
  zones:
  - b
  - a
status:
  conditions:
  - type: Ready
    lastTransitionTime: T
    message: ""
    observedGeneration: current
    reason: Fine
    status: "True"
  - type: Synced
    lastTransitionTime: T
    message: id(queue of databases.demo.dev default/shop) since T
    observedGeneration: behind by 1
    reason: Fine
    status: "True"
  id: id(queue of databases.demo.dev default/shop)
  lastSeen: T
  observedGeneration: current
  text: |
    two
    lines
`,
		},
		Resources: []history.Resource{
			{Kind: "queue", ID: "id(queue of databases.demo.dev default/shop)", Owner: "uid(databases.demo.dev default/shop)", State: "size 3, tag uid(databases.demo.dev default/shop)", Ready: true},
			{Kind: "queue", ID: "p-1"},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("state (-want +got):\n%s", diff)
	}
}

// TestAddresses proves that the address of a Pod whose name the server has made up differs no more than its name: also in the
// status of an object that copies it, and if there are several such Pods.
func TestAddresses(t *testing.T) {
	of := func(names ...string) history.State {
		var all []state.Object
		copied := "{apiVersion: demo.dev/v1, kind: Database, metadata: {name: a}, status: {head: 10.0.0." + names[0] + ", url: 'tcp://10.0.0." + names[0] + ":80', all: ["
		for i, n := range names {
			all = append(all, object(t, "pods", fmt.Sprintf(
				"{apiVersion: v1, kind: Pod, metadata: {name: w-%s, generateName: w-}, spec: {nodeName: n%d}, status: {podIP: 10.0.0.%s, podIPs: [{ip: 10.0.0.%s}]}}", n, i, n, n)))
			copied += "10.0.0." + n + ", "
		}
		return state.Of(append(all, object(t, "databases.demo.dev", copied+"]}}")), nil, state.Options{})
	}
	for _, names := range [][2][]string{{{"11111"}, {"22222"}}, {{"11111", "33333"}, {"44444", "22222"}}} {
		if diff := state.Diff(of(names[0]...), of(names[1]...)); diff != "" {
			t.Errorf("Pods with the addresses %q differ from others:\n%s", names, diff)
		}
	}
	other := object(t, "databases.demo.dev", "{apiVersion: demo.dev/v1, kind: Database, metadata: {name: a}, status: {head: 10.9.9.9}}")
	if state.Equal(of("11111"), state.Of([]state.Object{other}, nil, state.Options{})) {
		t.Error("the address of no Pod is like that of one")
	}
}

// TestRevisions proves that two StatefulSets whose templates differ in a time only are equal, with their Pods, and that a Pod of
// the revision before is not like one of the present one.
func TestRevisions(t *testing.T) {
	of := func(update, current, pod string) history.State {
		return state.Of([]state.Object{
			object(t, "statefulsets.apps", fmt.Sprintf(
				"{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: db}, status: {updateRevision: db-%s, currentRevision: db-%s}}", update, current)),
			object(t, "pods", fmt.Sprintf("{apiVersion: v1, kind: Pod, metadata: {name: db-0, labels: {controller-revision-hash: db-%s}}}", pod)),
		}, nil, state.Options{})
	}
	for _, others := range [][2]history.State{{of("1a", "1a", "1a"), of("2b", "2b", "2b")}, {of("1a", "2b", "2b"), of("3c", "4d", "4d")}} {
		if diff := state.Diff(others[0], others[1]); diff != "" {
			t.Errorf("the names of revisions count:\n%s", diff)
		}
	}
	for _, other := range []history.State{of("1a", "2b", "1a"), of("1a", "2b", "2b"), of("1a", "1a", "9z")} {
		if state.Equal(of("1a", "1a", "1a"), other) {
			t.Errorf("a StatefulSet that is updated, with its Pod, is like one that is not:\n%v", other)
		}
	}
}

// TestEqual proves that what means the same is equal, and what does not is not.
func TestEqual(t *testing.T) {
	things := func(id, owner string) []history.Resource {
		return []history.Resource{{Kind: "queue", ID: id, Owner: owner, State: "on", Ready: true}}
	}
	generated := func(name, text string) state.Object {
		return object(t, "pods", "{apiVersion: v1, kind: Pod, metadata: {generateName: job-, name: "+name+"}, spec: {text: "+text+"}}")
	}
	base := func(uid, id string) ([]state.Object, []history.Resource) {
		return []state.Object{object(t, "databases.demo.dev", strings.ReplaceAll(with(database, uid), "q-7", id))}, things(id, uid)
	}
	type side struct {
		objects []state.Object
		things  []history.Resource
	}
	of := func(uid, id string) side { o, th := base(uid, id); return side{o, th} }
	edited := func(old, with string) side {
		return side{[]state.Object{object(t, "databases.demo.dev", strings.Replace(strings.ReplaceAll(database, "UID", uid1), old, with, 1))}, things("q-7", uid1)}
	}
	tests := map[string]struct {
		why  string
		a, b side
		o    state.Options
		want bool
	}{
		"made again":            {"a new UID and a new id of the vendor mean nothing", of(uid1, "q-7"), of(uid2, "q-8"), state.Options{}, true},
		"names the old thing":   {"the recorded id is not of what lives", of(uid1, "q-7"), side{of(uid1, "q-7").objects, things("q-8", uid1)}, state.Options{}, false},
		"part of a word":        {"q-77 is not q-7", edited("id: q-7", "id: q-77"), edited("id: q-7", "id: q-78"), state.Options{}, false},
		"end of a word":         {"faq-7 is not q-7", edited("id: q-7", "id: faq-7"), side{[]state.Object{object(t, "databases.demo.dev", strings.ReplaceAll(strings.Replace(with(database, uid1), "id: q-7", "id: faq-8", 1), "q-7 since", "q-8 since"))}, things("q-8", uid1)}, state.Options{}, false},
		"owner of before":       {"the thing's tag names an incarnation that is gone", of(uid1, "q-7"), side{of(uid2, "q-7").objects, things("q-7", uid1)}, state.Options{}, false},
		"another spec":          {"size is what the user wants", of(uid1, "q-7"), edited("size: 3", "size: 4"), state.Options{}, false},
		"a number as a string":  {"3 is not \"3\"", of(uid1, "q-7"), edited("size: 3", `size: "3"`), state.Options{}, false},
		"order of a list":       {"zones may have an order", of(uid1, "q-7"), edited("[b, a]", "[a, b]"), state.Options{}, false},
		"order of finalizers":   {"they are a set", of(uid1, "q-7"), edited("[z.dev/b, demo.dev/a]", "[demo.dev/a, z.dev/b]"), state.Options{}, true},
		"a set":                 {"the schema says so", of(uid1, "q-7"), edited("[b, a]", "[a, b]"), state.Options{Lists: lists(t, "zones: {type: array, items: {type: string}, x-kubernetes-list-type: set}")}, true},
		"another set":           {"not the same elements", of(uid1, "q-7"), edited("[b, a]", "[b, c]"), state.Options{Lists: lists(t, "zones: {type: array, items: {type: string}, x-kubernetes-list-type: set}")}, false},
		"a list that is atomic": {"then it may have an order", of(uid1, "q-7"), edited("[b, a]", "[a, b]"), state.Options{Lists: lists(t, "zones: {type: array, items: {type: string}, x-kubernetes-list-type: atomic}")}, false},
		"a map by two keys": {
			"the schema names the keys", edited("[b, a]", "[{host: a, zone: x}, {host: a, zone: y}]"), edited("[b, a]", "[{host: a, zone: y}, {host: a, zone: x}]"),
			state.Options{Lists: lists(t, "zones: {type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [host, zone], items: {type: object, properties: {host: {type: string}, zone: {type: string}}}}")},
			true,
		},
		"deleting":           {"deletionTimestamp counts, its time does not", of(uid1, "q-7"), edited("generation: 3", `deletionTimestamp: "2000-01-01T00:00:00Z"`), state.Options{}, false},
		"later":              {"a time means nothing", of(uid1, "q-7"), edited("00:03:20.5+00:00", "00:03:21Z"), state.Options{}, true},
		"no time at all":     {"but its absence does", of(uid1, "q-7"), edited("lastSeen:", "other:"), state.Options{}, false},
		"foreign field":      {"it is somebody else's", of(uid1, "q-7"), edited("lastSeen:", "other:"), state.Options{Foreign: []string{"status.lastSeen", "status.other"}}, true},
		"foreign annotation": {"keys have dots", of(uid1, "q-7"), edited("example.com/at: noon", "example.com/at: night"), state.Options{Foreign: []string{"metadata.annotations.example.com/at"}}, true},
		"foreign alone":      {"the map that it made goes with it", edited("example.com/at: noon", "example.com/at: noon"), edited("  annotations:\n    fault.kubesim/touched: \"5\"\n    example.com/at: noon\n", ""), state.Options{Foreign: []string{"metadata.annotations.example.com/at"}}, true},
		"foreign in a list":  {"the path means each element", of(uid1, "q-7"), edited("reason: Fine", "reason: Good"), state.Options{Foreign: []string{"status.conditions.reason"}}, true},
		"foreign if False":   {"what a condition says of the past", of(uid1, "q-7"), edited("reason: Fine", "reason: Good"), state.Options{Foreign: []string{"status.conditions.[Synced=True]"}}, true},
		"foreign, not False": {"another status counts", of(uid1, "q-7"), edited("reason: Fine", "reason: Good"), state.Options{Foreign: []string{"status.conditions.[Synced=False]"}}, false},
		"foreign elsewhere":  {"a path is whole", of(uid1, "q-7"), edited("reason: Fine", "reason: Good"), state.Options{Foreign: []string{"status.reason", "conditions.reason"}}, false},
		"behind":             {"an observed generation that is behind counts", of(uid1, "q-7"), edited("observedGeneration: 3\n", "observedGeneration: 2\n"), state.Options{}, false},
		"generation":         {"how often the spec was written does not", of(uid1, "q-7"), edited("generation: 3\n", "generation: 3 \n"), state.Options{}, true},
		"generated name":     {"the server makes it up", side{objects: []state.Object{generated("job-x7f2k", "a"), generated("job-aaaaa", "b")}}, side{objects: []state.Object{generated("job-b2k4f", "b"), generated("job-z3zzz", "a")}}, state.Options{}, true},
		"generated content":  {"one object more is one more", side{objects: []state.Object{generated("job-x7f2k", "a"), generated("job-aaaaa", "b")}}, side{objects: []state.Object{generated("job-b2k4f", "b")}}, state.Options{}, false},
		"masked":             {"the undisturbed runs differ there", of(uid1, "q-7"), edited("size: 3", "size: 4"), state.Options{Masked: []history.Field{{Object: "databases.demo.dev default/shop", Path: "spec.size"}}}, true},
		"masked of another":  {"a mask is of one object", of(uid1, "q-7"), edited("size: 3", "size: 4"), state.Options{Masked: []history.Field{{Object: "databases.demo.dev default/bar", Path: "spec.size"}}}, false},
		"masked element":     {"one element, not its neighbour", of(uid1, "q-7"), edited("[b, a]", "[b, c]"), state.Options{Masked: []history.Field{{Object: "databases.demo.dev default/shop", Path: "spec.zones[1]"}}}, true},
		"masked neighbour":   {"one element, not its neighbour", of(uid1, "q-7"), edited("[b, a]", "[b, c]"), state.Options{Masked: []history.Field{{Object: "databases.demo.dev default/shop", Path: "spec.zones[0]"}}}, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			a, b := state.Of(tt.a.objects, tt.a.things, tt.o), state.Of(tt.b.objects, tt.b.things, tt.o)
			diff := state.Diff(a, b)
			if got := state.Equal(a, b); got != tt.want {
				t.Errorf("equal: %v, want %v, as %s\n%s", got, tt.want, tt.why, diff)
			}
			if (diff == "") != tt.want {
				t.Errorf("the difference is %q, want empty: %v", diff, tt.want)
			}
		})
	}
}

func TestDiff(t *testing.T) {
	a := state.Of([]state.Object{object(t, "databases.demo.dev", with(database, uid1)), object(t, "secrets", with(secret, uid3))},
		[]history.Resource{{Kind: "queue", ID: "q", Owner: uid1, State: "on", Ready: true}}, state.Options{})
	changed := strings.Replace(strings.Replace(database, `status: "True"`, `status: "False"`, 1), "size: 3, ", "", 1)
	b := state.Of([]state.Object{object(t, "databases.demo.dev", with(changed, uid1))},
		[]history.Resource{{Kind: "queue", ID: "q", Owner: uid1, State: "off"}, {Kind: "queue", ID: "r"}}, state.Options{})
	want := `  databases.demo.dev default/shop
      spec:
-       size: 3
      status:
        conditions:
        - type: Synced
-         status: "True"
+         status: "False"
  external queue q
-     ready: true
-     state: on
+     ready: false
+     state: off
+ external queue r (owner: "", ready: false, state: "")
- secrets default/shop-uid(gone)
`
	got := state.Diff(a, b)
	if diff := cmp.Diff(want, strings.ReplaceAll(strings.ReplaceAll(got, `"on"`, "on"), `"off"`, "off")); diff != "" {
		t.Errorf("difference (-want +got):\n%s", diff)
	}
}

// TestDifferingCondition proves that a condition that only one state has is described by its status and reason, not by its time.
func TestDifferingCondition(t *testing.T) {
	const key, sheet = "databases.demo.dev default/shop", "kind: Database\nstatus:\n  conditions:\n  - type: Ready\n    status: \"True\"\n"
	degraded := sheet + "  - type: Degraded\n    lastTransitionTime: T\n    message: cannot create\n    reason: CreateFailed\n    status: \"True\"\n"
	a, b := history.State{Objects: map[string]string{key: sheet}}, history.State{Objects: map[string]string{key: degraded}}
	want := []state.Difference{{
		Subject: "databases.demo.dev status.conditions[Degraded]",
		Text:    "status.conditions[Degraded] of Database default/shop is True (CreateFailed), and missing without the disturbance",
		Path:    "status.conditions[Degraded]", Of: "Database default/shop", Was: "missing", Is: "True (CreateFailed)",
	}}
	if diff := cmp.Diff(want, state.Differences(a, b)); diff != "" {
		t.Errorf("differences (-want +got):\n%s", diff)
	}
}

// TestOwnerGone proves that a resource that is left behind is described by what it is, if nothing has the UID of its owner any more.
func TestOwnerGone(t *testing.T) {
	left := history.State{Objects: map[string]string{"external queue q": "owner: uid(gone)\nready: true\nstate: size 1\n"}}
	want := []state.Difference{{
		Subject: "external queue too many", Text: `an object that is gone has 1 external resource of kind "queue", none without the disturbance`,
	}}
	if diff := cmp.Diff(want, state.Differences(history.State{}, left)); diff != "" {
		t.Errorf("differences (-want +got):\n%s", diff)
	}
}

// TestInDeletion proves that of an object that only one state deletes that is said first, in one sentence, and that other
// differences of it follow.
func TestInDeletion(t *testing.T) {
	const key, alive = "persistentvolumeclaims default/data", "kind: PersistentVolumeClaim\nmetadata:\n  annotations:\n    a: b\n"
	kept := alive + "  deletionGracePeriodSeconds: 0\n  deletionTimestamp: T\n"
	longer := strings.Replace(kept, ": 0", ": 30", 1)
	for name, test := range map[string]struct {
		why, want, got string
		texts          []string
	}{
		"too soon":     {"it should stay", alive, kept, []string{"PersistentVolumeClaim default/data is being deleted, which it is not without the disturbance"}},
		"not":          {"it should go", kept, alive, []string{"PersistentVolumeClaim default/data is not being deleted, which it is without the disturbance"}},
		"grace period": {"both are", kept, longer, []string{"metadata.deletionGracePeriodSeconds of PersistentVolumeClaim default/data is 30, 0 without the disturbance"}},
		"more": {"a field is another difference", alive, strings.Replace(kept, "a: b", "a: c", 1), []string{
			"PersistentVolumeClaim default/data is being deleted, which it is not without the disturbance",
			`metadata.annotations.a of PersistentVolumeClaim default/data is "c", "b" without the disturbance`,
		}},
	} {
		var got []string
		for _, d := range state.Differences(history.State{Objects: map[string]string{key: test.want}}, history.State{Objects: map[string]string{key: test.got}}) {
			got = append(got, d.Text)
		}
		if diff := cmp.Diff(test.texts, got); diff != "" {
			t.Errorf("%s (%s): (-want +got)\n%s", name, test.why, diff)
		}
	}
}

// TestStatesInParts proves that different parts of the state of an external resource are different subjects, since
// different mistakes may lose them.
func TestStatesInParts(t *testing.T) {
	of := func(text string) history.State {
		return history.State{Resources: []history.Resource{{Kind: "node", ID: "n-0", State: text}}}
	}
	for name, test := range map[string]struct{ want, got, subject string }{
		"the first":       {"flags: all, plugins: a b", "flags: , plugins: a b", "external node state flags"},
		"the second":      {"flags: all, plugins: a b", "flags: all, plugins: a", "external node state plugins"},
		"both":            {"flags: all, plugins: a b", "flags: , plugins: ", "external node state flags, plugins"},
		"separated":       {"size=1; started=true", "size=2; started=true", "external node state size"},
		"by words":        {"size 1, started true", "size 1, started false", "external node state started"},
		"a single word":   {"on", "off", "external node state"},
		"values in a row": {"a, b", "a, c", "external node state"},
		"other parts":     {"size 1, started true", "size 1", "external node state"},
		"in the value":    {"text: a, b, mode: c", "text: a, mode: c", "external node state"},
		"missing":         {"size 1, started true", "", "external node state"},
		"as a map of Go":  {"{size:1 started:true}", "{size:2 started:true}", "external node state"},
	} {
		t.Run(name, func(t *testing.T) {
			found := state.Differences(of(test.want), of(test.got))
			if len(found) != 1 || found[0].Subject != test.subject {
				t.Errorf("from %q to %q: %+v, want subject %q", test.want, test.got, found, test.subject)
			}
		})
	}
}

// TestForeignMark proves that the mark of the other writer is left out where an operator copies it to.
func TestForeignMark(t *testing.T) {
	const manifest = `{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: s}, spec: {volumeClaimTemplates: [{metadata: {name: c%s}}]}}`
	of := func(more string) history.State {
		return state.Of([]state.Object{object(t, "statefulsets.apps", fmt.Sprintf(manifest, more))}, nil, state.Options{})
	}
	for _, more := range []string{`, annotations: {fault.kubesim/touched: "8"}`, `, labels: {fault.kubesim/touched: "8"}`} {
		if diff := state.Diff(of(""), of(more)); diff != "" {
			t.Errorf("with %s:\n%s", more, diff)
		}
	}
	held := func(finalizers string) history.State {
		return of(fmt.Sprintf(`, finalizers: [%s]`, finalizers))
	}
	if diff := state.Diff(of(""), held("fault.kubesim/held")) + state.Diff(held("a.b/c"), held("a.b/c, fault.kubesim/held")); diff != "" {
		t.Errorf("with its finalizer:\n%s", diff)
	}
	if diff := state.Diff(of(""), held("other.dev/f")); diff == "" {
		t.Error("another finalizer is left out, too")
	}
	if diff := state.Diff(of(`, annotations: {a: b}`), of(`, annotations: {a: b, fault.kubesim/touched: "8"}`)); diff != "" {
		t.Errorf("beside another annotation:\n%s", diff)
	}
}

func TestMask(t *testing.T) {
	a := state.Of([]state.Object{object(t, "databases.demo.dev", with(database, uid1))}, []history.Resource{{Kind: "queue", ID: "q", State: "x"}}, state.Options{})
	changed := strings.Replace(strings.Replace(database, "reason: Fine", "reason: Good", 1), "[b, a]", "[b, c]", 1)
	b := state.Of([]state.Object{object(t, "databases.demo.dev", with(changed, uid1))}, []history.Resource{{Kind: "queue", ID: "q", State: "y"}}, state.Options{})
	want := []history.Field{
		{Object: "databases.demo.dev default/shop", Path: "spec.zones[1]"},
		{Object: "databases.demo.dev default/shop", Path: "status.conditions[1].reason"},
		{Object: "external queue q", Path: "state"},
	}
	got := state.Mask(a, b)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("mask (-want +got):\n%s", diff)
	}
	o := state.Options{Masked: got}
	x := state.Of([]state.Object{object(t, "databases.demo.dev", with(database, uid1))}, []history.Resource{{Kind: "queue", ID: "q", State: "x"}}, o)
	y := state.Of([]state.Object{object(t, "databases.demo.dev", with(changed, uid1))}, []history.Resource{{Kind: "queue", ID: "q", State: "y"}}, o)
	if diff := state.Diff(x, y); diff != "" {
		t.Errorf("masked worlds differ:\n%s", diff)
	}
}

func BenchmarkOf(b *testing.B) {
	var objects []state.Object
	var things []history.Resource
	for range 10 {
		objects = append(objects, object(b, "databases.demo.dev", with(database, uid1)), object(b, "secrets", with(secret, uid1)))
		things = append(things, history.Resource{Kind: "queue", ID: "q-7", Owner: uid1, State: "on"})
	}
	b.ReportAllocs()
	for b.Loop() {
		state.Of(objects, things, state.Options{Foreign: []string{"status.lastSeen"}})
	}
}
