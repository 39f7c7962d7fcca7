package kindgen

import (
	"strings"
	"testing"
	"testing/fstest"
)

func TestAccessors(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		why, source, want, wantErr string
	}{
		"the framework's status": {
			why:    "most kinds have no other",
			source: "// Shop sells.\n//\n// +trimtab:component\ntype Shop struct {\n\tSpec ShopSpec\n\tStatus api.ComponentStatus\n}\ntype ShopSpec struct{}\n",
			want:   "func (in *Shop) GetStatus() *api.ComponentStatus { return &in.Status }",
		},
		"a status that extends it": {
			why:    "it is a part of the kind's own",
			source: "// +trimtab:component\ntype Shop struct {\n\tSpec ShopSpec\n\tStatus ShopStatus\n}\ntype ShopSpec struct{}\ntype ShopStatus struct {\n\tcomponent.Status\n\tNote string\n}\n",
			want:   "func (in *Shop) GetStatus() *api.ComponentStatus { return &in.Status.Status }",
		},
		"no component": {
			why:    "nothing is generated without the marker",
			source: "type Shop struct {\n\tSpec ShopSpec\n\tStatus api.ComponentStatus\n}\n",
		},
		"no status": {
			why:     "the methods could not be written",
			source:  "// +trimtab:component\ntype Shop struct {\n\tSpec ShopSpec\n}\n",
			wantErr: "type Shop has the marker +trimtab:component; it needs a field Spec",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := accessorsOf(fstest.MapFS{"shop.go": &fstest.MapFile{Data: []byte("package v1\n\n" + test.source)}})
			if (err != nil) != (test.wantErr != "") || err != nil && !strings.Contains(err.Error(), test.wantErr) {
				t.Fatalf("%s: error %v, want %q", test.why, err, test.wantErr)
			}
			if test.want == "" && got != nil || !strings.Contains(string(got), test.want) {
				t.Errorf("%s:\n%s\nwant %s", test.why, got, test.want)
			}
		})
	}
}
