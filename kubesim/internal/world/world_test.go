package world_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/trimtab-dev/trimtab/kubesim/internal/history"
	"github.com/trimtab-dev/trimtab/kubesim/internal/world"
)

const (
	uid1 = "0a1b2c3d-0000-4000-8000-000000000001"
	uid2 = "0a1b2c3d-0000-4000-8000-000000000002" // the same object, made again
	uid3 = "99999999-0000-4000-8000-000000000003"
)

// object reads a manifest; resource is "databases.demo.dev".
func object(t testing.TB, resource, manifest string) world.Object {
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
	return world.Object{Group: group, Resource: resource, Object: u}
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
	got := world.Of([]world.Object{
		lease, event, service, headless,
		object(t, "databases.demo.dev", with(database, uid1)), object(t, "secrets", with(secret, uid1)),
	}, []history.Thing{{Kind: "queue", ID: "q-7", Owner: uid1, State: "size 3, tag " + uid1, Ready: true}, {Kind: "queue", ID: "p-1"}}, world.Options{})
	want := history.World{
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
  none: []
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
		Things: []history.Thing{
			{Kind: "queue", ID: "id(queue of databases.demo.dev default/shop)", Owner: "uid(databases.demo.dev default/shop)", State: "size 3, tag uid(databases.demo.dev default/shop)", Ready: true},
			{Kind: "queue", ID: "p-1"},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("world (-want +got):\n%s", diff)
	}
}

// What means the same is equal, what does not is not.
func TestEqual(t *testing.T) {
	things := func(id, owner string) []history.Thing {
		return []history.Thing{{Kind: "queue", ID: id, Owner: owner, State: "on", Ready: true}}
	}
	generated := func(name, text string) world.Object {
		return object(t, "pods", "{apiVersion: v1, kind: Pod, metadata: {generateName: job-, name: "+name+"}, spec: {text: "+text+"}}")
	}
	base := func(uid, id string) ([]world.Object, []history.Thing) {
		return []world.Object{object(t, "databases.demo.dev", strings.ReplaceAll(with(database, uid), "q-7", id))}, things(id, uid)
	}
	type side struct {
		objects []world.Object
		things  []history.Thing
	}
	of := func(uid, id string) side { o, th := base(uid, id); return side{o, th} }
	edited := func(old, with string) side {
		return side{[]world.Object{object(t, "databases.demo.dev", strings.Replace(strings.ReplaceAll(database, "UID", uid1), old, with, 1))}, things("q-7", uid1)}
	}
	tests := map[string]struct {
		why  string
		a, b side
		o    world.Options
		want bool
	}{
		"made again":           {"a new UID and a new id of the vendor mean nothing", of(uid1, "q-7"), of(uid2, "q-8"), world.Options{}, true},
		"names the old thing":  {"the recorded id is not of what lives", of(uid1, "q-7"), side{of(uid1, "q-7").objects, things("q-8", uid1)}, world.Options{}, false},
		"part of a word":       {"q-77 is not q-7", edited("id: q-7", "id: q-77"), edited("id: q-7", "id: q-78"), world.Options{}, false},
		"end of a word":        {"faq-7 is not q-7", edited("id: q-7", "id: faq-7"), side{[]world.Object{object(t, "databases.demo.dev", strings.ReplaceAll(strings.Replace(with(database, uid1), "id: q-7", "id: faq-8", 1), "q-7 since", "q-8 since"))}, things("q-8", uid1)}, world.Options{}, false},
		"owner of before":      {"the thing's tag names an incarnation that is gone", of(uid1, "q-7"), side{of(uid2, "q-7").objects, things("q-7", uid1)}, world.Options{}, false},
		"another spec":         {"size is what the user wants", of(uid1, "q-7"), edited("size: 3", "size: 4"), world.Options{}, false},
		"a number as a string": {"3 is not \"3\"", of(uid1, "q-7"), edited("size: 3", `size: "3"`), world.Options{}, false},
		"order of a list":      {"zones may have an order", of(uid1, "q-7"), edited("[b, a]", "[a, b]"), world.Options{}, false},
		"order of finalizers":  {"they are a set", of(uid1, "q-7"), edited("[z.dev/b, demo.dev/a]", "[demo.dev/a, z.dev/b]"), world.Options{}, true},
		"deleting":             {"deletionTimestamp counts, its time does not", of(uid1, "q-7"), edited("generation: 3", `deletionTimestamp: "2000-01-01T00:00:00Z"`), world.Options{}, false},
		"later":                {"a time means nothing", of(uid1, "q-7"), edited("00:03:20.5+00:00", "00:03:21Z"), world.Options{}, true},
		"no time at all":       {"but its absence does", of(uid1, "q-7"), edited("lastSeen:", "other:"), world.Options{}, false},
		"foreign field":        {"it is somebody else's", of(uid1, "q-7"), edited("lastSeen:", "other:"), world.Options{Foreign: []string{"status.lastSeen", "status.other"}}, true},
		"foreign annotation":   {"keys have dots", of(uid1, "q-7"), edited("example.com/at: noon", "example.com/at: night"), world.Options{Foreign: []string{"metadata.annotations.example.com/at"}}, true},
		"foreign alone":        {"the map that it made goes with it", edited("example.com/at: noon", "example.com/at: noon"), edited("  annotations:\n    fault.kubesim/touched: \"5\"\n    example.com/at: noon\n", ""), world.Options{Foreign: []string{"metadata.annotations.example.com/at"}}, true},
		"foreign in a list":    {"the path means each element", of(uid1, "q-7"), edited("reason: Fine", "reason: Good"), world.Options{Foreign: []string{"status.conditions.reason"}}, true},
		"foreign elsewhere":    {"a path is whole", of(uid1, "q-7"), edited("reason: Fine", "reason: Good"), world.Options{Foreign: []string{"status.reason", "conditions.reason"}}, false},
		"behind":               {"an observed generation that is behind counts", of(uid1, "q-7"), edited("observedGeneration: 3\n", "observedGeneration: 2\n"), world.Options{}, false},
		"generation":           {"how often the spec was written does not", of(uid1, "q-7"), edited("generation: 3\n", "generation: 3 \n"), world.Options{}, true},
		"generated name":       {"the server makes it up", side{objects: []world.Object{generated("job-x7f2k", "a"), generated("job-aaaaa", "b")}}, side{objects: []world.Object{generated("job-b2k4f", "b"), generated("job-z3zzz", "a")}}, world.Options{}, true},
		"generated content":    {"one object more is one more", side{objects: []world.Object{generated("job-x7f2k", "a"), generated("job-aaaaa", "b")}}, side{objects: []world.Object{generated("job-b2k4f", "b")}}, world.Options{}, false},
		"masked":               {"the undisturbed runs differ there", of(uid1, "q-7"), edited("size: 3", "size: 4"), world.Options{Masked: []world.Field{{Object: "databases.demo.dev default/shop", Path: "spec.size"}}}, true},
		"masked of another":    {"a mask is of one object", of(uid1, "q-7"), edited("size: 3", "size: 4"), world.Options{Masked: []world.Field{{Object: "databases.demo.dev default/bar", Path: "spec.size"}}}, false},
		"masked element":       {"one element, not its neighbour", of(uid1, "q-7"), edited("[b, a]", "[b, c]"), world.Options{Masked: []world.Field{{Object: "databases.demo.dev default/shop", Path: "spec.zones[1]"}}}, true},
		"masked neighbour":     {"one element, not its neighbour", of(uid1, "q-7"), edited("[b, a]", "[b, c]"), world.Options{Masked: []world.Field{{Object: "databases.demo.dev default/shop", Path: "spec.zones[0]"}}}, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			a, b := world.Of(tt.a.objects, tt.a.things, tt.o), world.Of(tt.b.objects, tt.b.things, tt.o)
			diff := world.Diff(a, b)
			if got := world.Equal(a, b); got != tt.want {
				t.Errorf("equal: %v, want %v, as %s\n%s", got, tt.want, tt.why, diff)
			}
			if (diff == "") != tt.want {
				t.Errorf("the difference is %q, want empty: %v", diff, tt.want)
			}
		})
	}
}

