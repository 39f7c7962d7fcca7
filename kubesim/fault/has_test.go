package fault

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	fakeclient "sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/yaml"
)

// thing is an object with generation 2 and what a manifest says.
func thing(t *testing.T, manifest string) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(manifest), &u.Object); err != nil {
		t.Fatal(err)
	}
	u.SetAPIVersion("example.com/v1")
	u.SetKind("Thing")
	u.SetName("a")
	u.SetNamespace("default")
	u.SetGeneration(2)
	return u
}

// TestHas proves that fields are compared one by one, and that an old status is not believed.
func TestHas(t *testing.T) {
	const manifest = `
spec: {size: 3, ratio: 0.5, image: {name: web, tag: v1}, args: [a, b], ports: [{name: http, port: 80, protocol: TCP}], volume: 1Gi, pause: false}
status: {observedGeneration: %d, ready: 3}
`
	for name, c := range map[string]struct {
		seen         int // the observed generation, 2 unless told
		fields, want string
	}{
		"all right":           {fields: `{spec: {size: 3, ratio: 0.5, args: [a, b], ports: [{port: 80}], image: {tag: v1}, volume: 1Gi, pause: false, gone: null}, status: {ready: 3}}`},
		"in JSON":             {fields: `{"spec":{"size":3,"image":{"name":"web"}}}`},
		"another number":      {fields: `spec: {size: 4}`, want: `spec.size of a is 3, want 4`},
		"a text, no number":   {fields: `spec: {size: "3"}`, want: `spec.size of a is 3, want "3"`},
		"absent":              {fields: `spec: {color: red}`, want: `a has no spec.color, want "red"`},
		"absent, with fields": {fields: `template: {spec: {color: red}}`, want: `a has no template, want {"spec":{"color":"red"}}`},
		"present":             {fields: `spec: {image: {tag: null}}`, want: `spec.image.tag of a is "v1", want none`},
		"no map":              {fields: `spec: {size: {least: 3}}`, want: `spec.size of a is 3, want {"least":3}`},
		"no list":             {fields: `spec: {size: [3]}`, want: `spec.size of a is 3, want [3]`},
		"a shorter list":      {fields: `spec: {args: [a]}`, want: `spec.args of a is ["a","b"], want ["a"]`},
		"another element":     {fields: `spec: {args: [a, c]}`, want: `spec.args[1] of a is "b", want "c"`},
		"in an element":       {fields: `spec: {ports: [{port: 81}]}`, want: `spec.ports[0].port of a is 80, want 81`},
		"an old status":       {seen: 1, fields: `status: {ready: 3}`, want: `the status of a is of generation 1, the object has 2`},
		"without the status":  {seen: 1, fields: `spec: {size: 3}`},
	} {
		t.Run(name, func(t *testing.T) {
			if c.seen == 0 {
				c.seen = 2
			}
			obj := thing(t, fmt.Sprintf(manifest, c.seen))
			w := &World{Client: fakeclient.NewClientBuilder().WithObjects(obj).Build()}
			got := ""
			if err := Wait(0).Has(obj, c.fields).Expect(t.Context(), w); err != nil {
				got = err.Error()
			}
			if got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// TestRefusedSteps proves that a refusal that is expected is no failure of its step, and that no other end of it is taken for one.
func TestRefusedSteps(t *testing.T) {
	refusal := Create(configMap("No_Name"))
	play := func(s Step) (Report, error) {
		return explored(t, Scenario{Name: "refused", Operator: Operator{SetUp: toyOperator("")}, ExternalAPI: newShelf, Steps: []Step{Create(configMap("a")), s}}, time.Minute, Crashes, Races)
	}
	r, err := play(refusal.Refused("metadata.name"))
	if err != nil || len(r.Findings) > 0 || len(r.Notes) > 0 {
		t.Errorf("got error %v, findings %v and notes %v", err, r.texts(), r.Notes)
	}
	for want, s := range map[string]Step{
		`it was not refused, want a refusal with "metadata.name"`:                                 Create(configMap("b")).Refused("metadata.name"),
		`want a refusal with "spec.size": ConfigMap "No_Name" is invalid: metadata`:               refusal.Refused("spec.size"),
		`Refused: say what is refused, for example`:                                               refusal.Refused(""),
		`fault.CreateFile: open none.yaml`:                                                        CreateFile("none.yaml").Refused("any"),
		`Has: there are no fields; write the fields as in a manifest`:                             refusal.Has(configMap("a"), ""),
		`fields as in a manifest, for example ` + "`status: {phase: Running}`" + `, not "status"`: refusal.Has(configMap("a"), "status"),
	} {
		if _, err := play(s); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got error %v, want %s", err, want)
		}
	}
}
