package nack_test

import (
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/trimtab-dev/trimtab/samples/nats/nack"
	"github.com/trimtab-dev/trimtab/trace/tracetest"
)

var update = flag.Bool("update", false, "accept what comes out now into testdata")

func TestConvert(t *testing.T) {
	in, err := os.ReadFile("testdata/nack.yaml")
	if err != nil {
		t.Fatal(err)
	}
	got, err := nack.Convert(in)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, o := range got.Objects {
		text, err := yaml.Marshal(o.Object)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, string(text))
	}
	tracetest.Compare(t, "testdata/converted.yaml", strings.Join(out, "---\n"), *update)
	want := []string{
		"Stream shop/orders: account, servers: these are flags of the operator, the same for all objects",
		"Stream shop/all-orders: tomorrow: not supported; omitted, and kept in NATS as it is",
		"Account shop/main: has no counterpart; servers and credentials are flags of the operator",
		"ObjectStore shop/pictures: has no counterpart; what it created stays in NATS",
	}
	if diff := cmp.Diff(want, got.Remarks); diff != "" {
		t.Errorf("remarks (-want +got):\n%s", diff)
	}
}

func TestConvertDocuments(t *testing.T) {
	tests := map[string]struct{ why, in, remark, spec string }{
		"one document":  {why: "a file from git", in: "apiVersion: jetstream.nats.io/v1beta2\nkind: Stream\nmetadata: {name: a}\nspec: {name: A, maxAge: 1h}\n", spec: "{maxAge: 1h0m0s, name: A}"},
		"several":       {why: "files from git", in: "---\n# nothing\n---\napiVersion: jetstream.nats.io/v1beta2\nkind: Stream\nmetadata: {name: a}\nspec: {name: A}\n---\n", spec: "{name: A}"},
		"no duration":   {why: "Go has no days, and neither has NACK", in: "apiVersion: jetstream.nats.io/v1beta2\nkind: Stream\nmetadata: {name: a}\nspec: {name: A, maxAge: 1d}\n", remark: `Stream a: maxAge: "1d" is not a duration; write it as 24h or 30s`, spec: "{maxAge: 1d, name: A}"},
		"ours":          {why: "converted twice", in: "apiVersion: nats.trimtab.dev/v1alpha1\nkind: Stream\nmetadata: {name: a}\n", remark: "Stream a: not an object of NACK; omitted"},
		"one that goes": {why: "it would be made again", in: "apiVersion: jetstream.nats.io/v1beta2\nkind: Stream\nmetadata: {name: a, deletionTimestamp: \"2026-01-01T00:00:00Z\"}\n", remark: "Stream a: is being deleted; omitted"},
		"a name beside": {why: "the durable name is the consumer's", in: "apiVersion: jetstream.nats.io/v1beta2\nkind: Consumer\nmetadata: {name: a}\nspec: {name: A, durableName: B, streamName: s}\n", spec: "{name: B, stream: s}"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := nack.Convert([]byte(tt.in))
			if err != nil {
				t.Fatal(err)
			}
			if remarks := strings.Join(got.Remarks, "\n"); remarks != tt.remark {
				t.Errorf("%s: remarks %q, want %q", tt.why, remarks, tt.remark)
			}
			var want, spec any
			if err := yaml.Unmarshal([]byte(tt.spec), &want); err != nil {
				t.Fatal(err)
			}
			if len(got.Objects) > 0 {
				spec = got.Objects[0].Object["spec"]
			}
			if diff := cmp.Diff(want, spec); diff != "" {
				t.Errorf("%s: spec (-want +got):\n%s", tt.why, diff)
			}
		})
	}
	if _, err := nack.Convert([]byte("a: b: c")); err == nil {
		t.Error("what is no YAML is converted")
	}
}