func TestDiff(t *testing.T) {
	a := world.Of([]world.Object{object(t, "databases.demo.dev", with(database, uid1)), object(t, "secrets", with(secret, uid3))},
		[]history.Thing{{Kind: "queue", ID: "q", Owner: uid1, State: "on", Ready: true}}, world.Options{})
	changed := strings.Replace(strings.Replace(database, `status: "True"`, `status: "False"`, 1), "size: 3, ", "", 1)
	b := world.Of([]world.Object{object(t, "databases.demo.dev", with(changed, uid1))},
		[]history.Thing{{Kind: "queue", ID: "q", Owner: uid1, State: "off"}, {Kind: "queue", ID: "r"}}, world.Options{})
	want := `  databases.demo.dev default/shop
      spec:
-       size: 3
      status:
        conditions:
        - type: Synced
-         status: "True"
+         status: "False"
  outside queue q
-     ready: true
-     state: on
+     ready: false
+     state: off
+ outside queue r (owner: "", ready: false, state: "")
- secrets default/shop-uid(gone)
`
	got := world.Diff(a, b)
	if diff := cmp.Diff(want, strings.ReplaceAll(strings.ReplaceAll(got, `"on"`, "on"), `"off"`, "off")); diff != "" {
		t.Errorf("difference (-want +got):\n%s", diff)
	}
}

func TestMask(t *testing.T) {
	a := world.Of([]world.Object{object(t, "databases.demo.dev", with(database, uid1))}, []history.Thing{{Kind: "queue", ID: "q", State: "x"}}, world.Options{})
	changed := strings.Replace(strings.Replace(database, "reason: Fine", "reason: Good", 1), "[b, a]", "[b, c]", 1)
	b := world.Of([]world.Object{object(t, "databases.demo.dev", with(changed, uid1))}, []history.Thing{{Kind: "queue", ID: "q", State: "y"}}, world.Options{})
	want := []world.Field{
		{Object: "databases.demo.dev default/shop", Path: "spec.zones[1]"},
		{Object: "databases.demo.dev default/shop", Path: "status.conditions[1].reason"},
		{Object: "outside queue q", Path: "state"},
	}
	got := world.Mask(a, b)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("mask (-want +got):\n%s", diff)
	}
	o := world.Options{Masked: got}
	x := world.Of([]world.Object{object(t, "databases.demo.dev", with(database, uid1))}, []history.Thing{{Kind: "queue", ID: "q", State: "x"}}, o)
	y := world.Of([]world.Object{object(t, "databases.demo.dev", with(changed, uid1))}, []history.Thing{{Kind: "queue", ID: "q", State: "y"}}, o)
	if diff := world.Diff(x, y); diff != "" {
		t.Errorf("masked worlds differ:\n%s", diff)
	}
}

func BenchmarkOf(b *testing.B) {
	var objects []world.Object
	var things []history.Thing
	for range 10 {
		objects = append(objects, object(b, "databases.demo.dev", with(database, uid1)), object(b, "secrets", with(secret, uid1)))
		things = append(things, history.Thing{Kind: "queue", ID: "q-7", Owner: uid1, State: "on"})
	}
	b.ReportAllocs()
	for b.Loop() {
		world.Of(objects, things, world.Options{Foreign: []string{"status.lastSeen"}})
	}
}
